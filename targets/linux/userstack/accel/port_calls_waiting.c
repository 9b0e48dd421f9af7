/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for descriptors: poll, select, epoll. */
#include "port_libc.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/time_units.h"
#include "port_calls.h"
#include "port_clocks.h"
#include "port_epoll.h"
#include "port_poll.h"
#include "port_wait.h"

/* glibc declares the descriptors of poll(2) as written only, and the compiler believes it of the definition, too. */
#ifndef __clang__ /* it has no such warning, and says so */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);
EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room);

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	if (!poll_concerns_stack(fds, count))
		return libc_calls()->ppoll(fds, count, timeout, mask);
	if (!calls_time_fits(timeout))
		return (int)calls_done(-EINVAL);
	wait_lock();
	return (int)calls_unlock(poll_wait(fds, count, calls_until_us(timeout), mask));
}

static const struct timespec *from_ms(int timeout_ms, struct timespec *timeout)
{
	*timeout = (struct timespec){ .tv_sec = (time_t)(timeout_ms / MS_PER_S), .tv_nsec = (long)(timeout_ms % MS_PER_S * NS_PER_MS) };
	return timeout_ms < 0 ? NULL : timeout;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec timeout;

	return ppoll(fds, count, from_ms(timeout_ms, &timeout), NULL);
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
	CALLS_CHECK(count * sizeof(*fds), room);
	return poll(fds, count, timeout_ms);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room)
{
	CALLS_CHECK(count * sizeof(*fds), room);
	return ppoll(fds, count, timeout, mask);
}

EXPORT int pselect(int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask)
{
	if (!select_concerns_stack(count, in, out, except))
		return libc_calls()->pselect(count, in, out, except, timeout, mask);
	if (!calls_time_fits(timeout))
		return (int)calls_done(-EINVAL);
	wait_lock();
	return (int)calls_unlock(select_wait(count, in, out, except, calls_until_us(timeout), mask));
}

int calls_select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval64 *timeout)
{
	uint64_t end_us = UINT64_MAX, us;
	int ready;

	if (timeout && (timeout->seconds < 0 || timeout->microseconds < 0))
		return (int)calls_done(-EINVAL);
	if (timeout) {
		us = clocks_span_us(timeout->seconds, timeout->microseconds);
		end_us = us ? clocks_after_us(us) : 0;
	}
	wait_lock();
	ready = (int)calls_unlock(select_wait(count, in, out, except, end_us, NULL));
	if (timeout && end_us != UINT64_MAX && (ready >= 0 || errno == EINTR)) {
		us = calls_left_us(end_us);
		*timeout = (struct timeval64){ .seconds = (int64_t)(us / US_PER_S), .microseconds = (int64_t)(us % US_PER_S) };
	}
	return ready;
}

EXPORT int select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct timeval64 wide;
	int ready;

	if (!select_concerns_stack(count, in, out, except))
		return libc_calls()->select(count, in, out, except, timeout);
	if (!timeout)
		return calls_select(count, in, out, except, NULL);
	wide = (struct timeval64){ .seconds = timeout->tv_sec, .microseconds = timeout->tv_usec };
	ready = calls_select(count, in, out, except, &wide);
	*timeout = (struct timeval){ .tv_sec = (time_t)wide.seconds, .tv_usec = (suseconds_t)wide.microseconds };
	return ready;
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
	return (int)calls_unlock(err ? err : fd);
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
	struct epoll *epoll;

	if (!epoll_find(epoll_fd))
		return libc_calls()->epoll_ctl(epoll_fd, operation, fd, event);
	wait_lock();
	epoll = epoll_find(epoll_fd); /* another thread may have closed it */
	return (int)calls_unlock(epoll ? epoll_control(epoll, epoll_fd, operation, fd, event) : -EBADF);
}

EXPORT int epoll_pwait2(int epoll_fd, struct epoll_event *events, int capacity, const struct timespec *timeout, const sigset_t *mask)
{
	struct epoll *epoll;

	if (!epoll_find(epoll_fd))
		return libc_calls()->epoll_pwait2(epoll_fd, events, capacity, timeout, mask);
	if (!calls_time_fits(timeout))
		return (int)calls_done(-EINVAL);
	wait_lock();
	epoll = epoll_find(epoll_fd);
	return (int)calls_unlock(epoll ? epoll_wait_for(epoll, epoll_fd, events, capacity, calls_until_us(timeout), mask) : -EBADF);
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
