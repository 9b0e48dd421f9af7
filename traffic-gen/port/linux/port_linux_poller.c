/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: waiting for several sockets by epoll. */
#define _GNU_SOURCE
#include "port/port.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/time_units.h"

/* struct epoll_params and EPIOCSPARAMS of Linux 6.9 (include/uapi/linux/eventpoll.h), which older headers lack. */
struct busy_poll_request {
	uint32_t usecs;
	uint16_t budget;
	uint8_t prefer, padding;
};

#define BUSY_POLL_SET _IOW(0x8A, 0x01, struct busy_poll_request)
enum { BUSY_POLL_PACKETS = 64 }; /* more than that need a privilege */

struct port_poller {
	int epoll_fd;
	int capacity;
	struct epoll_event *events;
};

int port_poller_create(int capacity, struct port_poller **poller_out)
{
	struct port_poller *poller = calloc(1, sizeof(*poller));
	int err;

	if (!poller)
		return -ENOMEM;
	poller->capacity = capacity;
	poller->events = calloc((size_t)capacity, sizeof(*poller->events));
	if (!poller->events) {
		free(poller);
		return -ENOMEM;
	}
	poller->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (poller->epoll_fd < 0) {
		err = -errno;
		free(poller->events);
		free(poller);
		return err;
	}
	*poller_out = poller;
	return 0;
}

int port_poller_set_busy_poll(struct port_poller *poller, int busy_poll_us)
{
	struct busy_poll_request request = { .usecs = (uint32_t)busy_poll_us, .budget = BUSY_POLL_PACKETS, .prefer = 1 };

	return ioctl(poller->epoll_fd, BUSY_POLL_SET, &request) ? -ENOTSUP : 0;
}

void port_poller_destroy(struct port_poller *poller)
{
	if (!poller)
		return;
	close(poller->epoll_fd);
	free(poller->events);
	free(poller);
}

static int poller_control(struct port_poller *poller, int operation, port_socket sock, unsigned int events, void *user)
{
	struct epoll_event event = { .data.ptr = user };

	if (events & PORT_POLL_IN)
		event.events |= EPOLLIN;
	if (events & PORT_POLL_OUT)
		event.events |= EPOLLOUT;
	return epoll_ctl(poller->epoll_fd, operation, (int)sock, &event) ? -errno : 0;
}

int port_poller_add(struct port_poller *poller, port_socket sock, unsigned int events, void *user)
{
	return poller_control(poller, EPOLL_CTL_ADD, sock, events, user);
}

int port_poller_remove(struct port_poller *poller, port_socket sock)
{
	return poller_control(poller, EPOLL_CTL_DEL, sock, 0, NULL);
}

static int wait_ns(struct port_poller *poller, int capacity, int64_t timeout_ns)
{
	struct timespec timeout = { .tv_sec = timeout_ns / NS_PER_S, .tv_nsec = timeout_ns % NS_PER_S };
	int count = epoll_pwait2(poller->epoll_fd, poller->events, capacity, timeout_ns < 0 ? NULL : &timeout, NULL);

	if (count < 0 && errno == ENOSYS) { /* before Linux 5.11: milliseconds, rounded up */
		int64_t timeout_ms = timeout_ns < 0 ? -1 : (timeout_ns + 999999) / 1000000;

		count = epoll_wait(poller->epoll_fd, poller->events, capacity, (int)timeout_ms);
	}
	return count;
}

int port_poller_wait(struct port_poller *poller, struct port_event *events, int capacity, int64_t timeout_ns)
{
	int count = wait_ns(poller, capacity < poller->capacity ? capacity : poller->capacity, timeout_ns);

	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < count; i++) {
		uint32_t bits = poller->events[i].events;

		events[i].user = poller->events[i].data.ptr;
		events[i].events = (bits & EPOLLIN ? PORT_POLL_IN : 0u) | (bits & EPOLLOUT ? PORT_POLL_OUT : 0u) |
				   (bits & (EPOLLERR | EPOLLHUP) ? PORT_POLL_ERROR : 0u);
	}
	return count;
}
