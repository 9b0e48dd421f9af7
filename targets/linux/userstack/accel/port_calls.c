/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the C library that this library stands in for. Each asks whether a descriptor is one of a socket here; if not, the C
 * library's own does what it always did.
 */
#include "port_libc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "port_calls.h"
#include "port_children.h"
#include "port_engine.h"
#include "port_epoll.h"
#include "port_options.h"
#include "port_passing.h"
#include "port_poll.h"
#include "port_sockets.h"
#include "port_transfer.h"
#include "port_wait.h"

/* glibc declares the descriptors of poll(2) as written only, and the compiler believes it of the definition, too. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define EXPORT __attribute__((visibility("default")))
#define US_PER_S UINT64_C(1000000)
#define US_PER_MS 1000
#define NS_PER_US 1000

enum { SENDFILE_BYTES = 65536, NOT_OURS = CALLS_NOT_OURS };

int64_t calls_done(int64_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

static int64_t unlock(int64_t result)
{
	wait_unlock();
	return calls_done(result);
}

/* The socket of a descriptor, with the lock; or NULL without it: it is none of ours. */
static struct open_socket *enter_as_it_is(int fd)
{
	struct open_socket *sock = sockets_find(fd);

	if (!sock)
		return NULL;
	wait_lock();
	sock = sockets_find(fd);
	if (!sock)
		wait_unlock();
	return sock;
}

/* The same to use it: what was the parent's is fetched first. What cannot be had is a socket of the kernel without a connection. */
static struct open_socket *enter(int fd)
{
	struct open_socket *sock = enter_as_it_is(fd);

	if (sock && sock->way == WAY_PARENT)
		children_take(sock);
	return sock;
}

/* The same of one that the user-mode stack has: others are the kernel's. */
static struct open_socket *enter_stack(int fd)
{
	struct open_socket *sock = sockets_find(fd);

	if (!sock || (sock->way != WAY_STACK && sock->way != WAY_PARENT))
		return NULL;
	sock = enter(fd);
	if (sock && sock->way != WAY_STACK) {
		wait_unlock();
		return NULL;
	}
	return sock;
}

EXPORT int socket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), fd = libc_calls()->socket(domain, type, protocol), err;

	if (fd < 0 || (domain != AF_INET && domain != AF_INET6) || (kind != SOCK_STREAM && kind != SOCK_DGRAM) ||
	    (protocol && protocol != (kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP)))
		return fd;
	wait_lock();
	err = sockets_add(fd, domain, kind, protocol, (type & SOCK_NONBLOCK) != 0);
	if (err)
		libc_calls()->close(fd);
	return (int)unlock(err ? err : fd);
}

EXPORT int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	struct open_socket *sock = enter(fd);

	return sock ? (int)unlock(sockets_bind(sock, fd, address, length)) : libc_calls()->bind(fd, address, length);
}

EXPORT int listen(int fd, int backlog)
{
	struct open_socket *sock = enter(fd);

	return sock ? (int)unlock(sockets_listen(sock, fd, backlog)) : libc_calls()->listen(fd, backlog);
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	struct open_socket *sock = enter(fd);
	int err;

	if (!sock)
		return libc_calls()->connect(fd, address, length);
	err = sockets_connect(sock, fd, address, length);
	wait_unlock();
	return err == 1 ? libc_calls()->connect(fd, address, length) : (int)calls_done(err);
}


EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	struct open_socket *sock = enter(fd);
	int accepted;

	if (sock && sock->way == WAY_HANDED) {
		sockets_hold(sock);
		accepted = children_accept(sock, fd, address, length, flags);
		sockets_release(sock);
		if (accepted != -ESTALE)
			return (int)unlock(accepted);
	}
	if (!sock || sock->way != WAY_STACK) {
		if (sock)
			wait_unlock();
		return libc_calls()->accept4(fd, address, length, flags);
	}
	if (!sock->listens || flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC))
		return (int)unlock(-EINVAL);
	sockets_hold(sock);
	accepted = sockets_accept(sock, fd, address, length, flags);
	sockets_release(sock);
	return (int)unlock(accepted);
}

EXPORT int accept(int fd, struct sockaddr *address, socklen_t *length)
{
	return accept4(fd, address, length, 0);
}

