/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record what a program asks of its sockets and what it is told: a library that is loaded before its others, and before that of the
 * user-mode stack if there is one. So the same program leaves one record by the kernel and one by the stack, which
 * compare_calls.py holds against each other. A call is a line of JSON in the file that BW_RECORD names: process, thread, call, the
 * socket, values, times, result, errno. Of what was transferred stand bytes and a sum over all bytes of that way so far.
 */
#define _GNU_SOURCE
#include "port_record_line.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

EXPORT int socket(int domain, int type, int protocol)
{
	struct line line;
	int fd;

	NEXT(socket);
	fd = next(domain, type, protocol);
	if (domain != AF_INET && domain != AF_INET6)
		return fd;
	socket_note(fd);
	line_open(&line, "socket", fd, begin_monotonic_ns);
	line_add(&line, ",\"domain\":%d,\"type\":%d", domain, type);
	line_close(&line, fd < 0 ? fd : 0, errno);
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
		if (socket_number(fd)) { \
			int err = errno; \
\
			line_open(&line, #name, fd, begin_monotonic_ns); \
			line_add_address(&line, "address", address, length); \
			line_close(&line, result, err); \
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
		if (socket_number(fd)) { \
			int err = errno; \
\
			line_open(&line, #name, fd, begin_monotonic_ns); \
			line_add(&line, ",\"number\":%d", number); \
			line_close(&line, result, err); \
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
		if (socket_number(fd)) { \
			int err = errno; \
\
			line_open(&line, #name, fd, begin_monotonic_ns); \
			if (!result) \
				line_add_address(&line, "address", address, *length); \
			line_close(&line, result, err); \
		} \
		return result; \
	}

NAME_CALL(getsockname)
NAME_CALL(getpeername)

static int accepted(int listener, int fd, const struct sockaddr *address, const socklen_t *length, int64_t begin_monotonic_ns)
{
	struct line line;
	int err = errno;

	if (!socket_number(listener))
		return fd;
	socket_note(fd);
	line_open(&line, "accept", listener, begin_monotonic_ns);
	if (fd >= 0) {
		line_add(&line, ",\"accepted\":%u", socket_number(fd));
		if (address && length)
			line_add_address(&line, "peer", address, *length);
	}
	line_close(&line, fd < 0 ? fd : 0, err);
	return fd;
}

EXPORT int accept(int fd, struct sockaddr *address, socklen_t *length)
{
	NEXT(accept);
	return accepted(fd, next(fd, address, length), address, length, begin_monotonic_ns);
}

EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	NEXT(accept4);
	return accepted(fd, next(fd, address, length, flags), address, length, begin_monotonic_ns);
}

static void add_value(struct line *line, const void *value, socklen_t length)
{
	int number;

	if (!value || length != (socklen_t)sizeof(number))
		return;
	memcpy(&number, value, sizeof(number));
	line_add(line, ",\"value\":%d", number);
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	struct line line;
	int result, err;

	NEXT(setsockopt);
	result = next(fd, level, name, value, length);
	err = errno;
	if (socket_number(fd)) {
		line_open(&line, "setsockopt", fd, begin_monotonic_ns);
		line_add(&line, ",\"level\":%d,\"option\":%d", level, name);
		add_value(&line, result ? NULL : value, length);
		line_close(&line, result, err);
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
	if (socket_number(fd)) {
		line_open(&line, "getsockopt", fd, begin_monotonic_ns);
		line_add(&line, ",\"level\":%d,\"option\":%d", level, name);
		add_value(&line, result ? NULL : value, result ? 0 : *length);
		line_close(&line, result, err);
	}
	return result;
}

/* Write down a transfer that is over; `begin_monotonic_ns` is its function's. */
#define TRANSFERRED(size, ...) transferred((size), &(const struct transfer){ __VA_ARGS__, .begin_monotonic_ns = begin_monotonic_ns })

static ssize_t transferred(ssize_t size, const struct transfer *transfer)
{
	struct line line;
	int err = errno;

	if (socket_number(transfer->fd)) {
		line_open(&line, transfer->call, transfer->fd, transfer->begin_monotonic_ns);
		line_add_transfer(&line, transfer, size);
		line_close(&line, size, err);
	}
	return size;
}

static const char *receive_name(int flags)
{
	return flags & MSG_PEEK ? "peek" : "receive";
}

EXPORT ssize_t send(int fd, const void *data, size_t size, int flags)
{
	const struct iovec part = { (void *)(uintptr_t)data, size };

	NEXT(send);
	return TRANSFERRED(next(fd, data, size, flags), "send", fd, OUT, flags, &part, 1);
}

EXPORT ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
	const struct iovec part = { (void *)(uintptr_t)data, size };

	NEXT(sendto);
	return TRANSFERRED(next(fd, data, size, flags, to, length), "send", fd, OUT, flags, &part, 1);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	NEXT(sendmsg);
	return TRANSFERRED(next(fd, message, flags), "send", fd, OUT, flags, message->msg_iov, message->msg_iovlen);
}

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
	const struct iovec part = { (void *)(uintptr_t)data, size };

	NEXT(write);
	return TRANSFERRED(next(fd, data, size), "send", fd, OUT, 0, &part, 1);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	NEXT(writev);
	return TRANSFERRED(next(fd, parts, count), "send", fd, OUT, 0, parts, count > 0 ? (size_t)count : 0);
}

EXPORT ssize_t recv(int fd, void *data, size_t size, int flags)
{
	const struct iovec part = { data, size };

	NEXT(recv);
	return TRANSFERRED(next(fd, data, size, flags), receive_name(flags), fd, IN, flags, &part, 1);
}

EXPORT ssize_t recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *from, socklen_t *length)
{
	const struct iovec part = { data, size };

	NEXT(recvfrom);
	return TRANSFERRED(next(fd, data, size, flags, from, length), receive_name(flags), fd, IN, flags, &part, 1);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	NEXT(recvmsg);
	return TRANSFERRED(next(fd, message, flags), receive_name(flags), fd, IN, flags, message->msg_iov, message->msg_iovlen);
}

EXPORT ssize_t read(int fd, void *data, size_t size)
{
	const struct iovec part = { data, size };

	NEXT(read);
	return TRANSFERRED(next(fd, data, size), "receive", fd, IN, 0, &part, 1);
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
	NEXT(readv);
	return TRANSFERRED(next(fd, parts, count), "receive", fd, IN, 0, parts, count > 0 ? (size_t)count : 0);
}

EXPORT int close(int fd)
{
	struct line line;
	int result, err;

	NEXT(close);
	if (!socket_number(fd))
		return next(fd);
	line_open(&line, "close", fd, begin_monotonic_ns);
	socket_forget(fd); /* before another thread gets the descriptor */
	result = next(fd);
	err = errno;
	line_close(&line, result, err);
	return result;
}

/* Variants that the compiler's checks of buffers call. */

EXPORT ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
EXPORT ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags);
EXPORT ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length);

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
