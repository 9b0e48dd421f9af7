/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "port_record_line.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FNV_START UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)
static const int64_t NS_PER_S = INT64_C(1000000000);

enum { FDS_MAX = 65536, NAME_BYTES = 255 };

/* A socket as the record knows it, by descriptor. */
static struct socket_record {
	uint32_t number; /* 0: none */
	uint64_t bytes[2], sum[2];
} sockets[FDS_MAX];

static uint32_t last_number;
static int file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("BW_RECORD");

	if (name && *name)
		file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (name && *name && file < 0)
		dprintf(STDERR_FILENO, "bw-record: %s: %s\n", name, strerror(errno));
}

int64_t record_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static struct socket_record *find(int fd)
{
	return fd >= 0 && fd < FDS_MAX && sockets[fd].number ? &sockets[fd] : NULL;
}

uint32_t socket_number(int fd)
{
	return find(fd) ? find(fd)->number : 0;
}

void socket_note(int fd)
{
	if (fd < 0 || fd >= FDS_MAX)
		return;
	pthread_mutex_lock(&lock);
	sockets[fd] = (struct socket_record){ .number = ++last_number, .sum = { FNV_START, FNV_START } };
	pthread_mutex_unlock(&lock);
}

void socket_forget(int fd)
{
	if (fd >= 0 && fd < FDS_MAX)
		sockets[fd].number = 0;
}

void line_add(struct line *line, const char *format, ...)
{
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(line->text + line->used, sizeof(line->text) - line->used, format, values);
	va_end(values);
	if (length > 0)
		line->used += (size_t)length < sizeof(line->text) - line->used ? (size_t)length : sizeof(line->text) - line->used - 1;
}

void line_open(struct line *line, const char *call, int fd, int64_t begin_monotonic_ns)
{
	int err = errno;

	line->used = 0;
	line_add(line, "{\"process\":%d,\"thread\":%ld,\"begin_monotonic_ns\":%lld,\"duration_ns\":%lld,\"call\":\"%s\"", getpid(),
		 syscall(SYS_gettid), (long long)begin_monotonic_ns, (long long)(record_now_ns() - begin_monotonic_ns), call);
	if (find(fd))
		line_add(line, ",\"socket\":%u", find(fd)->number);
	errno = err;
}

void line_add_name(struct line *line, const char *name)
{
	if (!name)
		return;
	line_add(line, ",\"name\":\"");
	for (size_t i = 0; name[i] && i < NAME_BYTES; i++)
		line_add(line, "%c", isalnum((unsigned char)name[i]) || strchr(".-_:%", name[i]) ? name[i] : '?');
	line_add(line, "\"");
}

void line_write(struct line *line, int err)
{
	line_add(line, "}\n");
	if (file >= 0 && syscall(SYS_write, file, line->text, line->used) < 0) {
		/* The disk is full: the record ends, the program does not. */
	}
	errno = err;
}

void line_close(struct line *line, int64_t result, int err)
{
	if (result < 0)
		line_add(line, ",\"errno\":\"%s\"", strerrorname_np(err) ? strerrorname_np(err) : "?");
	else
		line_add(line, ",\"result\":%lld", (long long)result);
	line_write(line, err);
}

void line_add_address(struct line *line, const char *key, const struct sockaddr *address, socklen_t length)
{
	char text[INET6_ADDRSTRLEN] = "";
	const struct sockaddr_in6 *six = (const void *)address;
	const struct sockaddr_in *four = (const void *)address;

	if (!address)
		return;
	if (address->sa_family == AF_INET && length >= (socklen_t)sizeof(*four)) {
		inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
		line_add(line, ",\"%s\":[\"%s\",%u]", key, text, ntohs(four->sin_port));
	} else if (address->sa_family == AF_INET6 && length >= (socklen_t)sizeof(*six)) {
		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
		line_add(line, ",\"%s\":[\"%s\",%u]", key, text, ntohs(six->sin6_port));
	}
}

void line_add_transfer(struct line *line, const struct transfer *transfer, ssize_t size)
{
	struct socket_record *sock = find(transfer->fd);
	size_t asked_bytes = 0;
	uint64_t sum;

	for (size_t i = 0; i < transfer->part_count; i++)
		asked_bytes += transfer->parts[i].iov_len;
	line_add(line, ",\"asked\":%zu,\"flags\":%d", asked_bytes, transfer->flags);
	if (!sock || size < 0)
		return;
	sum = sock->sum[transfer->way];
	sock->bytes[transfer->way] += (uint64_t)size;
	for (size_t i = 0; i < transfer->part_count && size > 0; i++) {
		const struct iovec *part = &transfer->parts[i];
		size_t here = part->iov_len < (size_t)size ? part->iov_len : (size_t)size;

		for (size_t j = 0; j < here && part->iov_base; j++)
			sum = (sum ^ ((const uint8_t *)part->iov_base)[j]) * FNV_PRIME;
		size -= (ssize_t)here;
	}
	sock->sum[transfer->way] = sum;
	line_add(line, ",\"total\":%llu,\"sum\":\"%016llx\"", (unsigned long long)sock->bytes[transfer->way], (unsigned long long)sum);
}
