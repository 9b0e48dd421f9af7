/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that send and receive. */
#include "port_addresses.h"
#include "port_libc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "port_calls.h"
#include "port_clocks.h"
#include "port_passing.h"
#include "port_say.h"
#include "port_sockets.h"
#include "port_transfer.h"
#include "port_wait.h"
#include "port_ways.h"

enum { SENDFILE_BYTES = 65536 };

/* Sending. */

/* Send by the stack, or CALLS_NOT_OURS. */
static int64_t send_by_stack(int fd, const struct msghdr *message, int flags)
{
	struct open_socket *sock = sockets_find(fd);
	struct stack_address to;
	int64_t sent = CALLS_NOT_OURS;
	bool is_stream;

	/* A datagram of a socket that has no port yet is what gives it one. */
	if (!sock || sock->owner == OWNER_KERNEL || sock->owner == OWNER_RELAYED || (sock->owner == OWNER_UNDECIDED && (sock->type != SOCK_DGRAM || !message->msg_name)))
		return CALLS_NOT_OURS;
	sock = calls_enter_to_send(fd);
	if (!sock)
		return CALLS_NOT_OURS;
	sockets_hold(sock);
	if (sock->owner == OWNER_UNDECIDED && address_from_sockaddr(message->msg_name, message->msg_namelen, &to) == 0) {
		int err = ways_datagram_goes_by_kernel(sock, fd, &to);

		sent = err < 0 ? err : CALLS_NOT_OURS;
	}
	if (sock->owner == OWNER_STACK)
		sent = transfer_send(sock, fd, message, flags);
	is_stream = sock->type == SOCK_STREAM;
	sockets_release(sock);
	wait_unlock();
	if (sent == -EPIPE && is_stream && !(flags & MSG_NOSIGNAL))
		raise(SIGPIPE);
	return sent;
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	int64_t sent = send_by_stack(fd, message, flags);

	if (sent != CALLS_NOT_OURS)
		return (ssize_t)calls_done(sent);
	if (passing_takes_ours(message))
		return (ssize_t)calls_done(-EINVAL); /* as of an io_uring, which the kernel does not hand on either */
	return libc_calls()->sendmsg(fd, message, flags);
}

EXPORT ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
	struct iovec part = { (void *)(uintptr_t)data, size };
	const struct msghdr message = {
		.msg_name = (void *)(uintptr_t)to, .msg_namelen = to ? length : 0, .msg_iov = &part, .msg_iovlen = 1,
	};
	int64_t sent = send_by_stack(fd, &message, flags);

	return sent == CALLS_NOT_OURS ? libc_calls()->sendto(fd, data, size, flags, to, length) : (ssize_t)calls_done(sent);
}

EXPORT ssize_t send(int fd, const void *data, size_t size, int flags)
{
	return sendto(fd, data, size, flags, NULL, 0);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	const struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count };
	int64_t sent = sockets_find(fd) && count >= 0 && count <= IOV_MAX ? send_by_stack(fd, &message, 0) : CALLS_NOT_OURS;

	return sent == CALLS_NOT_OURS ? libc_calls()->writev(fd, parts, count) : (ssize_t)calls_done(sent);
}

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
	struct iovec part = { (void *)(uintptr_t)data, size };
	const struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int64_t sent = sockets_find(fd) ? send_by_stack(fd, &message, 0) : CALLS_NOT_OURS;

	/* By the same call: a filter of the program's (seccomp) may know no other. */
	return sent == CALLS_NOT_OURS ? libc_calls()->write(fd, data, size) : (ssize_t)calls_done(sent);
}

/* Messages of a socket that is not ours: those before the first that would take one of ours with it. */
static int send_many_by_kernel(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	unsigned int sendable = 0;

	while (sendable < count && !passing_takes_ours(&messages[sendable].msg_hdr))
		sendable++;
	return count && !sendable ? (int)calls_done(-EINVAL) : libc_calls()->sendmmsg(fd, messages, sendable, flags);
}

EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	unsigned int sent = 0;

	if (!sockets_find(fd))
		return send_many_by_kernel(fd, messages, count, flags);
	for (; sent < count; sent++) {
		ssize_t size = sendmsg(fd, &messages[sent].msg_hdr, flags);

		if (size < 0)
			return sent ? (int)sent : -1;
		messages[sent].msg_len = (unsigned int)size;
	}
	return (int)sent;
}

/* Read a piece of a file and send it; *at: where, or NULL: at the file's own place. Return bytes, 0 at its end, or -1. */
static ssize_t send_piece(int to, int from, const off64_t *at, size_t size)
{
	uint8_t piece[SENDFILE_BYTES];
	ssize_t length, sent;

	size = size < sizeof(piece) ? size : sizeof(piece);
	length = at ? libc_calls()->pread64(from, piece, size, *at) : libc_calls()->read(from, piece, size);
	if (length <= 0)
		return length;
	sent = send(to, piece, (size_t)length, 0);
	if (!at && sent < length && libc_calls()->lseek64(from, (sent < 0 ? 0 : sent) - length, SEEK_CUR) < 0)
		return -1;
	return sent;
}

static bool sends_by_stack(int fd)
{
	bool sends = calls_enter_stack_to_send(fd) != NULL;

	if (sends)
		wait_unlock();
	return sends;
}