EXPORT int shutdown(int fd, int how)
{
	struct open_socket *sock = enter_stack(fd);

	if (!sock)
		return libc_calls()->shutdown(fd, how);
	return (int)unlock(engine_is_gone() ? -ENETDOWN : stack_shutdown(sock->stack, how));
}

EXPORT int close(int fd)
{
	struct open_socket *sock;

	if (engine_owns(fd))
		return (int)calls_done(-EBADF);
	if (epoll_find(fd)) {
		wait_lock();
		epoll_forget(fd);
		wait_unlock();
	}
	sock = enter_as_it_is(fd);
	return sock ? (int)unlock(sockets_close(fd)) : libc_calls()->close(fd);
}

/* Names. */

/* What a relayed connection's ends are. Return whether it is one; the address is given then. */
static bool name_relayed(int fd, bool of_peer, struct sockaddr *address, socklen_t *length)
{
	struct open_socket *sock = enter(fd);
	bool is = sock && sock->way == WAY_RELAYED;

	if (is)
		sockets_to_sockaddr(sock->domain, of_peer ? &sock->peer : &sock->local, address, length);
	if (sock)
		wait_unlock();
	return is;
}

EXPORT int getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	struct stack_address local;
	struct open_socket *sock = enter_stack(fd);

	if (!sock)
		return name_relayed(fd, false, address, length) ? 0 : libc_calls()->getsockname(fd, address, length);
	if (!engine_is_gone() && (!sock->port || sock->type == SOCK_STREAM) && !sock->listens && stack_local(sock->stack, &local) == 0) {
		if (!local.port) { /* its connection has failed: the kernel's keeps the port, and no address */
			local.family = sock->domain == AF_INET6 ? STACK_IPV6 : STACK_IPV4;
			local.port = sock->port;
		}
		sockets_to_sockaddr(sock->domain, &local, address, length);
		return (int)unlock(0);
	}
	wait_unlock();
	return libc_calls()->getsockname(fd, address, length);
}

EXPORT int getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
	struct stack_address peer;
	struct open_socket *sock = enter_stack(fd);
	int err;

	if (!sock)
		return name_relayed(fd, true, address, length) ? 0 : libc_calls()->getpeername(fd, address, length);
	err = engine_is_gone() ? -ENOTCONN : stack_peer(sock->stack, &peer);
	if (!err)
		sockets_to_sockaddr(sock->domain, &peer, address, length);
	return (int)unlock(err);
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	struct open_socket *sock = enter(fd);

	return sock ? (int)unlock(options_set(sock, fd, level, name, value, length)) :
		      libc_calls()->setsockopt(fd, level, name, value, length);
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	struct open_socket *sock = enter(fd);

	return sock ? (int)unlock(options_get(sock, fd, level, name, value, length)) :
		      libc_calls()->getsockopt(fd, level, name, value, length);
}

/* Sending. */

/* Send by the stack, or NOT_OURS. */
static int64_t send_by_stack(int fd, const struct msghdr *message, int flags)
{
	struct open_socket *sock = sockets_find(fd);
	struct stack_address to;
	int64_t sent = NOT_OURS;

	/* A datagram of a socket that has no port yet is what gives it one. */
	if (!sock || sock->way == WAY_KERNEL || sock->way == WAY_RELAYED || (sock->way == WAY_UNDECIDED && (sock->type != SOCK_DGRAM || !message->msg_name)))
		return NOT_OURS;
	sock = enter(fd);
	if (!sock)
		return NOT_OURS;
	sockets_hold(sock);
	if (sock->way == WAY_UNDECIDED && sockets_from_sockaddr(message->msg_name, message->msg_namelen, &to) == 0) {
		int err = sockets_datagram_goes_by_kernel(sock, fd, &to);

		sent = err < 0 ? err : NOT_OURS;
	}
	if (sock->way == WAY_STACK)
		sent = transfer_send(sock, fd, message, flags);
	sockets_release(sock);
	wait_unlock();
	if (sent == -EPIPE && !(flags & MSG_NOSIGNAL))
		raise(SIGPIPE);
	return sent;
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	int64_t sent = send_by_stack(fd, message, flags);

	if (sent != NOT_OURS)
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

	return sent == NOT_OURS ? libc_calls()->sendto(fd, data, size, flags, to, length) : (ssize_t)calls_done(sent);
}

