/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record what a program asks of its sockets and what it is told: a library that is loaded before its others, and before that of the
 * user-mode stack if there is one. So the same program leaves one record by the kernel and one by the stack, which
 * compare_calls.py holds against each other. A call is a line of JSON in the file that BW_RECORD names: thread, call, the socket
 * by its descriptor, values, result, errno. Of what was transferred stand bytes and a sum over all bytes of that way so far.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* glibc declares the descriptors of poll(2) as written only, and the compiler believes it of the definition, too. */
#ifndef __clang__ /* it has no such warning, and says so */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define EXPORT __attribute__((visibility("default")))
/* The call behind this one: the next library's, or the C library's. */
#define NEXT(name) \
	static __typeof__(name) *next; \
	if (!next) \
		*(void **)&next = dlsym(RTLD_NEXT, #name)

#define FNV_START UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

enum { FDS_MAX = 65536, LINE_BYTES = 4096, IN = 0, OUT = 1 };

/* A socket as the record knows it, by descriptor. */
static struct socket_record {
	uint32_t number; /* the how manieth socket of the program; 0: none */
	uint64_t bytes[2], sum[2];
} sockets[FDS_MAX];

static uint32_t last_number;
static int file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct line {
	char text[LINE_BYTES];
	size_t used;
};

static struct socket_record *find(int fd)
{
	return fd >= 0 && fd < FDS_MAX && sockets[fd].number ? &sockets[fd] : NULL;
}

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("BW_RECORD");

	if (name && *name)
		file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (name && *name && file < 0)
		dprintf(STDERR_FILENO, "bw-record: %s: %s\n", name, strerror(errno));
}

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(line->text + line->used, sizeof(line->text) - line->used, format, values);
	va_end(values);
	if (length > 0)
		line->used += (size_t)length < sizeof(line->text) - line->used ? (size_t)length : sizeof(line->text) - line->used - 1;
}

static void open_line(struct line *line, const char *call, int fd)
{
	const struct socket_record *sock = find(fd);

	line->used = 0;
	add(line, "{\"thread\":%ld,\"call\":\"%s\"", syscall(SYS_gettid), call);
	if (sock)
		add(line, ",\"socket\":%u", sock->number);
}

/* Write the line with the result. errno is the program's again behind it. */
static void close_line(struct line *line, int64_t result, int err)
{
	if (result < 0)
		add(line, ",\"errno\":\"%s\"", strerrorname_np(err) ? strerrorname_np(err) : "?");
	else
		add(line, ",\"result\":%lld", (long long)result);
	add(line, "}\n");
	if (file >= 0 && syscall(SYS_write, file, line->text, line->used) < 0) {
		/* The disk is full: the record ends, the program does not. */
	}
	errno = err;
}

static void add_address(struct line *line, const char *key, const struct sockaddr *address, socklen_t length)
{
	char text[INET6_ADDRSTRLEN] = "";
	const struct sockaddr_in6 *six = (const void *)address;
	const struct sockaddr_in *four = (const void *)address;

	if (!address)
		return;
	if (address->sa_family == AF_INET && length >= (socklen_t)sizeof(*four)) {
		inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
		add(line, ",\"%s\":[\"%s\",%u]", key, text, ntohs(four->sin_port));
	} else if (address->sa_family == AF_INET6 && length >= (socklen_t)sizeof(*six)) {
		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
		add(line, ",\"%s\":[\"%s\",%u]", key, text, ntohs(six->sin6_port));
	}
}

/* A new socket behind a descriptor. */
static void note(int fd)
{
	if (fd < 0 || fd >= FDS_MAX)
		return;
	pthread_mutex_lock(&lock);
	sockets[fd] = (struct socket_record){ .number = ++last_number, .sum = { FNV_START, FNV_START } };
	pthread_mutex_unlock(&lock);
}

static void forget(int fd)
{
	if (fd >= 0 && fd < FDS_MAX)
		sockets[fd].number = 0;
}

