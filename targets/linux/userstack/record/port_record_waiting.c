/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: readiness of sockets, sleeping, and names that are looked up. */
#define _GNU_SOURCE
#include "port_record_line.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

/* glibc declares the descriptors of poll(2) as written only, and the compiler believes it of the definition, too. */
#ifndef __clang__ /* it has no such warning, and says so */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

static const int64_t NS_PER_S = INT64_C(1000000000), NS_PER_MS = INT64_C(1000000), NS_PER_US = INT64_C(1000);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A wait: when it began and how long it was to last at most, -1: without end. */
struct wait {
	int64_t begin_monotonic_ns, timeout_ns;
};

static int64_t timespec_ns(const struct timespec *time)
{
	return time ? time->tv_sec * NS_PER_S + time->tv_nsec : -1;
}

static int64_t milliseconds_ns(int time_ms)
{
	return time_ms < 0 ? -1 : time_ms * NS_PER_MS;
}

/* Readiness: what poll, select and epoll say of sockets, each as the number of the socket and the events. */

static void open_ready(struct line *line, const struct wait *wait)
{
	line_open(line, "wait", -1, wait->begin_monotonic_ns);
	line_add(line, ",\"timeout_ns\":%lld,\"ready\":[", (long long)wait->timeout_ns);
}

static void add_ready(struct line *line, int fd, unsigned int events)
{
	if (socket_number(fd))
		line_add(line, "%s[%u,%u]", line->text[line->used - 1] == '[' ? "" : ",", socket_number(fd), events);
}

static int polled(const struct pollfd *fds, nfds_t count, int result, struct wait wait)
{
	struct line line;
	int err = errno;

	open_ready(&line, &wait);
	for (nfds_t i = 0; i < count && result > 0; i++) {
		if (fds[i].revents)
			add_ready(&line, fds[i].fd, (unsigned short)fds[i].revents);
	}
	line_add(&line, "]");
	line_close(&line, result, err);
	return result;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	NEXT(poll);
	return polled(fds, count, next(fds, count, timeout_ms), (struct wait){ begin_monotonic_ns, milliseconds_ns(timeout_ms) });
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	NEXT(ppoll);
	return polled(fds, count, next(fds, count, timeout, mask), (struct wait){ begin_monotonic_ns, timespec_ns(timeout) });
}

EXPORT int select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct line line;
	int result, err;
	const int64_t timeout_ns = timeout ? timeout->tv_sec * NS_PER_S + timeout->tv_usec * NS_PER_US : -1; /* Linux writes it */

	NEXT(select);
	const struct wait wait = { begin_monotonic_ns, timeout_ns };
	result = next(count, in, out, except, timeout);
	err = errno;
	open_ready(&line, &wait);
	for (int fd = 0; fd < count && fd < FD_SETSIZE && result > 0; fd++) {
		unsigned int events = (in && FD_ISSET(fd, in) ? POLLIN : 0) | (out && FD_ISSET(fd, out) ? POLLOUT : 0) |
				      (except && FD_ISSET(fd, except) ? POLLPRI : 0);

		if (events)
			add_ready(&line, fd, events);
	}
	line_add(&line, "]");
	line_close(&line, result, err);
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
	if (socket_number(fd)) {
		line_open(&line, "epoll_ctl", fd, begin_monotonic_ns);
		line_add(&line, ",\"operation\":%d,\"events\":%u", operation, operation == EPOLL_CTL_DEL || !event ? 0 : event->events);
		line_close(&line, result, err);
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

static int waited(int epoll, const struct epoll_event *events, int result, struct wait wait)
{
	struct line line;
	int err = errno;

	open_ready(&line, &wait);
	for (int i = 0; i < result; i++)
		add_ready(&line, descriptor_of(epoll, events[i].data), events[i].events);
	line_add(&line, "]");
	line_close(&line, result, err);
	return result;
}

EXPORT int epoll_wait(int epoll, struct epoll_event *events, int capacity, int timeout_ms)
{
	NEXT(epoll_wait);
	return waited(epoll, events, next(epoll, events, capacity, timeout_ms), (struct wait){ begin_monotonic_ns, milliseconds_ns(timeout_ms) });
}

EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int capacity, int timeout_ms, const sigset_t *mask)
{
	NEXT(epoll_pwait);
	return waited(epoll, events, next(epoll, events, capacity, timeout_ms, mask),
		      (struct wait){ begin_monotonic_ns, milliseconds_ns(timeout_ms) });
}

EXPORT int epoll_pwait2(int epoll, struct epoll_event *events, int capacity, const struct timespec *timeout, const sigset_t *mask)
{
	NEXT(epoll_pwait2);
	return waited(epoll, events, next(epoll, events, capacity, timeout, mask), (struct wait){ begin_monotonic_ns, timespec_ns(timeout) });
}

static int slept(int64_t asked_ns, int result, int err, int64_t begin_monotonic_ns)
{
	struct line line;

	line_open(&line, "sleep", -1, begin_monotonic_ns);
	line_add(&line, ",\"timeout_ns\":%lld", (long long)asked_ns);
	line_close(&line, result, err);
	return result;
}

EXPORT unsigned int sleep(unsigned int seconds)
{
	unsigned int left;

	NEXT(sleep);
	left = next(seconds);
	slept(seconds * NS_PER_S, 0, errno, begin_monotonic_ns);
	return left;
}

EXPORT int usleep(useconds_t time_us)
{
	int result;

	NEXT(usleep);
	result = next(time_us);
	return slept(time_us * NS_PER_US, result, errno, begin_monotonic_ns);
}

EXPORT int nanosleep(const struct timespec *asked, struct timespec *left)
{
	int result;

	NEXT(nanosleep);
	result = next(asked, left);
	return slept(timespec_ns(asked), result, errno, begin_monotonic_ns);
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *asked, struct timespec *left)
{
	int64_t asked_ns = timespec_ns(asked);
	int err = errno, error;
	struct timespec now;

	if (flags & TIMER_ABSTIME && clock_gettime(clock, &now) == 0)
		asked_ns = asked_ns > timespec_ns(&now) ? asked_ns - timespec_ns(&now) : 0;
	NEXT(clock_nanosleep);
	error = next(clock, flags, asked, left);
	slept(asked_ns, error ? -1 : 0, error, begin_monotonic_ns);
	errno = err;
	return error;
}

/* @param error  the look-up's own number of it, 0: none */
static void looked_up(const char *name, int error, int64_t begin_monotonic_ns)
{
	struct line line;
	int err = errno;

	line_open(&line, "resolve", -1, begin_monotonic_ns);
	line_add_name(&line, name);
	if (error)
		line_add(&line, ",\"errno\":\"EAI %d\"", error);
	else
		line_add(&line, ",\"result\":0");
	line_write(&line, err);
}

EXPORT int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	int error;

	NEXT(getaddrinfo);
	error = next(name, service, hints, found);
	looked_up(name, error, begin_monotonic_ns);
	return error;
}

EXPORT struct hostent *gethostbyname(const char *name)
{
	struct hostent *found;

	NEXT(gethostbyname);
	found = next(name);
	looked_up(name, found ? 0 : h_errno, begin_monotonic_ns);
	return found;
}

/* The variant that the compiler's checks of buffers call. */
EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
	return count * sizeof(*fds) > room ? abort(), -1 : poll(fds, count, timeout_ms);
}