EXPORT ssize_t send(int fd, const void *data, size_t size, int flags)
{
	return sendto(fd, data, size, flags, NULL, 0);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	const struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = count > 0 ? (size_t)count : 0 };
	int64_t sent = sockets_find(fd) ? send_by_stack(fd, &message, 0) : NOT_OURS;

	return sent == NOT_OURS ? libc_calls()->writev(fd, parts, count) : (ssize_t)calls_done(sent);
}

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
	return sockets_find(fd) ? send(fd, data, size, 0) : libc_calls()->write(fd, data, size);
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

EXPORT ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
	const struct open_socket *sock = sockets_find(to);
	ssize_t sent = 0;

	if (!sock || sock->way != WAY_STACK)
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
	const struct open_socket *sock = sockets_find(to);
	off64_t at = offset ? *offset : 0;
	ssize_t sent;

	if (!sock || sock->way != WAY_STACK)
		return libc_calls()->sendfile(to, from, offset, size);
	sent = sendfile64(to, from, offset ? &at : NULL, size);
	if (offset && sent > 0)
		*offset = (off_t)at;
	return sent;
}

/* Receiving. */

int64_t calls_receive(int fd, struct msghdr *message, int flags)
{
	struct open_socket *sock = enter_stack(fd);
	int64_t received;

	if (!sock)
		return NOT_OURS;
	sockets_hold(sock);
	received = transfer_receive(sock, fd, message, flags);
	sockets_release(sock);
	wait_unlock();
	return received;
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	int64_t received = calls_receive(fd, message, flags);

	return received == NOT_OURS ? libc_calls()->recvmsg(fd, message, flags) : (ssize_t)calls_done(received);
}

EXPORT ssize_t recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *from, socklen_t *length)
{
	struct iovec part = { data, size };
	struct msghdr message = { .msg_name = from, .msg_namelen = from && length ? *length : 0, .msg_iov = &part, .msg_iovlen = 1 };
	int64_t received = calls_receive(fd, &message, flags);

	if (received == NOT_OURS)
		return libc_calls()->recvfrom(fd, data, size, flags, from, length);
	if (received >= 0 && from && length)
		*length = message.msg_namelen;
	return (ssize_t)calls_done(received);
}

EXPORT ssize_t recv(int fd, void *data, size_t size, int flags)
{
	struct iovec part = { data, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int64_t received = calls_receive(fd, &message, flags);

	return received == NOT_OURS ? libc_calls()->recv(fd, data, size, flags) : (ssize_t)calls_done(received);
}

EXPORT ssize_t read(int fd, void *data, size_t size)
{
	return sockets_find(fd) ? recv(fd, data, size, 0) : libc_calls()->read(fd, data, size);
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = count > 0 ? (size_t)count : 0 };
	int64_t received = sockets_find(fd) ? calls_receive(fd, &message, 0) : NOT_OURS;

	return received == NOT_OURS ? libc_calls()->readv(fd, parts, count) : (ssize_t)calls_done(received);
}

static uint64_t until_us(const struct timespec *timeout)
{
	uint64_t us;

	if (!timeout)
		return UINT64_MAX;
	us = (uint64_t)timeout->tv_sec * US_PER_S + (uint64_t)(timeout->tv_nsec + NS_PER_US - 1) / NS_PER_US;
	return us ? engine_now_us() + us : 0;
}

EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout)
{
	uint64_t end_us = until_us(timeout);
	const struct open_socket *sock = sockets_find(fd);
	unsigned int received = 0;

	if (!sock || sock->way != WAY_STACK)
		return libc_calls()->recvmmsg(fd, messages, count, flags, timeout);
	while (received < count) {
		ssize_t size = recvmsg(fd, &messages[received].msg_hdr, flags & ~MSG_WAITFORONE);

		if (size < 0)
			return received ? (int)received : -1;
		messages[received++].msg_len = (unsigned int)size;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (end_us != UINT64_MAX && engine_now_us() >= end_us)
			break;
	}
	return (int)received;
}

/* Variants that the compiler's checks of buffers call. */

#define CHECK(size, room) \
	if ((size) > (room)) \
		abort()

EXPORT ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
EXPORT ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags);
EXPORT ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length);
EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);
EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room);

EXPORT ssize_t __read_chk(int fd, void *data, size_t size, size_t room)
{
	CHECK(size, room);
	return read(fd, data, size);
}

