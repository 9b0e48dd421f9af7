/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on descriptors of any kind: what closes, copies and asks them. And processes, which inherit them. */
#include "port_libc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "port_calls.h"
#include "port_engine.h"
#include "port_epoll.h"
#include "port_options.h"
#include "port_parent.h"
#include "port_private.h"
#include "port_relays.h"
#include "port_sockets.h"
#include "port_wait.h"

EXPORT int close(int fd)
{
	struct open_socket *sock;

	if (private_owns(fd))
		return (int)calls_done(-EBADF);
	if (epoll_find(fd)) {
		wait_lock();
		epoll_forget(fd);
		wait_unlock();
	}
	sock = calls_enter_as_it_is(fd);
	return sock ? (int)calls_unlock(sockets_close(fd)) : libc_calls()->close(fd);
}

/* What comes is for whoever reads: not for a program that gets a connection as its output. */
static bool is_for_output(int fd)
{
	return fd == STDOUT_FILENO || fd == STDERR_FILENO;
}

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
	else if (sock && (sock->unasked || sock->owner == OWNER_PARENT) && !sockets_is_without_connection(sock))
		parent_use(sock, !is_for_output(to)); /* what exec makes of this process cannot ask */
	return (int)calls_unlock(err ? err : to);
}

static int nearest(int one, int other)
{
	return one < 0 || (other >= 0 && other < one) ? other : one;
}

/* All but what the engine needs; of what the stack has, too. */
EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	if (first > last || first > INT_MAX || flags & ~(int)CLOSE_RANGE_UNSHARE)
		return libc_calls()->close_range(first, last, flags);
	if (flags && libc_calls()->close_range(UINT_MAX, UINT_MAX, flags))
		return -1;
	for (unsigned int at = first;;) {
		int next = nearest(nearest(sockets_next((int)at - 1), epoll_next((int)at - 1)), private_next((int)at - 1));
		bool is_here = next >= 0 && (unsigned int)next <= last;

		if ((is_here ? (unsigned int)next > at : at <= last) &&
		    libc_calls()->close_range(at, is_here ? (unsigned int)next - 1 : last, 0))
			return -1;
		if (!is_here)
			return 0;
		if (!private_owns(next))
			close(next);
		at = (unsigned int)next + 1;
	}
}

EXPORT void closefrom(int first)
{
	close_range(first < 0 ? 0 : (unsigned int)first, UINT_MAX, 0);
}

EXPORT int dup(int fd)
{
	return share(fd, libc_calls()->dup(fd));
}

EXPORT int dup3(int fd, int to, int flags)
{
	int result;

	if (private_owns(to))
		return (int)calls_done(-EBUSY);
	if (fd != to && !(flags & ~O_CLOEXEC) && libc_calls()->fcntl64(fd, F_GETFD) >= 0 && (sockets_find(to) || epoll_find(to))) {
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
	struct open_socket *sock = calls_enter(fd);

	if (sock) {
		sock->nonblocking = nonblocking;
		wait_unlock();
	}
}

/* Whether signals when a socket is ready can be had. @return 0, or -1 with errno */
static int set_async(int fd)
{
	struct open_socket *sock = calls_enter_as_it_is(fd);

	return sock ? (int)calls_unlock(options_set_async(sock)) : 0;
}

/* What a call of fcntl is to change here first. */
static int prepare_fcntl(int fd, int command, const void *argument)
{
	return command == F_SETFL && (intptr_t)argument & O_ASYNC ? set_async(fd) : 0;
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
	return prepare_fcntl(fd, command, argument) ? -1 : note_fcntl(fd, command, argument, libc_calls()->fcntl(fd, command, argument));
}

EXPORT int fcntl64(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return prepare_fcntl(fd, command, argument) ? -1 : note_fcntl(fd, command, argument, libc_calls()->fcntl64(fd, command, argument));
}

/* Bytes that wait, to be read (FIONREAD) or to be acknowledged (TIOCOUTQ); or -errno. */
static int waiting_bytes(const struct open_socket *sock, unsigned long request)
{
	struct stack_info info;

	if (engine_is_gone())
		return 0;
	if (sock->listens)
		return -EINVAL;
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
	sock = request == FIONREAD || request == TIOCOUTQ ? calls_enter_stack(fd) : NULL;
	if (sock) {
		int bytes = waiting_bytes(sock, request);

		if (bytes < 0)
			return (int)calls_unlock(bytes);
		if (!(request == FIONREAD && !bytes && sock->both)) {
			*(int *)argument = bytes;
			return (int)calls_unlock(0);
		}
		wait_unlock();
	}
	if (request == FIOASYNC && *(const int *)argument && set_async(fd))
		return -1;
	result = libc_calls()->ioctl(fd, request, argument);
	if (result == 0 && request == FIONBIO)
		set_nonblocking(fd, *(const int *)argument != 0);
	return result;
}

/* Processes. The child of vfork(2) would change what this library knows of the parent's descriptors: it is a fork. */

EXPORT pid_t vfork(void)
{
	return fork();
}

/* The end of the program: what it has sent is to arrive. */

__attribute__((destructor)) static void finish(void)
{
	wait_lock();
	if (engine_runs()) {
		sockets_close_all();
		relays_close_all();
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

/* Second names, where time has 64 bits in others. */
#if __SIZEOF_LONG__ == 4
EXPORT int __fcntl_time64(int fd, int command, ...) __attribute__((alias("fcntl64")));
EXPORT int __ioctl_time64(int fd, unsigned long request, ...) __THROW __attribute__((alias("ioctl")));
#endif