/* Note what was transferred. */
static void add_transfer(struct line *line, int fd, int way, const struct iovec *parts, size_t count, ssize_t size)
{
	struct socket_record *sock = find(fd);
	uint64_t sum;

	if (!sock || size < 0)
		return;
	sum = sock->sum[way];
	sock->bytes[way] += (uint64_t)size;
	for (size_t i = 0; i < count && size > 0; i++) {
		size_t here = parts[i].iov_len < (size_t)size ? parts[i].iov_len : (size_t)size;

		for (size_t j = 0; j < here; j++)
			sum = (sum ^ ((const uint8_t *)parts[i].iov_base)[j]) * FNV_PRIME;
		size -= (ssize_t)here;
	}
	sock->sum[way] = sum;
	add(line, ",\"total\":%llu,\"sum\":\"%016llx\"", (unsigned long long)sock->bytes[way], (unsigned long long)sum);
}

EXPORT int socket(int domain, int type, int protocol)
{
	struct line line;
	int fd;

	NEXT(socket);
	fd = next(domain, type, protocol);
	if (domain != AF_INET && domain != AF_INET6)
		return fd;
	note(fd);
	open_line(&line, "socket", fd);
	add(&line, ",\"domain\":%d,\"type\":%d", domain, type);
	close_line(&line, fd < 0 ? fd : 0, errno);
	return fd;
}

#define ADDRESS_CALL(name) \
	EXPORT int name(int fd, const struct sockaddr *address, socklen_t length) \
	{ \
		struct line line; \
		int result; \
\
		NEXT(name); \
		result = next(fd, address, length); \
		if (find(fd)) { \
			int err = errno; \
\
			open_line(&line, #name, fd); \
			add_address(&line, "address", address, length); \
			close_line(&line, result, err); \
		} \
		return result; \
	}

ADDRESS_CALL(bind)
ADDRESS_CALL(connect)

#define NUMBER_CALL(name) \
	EXPORT int name(int fd, int number) \
	{ \
		struct line line; \
		int result; \
\
		NEXT(name); \
		result = next(fd, number); \
		if (find(fd)) { \
			int err = errno; \
\
			open_line(&line, #name, fd); \
			add(&line, ",\"number\":%d", number); \
			close_line(&line, result, err); \
		} \
		return result; \
	}

NUMBER_CALL(listen)
NUMBER_CALL(shutdown)

#define NAME_CALL(name) \
	EXPORT int name(int fd, struct sockaddr *address, socklen_t *length) \
	{ \
		struct line line; \
		int result; \
\
		NEXT(name); \
		result = next(fd, address, length); \
		if (find(fd)) { \
			int err = errno; \
\
			open_line(&line, #name, fd); \
			if (!result) \
				add_address(&line, "address", address, *length); \
			close_line(&line, result, err); \
		} \
		return result; \
	}

NAME_CALL(getsockname)
NAME_CALL(getpeername)

static int accepted(const char *call, int listener, int fd, const struct sockaddr *address, const socklen_t *length)
{
	struct line line;
	int err = errno;

	if (!find(listener))
		return fd;
	note(fd);
	open_line(&line, call, listener);
	if (fd >= 0) {
		add(&line, ",\"accepted\":%u", find(fd) ? find(fd)->number : 0);
		if (address && length)
			add_address(&line, "peer", address, *length);
	}
	close_line(&line, fd < 0 ? fd : 0, err);
	return fd;
}

EXPORT int accept(int fd, struct sockaddr *address, socklen_t *length)
{
	NEXT(accept);
	return accepted("accept", fd, next(fd, address, length), address, length);
}

EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	NEXT(accept4);
	return accepted("accept", fd, next(fd, address, length, flags), address, length);
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	struct line line;
	int result, err;

	NEXT(setsockopt);
	result = next(fd, level, name, value, length);
	err = errno;
	if (find(fd)) {
		open_line(&line, "setsockopt", fd);
		add(&line, ",\"level\":%d,\"option\":%d", level, name);
		close_line(&line, result, err);
	}
	return result;
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	struct line line;
	int result, err;

	NEXT(getsockopt);
	result = next(fd, level, name, value, length);
	err = errno;
	if (find(fd)) {
		open_line(&line, "getsockopt", fd);
		add(&line, ",\"level\":%d,\"option\":%d", level, name);
		if (!result && *length == (socklen_t)sizeof(int))
			add(&line, ",\"value\":%d", *(const int *)value);
		close_line(&line, result, err);
	}
	return result;
}

static ssize_t transferred(const char *call, int fd, int way, const struct iovec *parts, size_t count, ssize_t size)
{
	struct line line;
	int err = errno;

	if (find(fd)) {
		open_line(&line, call, fd);
		add_transfer(&line, fd, way, parts, count, size);
		close_line(&line, size, err);
	}
	return size;
}

EXPORT ssize_t send(int fd, const void *data, size_t size, int flags)
{
	const struct iovec part = { (void *)(uintptr_t)data, size };

	NEXT(send);
	return transferred("send", fd, OUT, &part, 1, next(fd, data, size, flags));
}

EXPORT ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
	const struct iovec part = { (void *)(uintptr_t)data, size };

	NEXT(sendto);
	return transferred("send", fd, OUT, &part, 1, next(fd, data, size, flags, to, length));
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	NEXT(sendmsg);
	return transferred("send", fd, OUT, message->msg_iov, message->msg_iovlen, next(fd, message, flags));
}

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
	const struct iovec part = { (void *)(uintptr_t)data, size };

	NEXT(write);
	return transferred("send", fd, OUT, &part, 1, next(fd, data, size));
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	NEXT(writev);
	return transferred("send", fd, OUT, parts, count > 0 ? (size_t)count : 0, next(fd, parts, count));
}