EXPORT ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags)
{
	CHECK(size, room);
	return recv(fd, data, size, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length)
{
	CHECK(size, room);
	return recvfrom(fd, data, size, flags, from, length);
}

/* Waiting. */

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	if (!poll_concerns_stack(fds, count))
		return libc_calls()->ppoll(fds, count, timeout, mask);
	if (timeout && (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= 1000000000))
		return (int)calls_done(-EINVAL);
	wait_lock();
	return (int)unlock(poll_wait(fds, count, until_us(timeout), mask));
}

static const struct timespec *from_ms(int timeout_ms, struct timespec *timeout)
{
	*timeout = (struct timespec){ .tv_sec = timeout_ms / 1000, .tv_nsec = (long)(timeout_ms % 1000) * US_PER_MS * NS_PER_US };
	return timeout_ms < 0 ? NULL : timeout;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec timeout;

	return ppoll(fds, count, from_ms(timeout_ms, &timeout), NULL);
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
	CHECK(count * sizeof(*fds), room);
	return poll(fds, count, timeout_ms);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room)
{
	CHECK(count * sizeof(*fds), room);
	return ppoll(fds, count, timeout, mask);
}

EXPORT int pselect(int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask)
{
	if (!select_concerns_stack(count, in, out, except))
		return libc_calls()->pselect(count, in, out, except, timeout, mask);
	wait_lock();
	return (int)unlock(select_wait(count, in, out, except, until_us(timeout), mask));
}

EXPORT int select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct timespec left;

	if (!timeout)
		return pselect(count, in, out, except, NULL, NULL);
	if (timeout->tv_sec < 0 || timeout->tv_usec < 0)
		return (int)calls_done(-EINVAL);
	left.tv_sec = timeout->tv_sec + timeout->tv_usec / (long)US_PER_S;
	left.tv_nsec = timeout->tv_usec % (long)US_PER_S * NS_PER_US;
	return pselect(count, in, out, except, &left, NULL);
}

static int note_epoll(int fd)
{
	int err;

	if (fd < 0)
		return fd;
	wait_lock();
	err = epoll_add(fd);
	if (err)
		libc_calls()->close(fd);
	return (int)unlock(err ? err : fd);
}

EXPORT int epoll_create1(int flags)
{
	return note_epoll(libc_calls()->epoll_create1(flags));
}

EXPORT int epoll_create(int size)
{
	return size <= 0 ? (int)calls_done(-EINVAL) : epoll_create1(0);
}

EXPORT int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
	struct epoll *epoll = epoll_find(epoll_fd);

	if (!epoll)
		return libc_calls()->epoll_ctl(epoll_fd, operation, fd, event);
	wait_lock();
	return (int)unlock(epoll_control(epoll, epoll_fd, operation, fd, event));
}

EXPORT int epoll_pwait2(int epoll_fd, struct epoll_event *events, int capacity, const struct timespec *timeout, const sigset_t *mask)
{
	struct epoll *epoll = epoll_find(epoll_fd);

	if (!epoll)
		return libc_calls()->epoll_pwait2(epoll_fd, events, capacity, timeout, mask);
	wait_lock();
	return (int)unlock(epoll_wait_for(epoll, epoll_fd, events, capacity, until_us(timeout), mask));
}

EXPORT int epoll_pwait(int epoll_fd, struct epoll_event *events, int capacity, int timeout_ms, const sigset_t *mask)
{
	struct timespec timeout;

	if (!epoll_find(epoll_fd))
		return libc_calls()->epoll_pwait(epoll_fd, events, capacity, timeout_ms, mask);
	return epoll_pwait2(epoll_fd, events, capacity, from_ms(timeout_ms, &timeout), mask);
}

EXPORT int epoll_wait(int epoll_fd, struct epoll_event *events, int capacity, int timeout_ms)
{
	return epoll_pwait(epoll_fd, events, capacity, timeout_ms, NULL);
}

/* Processes. The child of vfork(2) would change what this library knows of the parent's descriptors: it is a fork. */

EXPORT pid_t vfork(void)
{
	return fork();
}

/* Descriptors. */

/* Note that a new descriptor means what another does. */
static int share(int from, int to)
{
	struct open_socket *sock = sockets_find(from);
	struct epoll *epoll = epoll_find(from);
	int err = 0;

	if (to < 0 || (!sock && !epoll))
		return to;
	wait_lock();
	if (sock)
		err = sockets_share(sock, to);
	else
		err = epoll_share(epoll, to);
	if (err)
		libc_calls()->close(to);
	return (int)unlock(err ? err : to);
}