EXPORT ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
	ssize_t sent = 0;

	if (!sends_by_stack(to))
		return libc_calls()->sendfile64(to, from, offset, size);
	while ((size_t)sent < size) {
		ssize_t piece = send_piece(to, from, offset, size - (size_t)sent);

		if (piece <= 0)
			return sent ? sent : piece;
		sent += piece;
		if (offset)
			*offset += piece;
	}
	return sent;
}

EXPORT ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
	off64_t at = offset ? *offset : 0;
	ssize_t sent;

	if (!sends_by_stack(to))
		return libc_calls()->sendfile(to, from, offset, size);
	sent = sendfile64(to, from, offset ? &at : NULL, size);
	if (offset && sent > 0)
		*offset = (off_t)at;
	return sent;
}

/* The kernel's socket behind one of the stack's carries nothing; who splices goes back to reading and writing at this. */
EXPORT ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t size, unsigned int flags)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!sockets_is_of_stack(sockets_find(from)) && !sockets_is_of_stack(sockets_find(to)))
		return libc_calls()->splice(from, from_at, to, to_at, size, flags);
	if (!atomic_flag_test_and_set(&said))
		say("splice() is not supported: the program has to read and write");
	return calls_done(-EINVAL);
}

/* Receiving. */

int64_t calls_receive(int fd, struct msghdr *message, int flags)
{
	struct open_socket *sock = calls_enter_stack(fd);
	int64_t received;

	if (!sock)
		return CALLS_NOT_OURS;
	sockets_hold(sock);
	received = transfer_receive(sock, fd, message, flags);
	sockets_release(sock);
	wait_unlock();
	return received;
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	int64_t received = calls_receive(fd, message, flags);

	return received == CALLS_NOT_OURS ? libc_calls()->recvmsg(fd, message, flags) : (ssize_t)calls_done(received);
}

EXPORT ssize_t recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *from, socklen_t *length)
{
	struct iovec part = { data, size };
	bool has_room = from && length && (int)*length >= 0;
	struct msghdr message = { .msg_name = from, .msg_namelen = has_room ? *length : 0, .msg_iov = &part, .msg_iovlen = 1 };
	int64_t received = calls_receive(fd, &message, flags);

	if (received == CALLS_NOT_OURS)
		return libc_calls()->recvfrom(fd, data, size, flags, from, length);
	if (received >= 0 && from && length && !has_room)
		return (ssize_t)calls_done(-EINVAL); /* what was received is gone, as with the kernel */
	if (received >= 0 && has_room)
		*length = message.msg_namelen;
	return (ssize_t)calls_done(received);
}

EXPORT ssize_t recv(int fd, void *data, size_t size, int flags)
{
	struct iovec part = { data, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int64_t received = calls_receive(fd, &message, flags);

	return received == CALLS_NOT_OURS ? libc_calls()->recv(fd, data, size, flags) : (ssize_t)calls_done(received);
}

EXPORT ssize_t read(int fd, void *data, size_t size)
{
	struct iovec part = { data, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int64_t received = size && sockets_find(fd) ? calls_receive(fd, &message, 0) : CALLS_NOT_OURS;

	return received == CALLS_NOT_OURS ? libc_calls()->read(fd, data, size) : (ssize_t)calls_done(received);
}

/* Nothing that is read, unlike nothing that is received, waits for nothing. */
static bool asks_for_bytes(const struct iovec *parts, int count)
{
	for (int i = 0; i < count; i++) {
		if (parts[i].iov_len)
			return true;
	}
	return false;
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count };
	bool is_ours = sockets_find(fd) && count <= IOV_MAX && asks_for_bytes(parts, count);
	int64_t received = is_ours ? calls_receive(fd, &message, 0) : CALLS_NOT_OURS;

	return received == CALLS_NOT_OURS ? libc_calls()->readv(fd, parts, count) : (ssize_t)calls_done(received);
}

EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout)
{
	uint64_t end_us = calls_until_us(timeout);
	unsigned int received = 0;

	if (!calls_use_stack(fd))
		return libc_calls()->recvmmsg(fd, messages, count, flags, timeout);
	if (!calls_time_fits(timeout))
		return (int)calls_done(-EINVAL);
	while (received < count) {
		ssize_t size = recvmsg(fd, &messages[received].msg_hdr, flags & ~MSG_WAITFORONE);

		if (size < 0)
			return received ? (int)received : -1;
		messages[received++].msg_len = (unsigned int)size;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (end_us != UINT64_MAX && clocks_now_us() >= end_us)
			break;
	}
	return (int)received;
}

/* Variants that the compiler's checks of buffers call. */

EXPORT ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
EXPORT ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags);
EXPORT ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length);

EXPORT ssize_t __read_chk(int fd, void *data, size_t size, size_t room)
{
	CALLS_CHECK(size, room);
	return read(fd, data, size);
}

EXPORT ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags)
{
	CALLS_CHECK(size, room);
	return recv(fd, data, size, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length)
{
	CALLS_CHECK(size, room);
	return recvfrom(fd, data, size, flags, from, length);
}

/* Second names, where time has 64 bits in others. */
#if __SIZEOF_LONG__ == 4
EXPORT ssize_t __sendmsg64(int fd, const struct msghdr *message, int flags) __attribute__((alias("sendmsg")));
EXPORT int __sendmmsg64(int fd, struct mmsghdr *messages, unsigned int count, int flags) __attribute__((alias("sendmmsg")));
#endif