EXPORT ssize_t recv(int fd, void *data, size_t size, int flags)
{
	const struct iovec part = { data, size };
	ssize_t length;

	NEXT(recv);
	length = next(fd, data, size, flags);
	return transferred(flags & MSG_PEEK ? "peek" : "receive", fd, IN, &part, flags & MSG_PEEK || !data ? 0 : 1, length);
}

EXPORT ssize_t recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *from, socklen_t *length)
{
	const struct iovec part = { data, size };
	ssize_t received;

	NEXT(recvfrom);
	received = next(fd, data, size, flags, from, length);
	return transferred(flags & MSG_PEEK ? "peek" : "receive", fd, IN, &part, flags & MSG_PEEK || !data ? 0 : 1, received);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t length;

	NEXT(recvmsg);
	length = next(fd, message, flags);
	return transferred(flags & MSG_PEEK ? "peek" : "receive", fd, IN, message->msg_iov, flags & MSG_PEEK ? 0 : message->msg_iovlen, length);
}

EXPORT ssize_t read(int fd, void *data, size_t size)
{
	const struct iovec part = { data, size };

	NEXT(read);
	return transferred("receive", fd, IN, &part, 1, next(fd, data, size));
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
	NEXT(readv);
	return transferred("receive", fd, IN, parts, count > 0 ? (size_t)count : 0, next(fd, parts, count));
}

EXPORT int close(int fd)
{
	struct line line;
	int result, err;

	NEXT(close);
	if (!find(fd))
		return next(fd);
	open_line(&line, "close", fd);
	forget(fd); /* before another thread gets the descriptor */
	result = next(fd);
	err = errno;
	close_line(&line, result, err);
	return result;
}

/* Readiness: what poll, select and epoll say of sockets, each as the number of the socket and the events. */

static void open_ready(struct line *line)
{
	open_line(line, "wait", -1);
	add(line, ",\"ready\":[");
}

static void add_ready(struct line *line, int fd, unsigned int events)
{
	if (find(fd))
		add(line, "%s[%u,%u]", line->text[line->used - 1] == '[' ? "" : ",", find(fd)->number, events);
}

static int polled(const struct pollfd *fds, nfds_t count, int result)
{
	struct line line;
	int err = errno;

	open_ready(&line);
	for (nfds_t i = 0; i < count && result > 0; i++) {
		if (fds[i].revents)
			add_ready(&line, fds[i].fd, (unsigned short)fds[i].revents);
	}
	add(&line, "]");
	close_line(&line, result, err);
	return result;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	NEXT(poll);
	return polled(fds, count, next(fds, count, timeout_ms));
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	NEXT(ppoll);
	return polled(fds, count, next(fds, count, timeout, mask));
}