EXPORT int dup(int fd)
{
	return share(fd, libc_calls()->dup(fd));
}

EXPORT int dup3(int fd, int to, int flags)
{
	int result;

	if (engine_owns(to))
		return (int)calls_done(-EBUSY);
	if (fd != to && libc_calls()->fcntl64(fd, F_GETFD) >= 0 && (sockets_find(to) || epoll_find(to))) {
		wait_lock();
		sockets_forget(to);
		epoll_forget(to);
		wait_unlock();
	}
	result = libc_calls()->dup3(fd, to, flags);
	return fd == to ? result : share(fd, result);
}

EXPORT int dup2(int fd, int to)
{
	return fd == to ? libc_calls()->dup2(fd, to) : dup3(fd, to, 0);
}

static void set_nonblocking(int fd, bool nonblocking)
{
	struct open_socket *sock = enter(fd);

	if (sock) {
		sock->nonblocking = nonblocking;
		wait_unlock();
	}
}

/* What a call of fcntl has changed here. */
static int note_fcntl(int fd, int command, void *argument, int result)
{
	if (result < 0)
		return result;
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		return share(fd, result);
	if (command == F_SETFL)
		set_nonblocking(fd, ((intptr_t)argument & O_NONBLOCK) != 0);
	return result;
}

/* The argument as a word, whatever it stands for. Where words have 32 bits the two differ in what locks are to the C library. */
EXPORT int fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return note_fcntl(fd, command, argument, libc_calls()->fcntl(fd, command, argument));
}

EXPORT int fcntl64(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return note_fcntl(fd, command, argument, libc_calls()->fcntl64(fd, command, argument));
}

/* Bytes that wait, to be read (FIONREAD) or to be acknowledged (TIOCOUTQ). */
static int waiting_bytes(const struct open_socket *sock, unsigned long request)
{
	struct stack_info info;

	if (engine_is_gone())
		return 0;
	if (request == FIONREAD)
		return (int)stack_waiting_bytes(sock->stack);
	return sock->type == SOCK_STREAM && stack_info(sock->stack, &info) == 0 ? (int)(info.unsent_bytes + info.unacknowledged_bytes) : 0;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct open_socket *sock;
	va_list arguments;
	void *argument;
	int result;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	sock = request == FIONREAD || request == TIOCOUTQ ? enter_stack(fd) : NULL;
	if (sock) {
		int bytes = waiting_bytes(sock, request);

		if (!(request == FIONREAD && !bytes && sock->both)) {
			*(int *)argument = bytes;
			return (int)unlock(0);
		}
		wait_unlock();
	}
	result = libc_calls()->ioctl(fd, request, argument);
	if (result == 0 && request == FIONBIO)
		set_nonblocking(fd, *(const int *)argument != 0);
	return result;
}

/* Second names of calls without time of their own; options and requests of each size of time have numbers of their own. */

#if __SIZEOF_LONG__ == 4
EXPORT ssize_t __sendmsg64(int fd, const struct msghdr *message, int flags) __attribute__((alias("sendmsg")));
EXPORT int __sendmmsg64(int fd, struct mmsghdr *messages, unsigned int count, int flags) __attribute__((alias("sendmmsg")));
EXPORT int __setsockopt64(int fd, int level, int name, const void *value, socklen_t length) __THROW __attribute__((alias("setsockopt")));
EXPORT int __getsockopt64(int fd, int level, int name, void *value, socklen_t *length) __THROW __attribute__((alias("getsockopt")));
EXPORT int __fcntl_time64(int fd, int command, ...) __attribute__((alias("fcntl64")));
EXPORT int __ioctl_time64(int fd, unsigned long request, ...) __THROW __attribute__((alias("ioctl")));
#endif

/* The end of the program: what it has sent is to arrive. */

__attribute__((destructor)) static void finish(void)
{
	wait_lock();
	if (engine_runs()) {
		sockets_close_all();
		engine_finish();
	}
	wait_unlock();
}

EXPORT void _exit(int code)
{
	finish();
	libc_calls()->_exit(code);
	abort();
}

EXPORT void _Exit(int code)
{
	_exit(code);
}
