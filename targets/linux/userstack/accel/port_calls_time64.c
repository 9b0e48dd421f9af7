/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same calls with time of 64 bits, where the C library has two forms of them (ARM): a program has the one that it was compiled
 * for, and libraries in it may have the other. Those without time in them have a second name alone.
 */
#include "port_libc.h"

#include <stdlib.h>

#include "port_calls.h"
#include "port_epoll.h"
#include "port_poll.h"
#include "port_sockets.h"

struct timespec *calls_narrow(const struct time64 *time, struct timespec *narrowed)
{
	int64_t s;

	if (!time)
		return NULL;
	s = time->seconds < INT32_MAX ? time->seconds : INT32_MAX;
	*narrowed = (struct timespec){ .tv_sec = (time_t)(s < 0 ? -1 : s), .tv_nsec = time->nanoseconds };
	return narrowed;
}

/* Control messages of the kernel's sockets have times of the caller's size: the C library's own form has to see them. */
EXPORT ssize_t __recvmsg64(int fd, struct msghdr *message, int flags)
{
	int64_t received = calls_receive(fd, message, flags);

	return received == CALLS_NOT_OURS ? libc_calls()->__recvmsg64(fd, message, flags) : (ssize_t)calls_done(received);
}

EXPORT int __recvmmsg64(int fd, struct mmsghdr *messages, unsigned int count, int flags, struct time64 *timeout)
{
	struct timespec narrowed;

	if (!calls_use_stack(fd))
		return libc_calls()->__recvmmsg64(fd, messages, count, flags, timeout);
	return recvmmsg(fd, messages, count, flags, calls_narrow(timeout, &narrowed));
}

EXPORT int __ppoll64(struct pollfd *fds, nfds_t count, const struct time64 *timeout, const sigset_t *mask)
{
	struct timespec narrowed;

	if (!poll_concerns_stack(fds, count))
		return libc_calls()->__ppoll64(fds, count, timeout, mask);
	return ppoll(fds, count, calls_narrow(timeout, &narrowed), mask);
}

EXPORT int __ppoll64_chk(struct pollfd *fds, nfds_t count, const struct time64 *timeout, const sigset_t *mask, size_t room)
{
	if (count * sizeof(*fds) > room)
		abort();
	return __ppoll64(fds, count, timeout, mask);
}

EXPORT int __pselect64(int count, fd_set *in, fd_set *out, fd_set *except, const struct time64 *timeout, const sigset_t *mask)
{
	struct timespec narrowed;

	if (!select_concerns_stack(count, in, out, except))
		return libc_calls()->__pselect64(count, in, out, except, timeout, mask);
	return pselect(count, in, out, except, calls_narrow(timeout, &narrowed), mask);
}

EXPORT int __select64(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval64 *timeout)
{
	if (!select_concerns_stack(count, in, out, except))
		return libc_calls()->__select64(count, in, out, except, timeout);
	return calls_select(count, in, out, except, timeout);
}

EXPORT int __epoll_pwait2_time64(int epoll_fd, struct epoll_event *events, int capacity, const struct time64 *timeout, const sigset_t *mask)
{
	struct timespec narrowed;

	if (!epoll_find(epoll_fd))
		return libc_calls()->__epoll_pwait2_time64(epoll_fd, events, capacity, timeout, mask);
	return epoll_pwait2(epoll_fd, events, capacity, calls_narrow(timeout, &narrowed), mask);
}