EXPORT int select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct line line;
	int result, err;

	NEXT(select);
	result = next(count, in, out, except, timeout);
	err = errno;
	open_ready(&line);
	for (int fd = 0; fd < count && fd < FD_SETSIZE && result > 0; fd++) {
		unsigned int events = (in && FD_ISSET(fd, in) ? POLLIN : 0) | (out && FD_ISSET(fd, out) ? POLLOUT : 0) |
				      (except && FD_ISSET(fd, except) ? POLLPRI : 0);

		if (events)
			add_ready(&line, fd, events);
	}
	add(&line, "]");
	close_line(&line, result, err);
	return result;
}

/* Which descriptor an epoll's events are of: the program knows it by data of its own. */
static struct watched {
	struct watched *next;
	int epoll, fd;
	epoll_data_t data;
} *watches;

EXPORT int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	struct watched **each = &watches, *own;
	struct line line;
	int result, err;

	NEXT(epoll_ctl);
	result = next(epoll, operation, fd, event);
	err = errno;
	pthread_mutex_lock(&lock);
	while (*each && ((*each)->epoll != epoll || (*each)->fd != fd))
		each = &(*each)->next;
	own = *each;
	if (!result && operation == EPOLL_CTL_DEL && own) {
		*each = own->next;
		free(own);
	} else if (!result && operation != EPOLL_CTL_DEL) {
		if (!own) {
			own = calloc(1, sizeof(*own));
			*each = own;
		}
		if (own)
			*own = (struct watched){ own->next, epoll, fd, event->data };
	}
	pthread_mutex_unlock(&lock);
	if (find(fd)) {
		open_line(&line, "epoll_ctl", fd);
		add(&line, ",\"operation\":%d,\"events\":%u", operation, operation == EPOLL_CTL_DEL || !event ? 0 : event->events);
		close_line(&line, result, err);
	}
	errno = err;
	return result;
}

static int descriptor_of(int epoll, epoll_data_t data)
{
	int fd = -1;

	pthread_mutex_lock(&lock);
	for (const struct watched *each = watches; each && fd < 0; each = each->next) {
		if (each->epoll == epoll && each->data.u64 == data.u64)
			fd = each->fd;
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

static int waited(int epoll, const struct epoll_event *events, int result)
{
	struct line line;
	int err = errno;

	open_ready(&line);
	for (int i = 0; i < result; i++)
		add_ready(&line, descriptor_of(epoll, events[i].data), events[i].events);
	add(&line, "]");
	close_line(&line, result, err);
	return result;
}

EXPORT int epoll_wait(int epoll, struct epoll_event *events, int capacity, int timeout_ms)
{
	NEXT(epoll_wait);
	return waited(epoll, events, next(epoll, events, capacity, timeout_ms));
}

EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int capacity, int timeout_ms, const sigset_t *mask)
{
	NEXT(epoll_pwait);
	return waited(epoll, events, next(epoll, events, capacity, timeout_ms, mask));
}

EXPORT int epoll_pwait2(int epoll, struct epoll_event *events, int capacity, const struct timespec *timeout, const sigset_t *mask)
{
	NEXT(epoll_pwait2);
	return waited(epoll, events, next(epoll, events, capacity, timeout, mask));
}

/* Variants that the compiler's checks of buffers call. */

EXPORT ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
EXPORT ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags);
EXPORT ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length);
EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);

EXPORT ssize_t __read_chk(int fd, void *data, size_t size, size_t room)
{
	return size > room ? abort(), -1 : read(fd, data, size);
}

EXPORT ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags)
{
	return size > room ? abort(), -1 : recv(fd, data, size, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length)
{
	return size > room ? abort(), -1 : recvfrom(fd, data, size, flags, from, length);
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
	return count * sizeof(*fds) > room ? abort(), -1 : poll(fds, count, timeout_ms);
}
