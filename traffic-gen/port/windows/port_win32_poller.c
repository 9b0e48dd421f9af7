/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: waiting for several sockets by WSAPoll. */
#include "port/port.h"

#include <winsock2.h>
#include <windows.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "port/windows/port_win32_socket_errno.h"

#define WAIT_SLICE_MS INT64_C(10)      /* how soon a socket that another thread adds is looked at */
#define SHORT_WAIT_NS INT64_C(200000)  /* one look and one short sleep, where less than 1 ms is left */

struct port_poller {
	CRITICAL_SECTION lock; /* of entries, users and count */
	int capacity;
	int count;
	WSAPOLLFD *entries;
	void **users;
	WSAPOLLFD *polled; /* copies that the waiting thread uses */
	void **polled_users;
};

int port_poller_create(int capacity, struct port_poller **poller_out)
{
	struct port_poller *poller = calloc(1, sizeof(*poller));

	if (!poller)
		return -ENOMEM;
	InitializeCriticalSection(&poller->lock);
	poller->capacity = capacity;
	poller->entries = calloc((size_t)capacity, sizeof(*poller->entries));
	poller->users = calloc((size_t)capacity, sizeof(*poller->users));
	poller->polled = calloc((size_t)capacity, sizeof(*poller->polled));
	poller->polled_users = calloc((size_t)capacity, sizeof(*poller->polled_users));
	if (!poller->entries || !poller->users || !poller->polled || !poller->polled_users) {
		port_poller_destroy(poller);
		return -ENOMEM;
	}
	*poller_out = poller;
	return 0;
}

int port_poller_set_busy_poll(struct port_poller *poller, int busy_poll_us)
{
	(void)poller;
	(void)busy_poll_us;
	return -ENOTSUP;
}

void port_poller_destroy(struct port_poller *poller)
{
	if (!poller)
		return;
	DeleteCriticalSection(&poller->lock);
	free(poller->entries);
	free(poller->users);
	free(poller->polled);
	free(poller->polled_users);
	free(poller);
}

static SHORT to_poll_events(unsigned int events)
{
	return (SHORT)((events & PORT_POLL_IN ? POLLRDNORM : 0) | (events & PORT_POLL_OUT ? POLLWRNORM : 0));
}

/* Index of a socket, or -1. The lock is held. */
static int find(const struct port_poller *poller, port_socket sock)
{
	for (int i = 0; i < poller->count; i++) {
		if (poller->entries[i].fd == (SOCKET)sock)
			return i;
	}
	return -1;
}

int port_poller_add(struct port_poller *poller, port_socket sock, unsigned int events, void *user)
{
	int err = 0;

	EnterCriticalSection(&poller->lock);
	if (poller->count == poller->capacity) {
		err = -ENOSPC;
	} else {
		poller->entries[poller->count] = (WSAPOLLFD){ .fd = (SOCKET)sock, .events = to_poll_events(events) };
		poller->users[poller->count++] = user;
	}
	LeaveCriticalSection(&poller->lock);
	return err;
}

int port_poller_remove(struct port_poller *poller, port_socket sock)
{
	int index;

	EnterCriticalSection(&poller->lock);
	index = find(poller, sock);
	if (index >= 0) {
		poller->count--;
		poller->entries[index] = poller->entries[poller->count];
		poller->users[index] = poller->users[poller->count];
	}
	LeaveCriticalSection(&poller->lock);
	return index >= 0 ? 0 : -ENOENT;
}

static int copy_entries(struct port_poller *poller)
{
	int count;

	EnterCriticalSection(&poller->lock);
	count = poller->count;
	memcpy(poller->polled, poller->entries, (size_t)count * sizeof(*poller->polled));
	memcpy(poller->polled_users, poller->users, (size_t)count * sizeof(*poller->polled_users));
	LeaveCriticalSection(&poller->lock);
	return count;
}

/* Look once, for at most a slice. @return sockets with events, or -errno */
static int poll_slice(struct port_poller *poller, int count, int64_t left_ns)
{
	int64_t left_ms = left_ns / NS_PER_MS;
	int ready = 0;

	if (count > 0)
		ready = WSAPoll(poller->polled, (ULONG)count, (INT)(left_ms < WAIT_SLICE_MS ? left_ms : WAIT_SLICE_MS));
	else
		port_sleep_ns(left_ms < WAIT_SLICE_MS ? left_ns : WAIT_SLICE_MS * NS_PER_MS);
	if (ready == SOCKET_ERROR)
		return winsock_last_errno();
	if (ready == 0 && left_ms == 0 && left_ns > 0)
		port_sleep_ns(left_ns < SHORT_WAIT_NS ? left_ns : SHORT_WAIT_NS);
	return ready;
}

static int collect(const struct port_poller *poller, int count, struct port_event *events, int capacity)
{
	int found = 0;

	for (int i = 0; i < count && found < capacity; i++) {
		SHORT bits = poller->polled[i].revents;

		if (bits == 0)
			continue;
		events[found].user = poller->polled_users[i];
		events[found++].events = (bits & POLLRDNORM ? PORT_POLL_IN : 0u) | (bits & POLLWRNORM ? PORT_POLL_OUT : 0u) |
					 (bits & (POLLERR | POLLHUP | POLLNVAL) ? PORT_POLL_ERROR : 0u);
	}
	return found;
}

int port_poller_wait(struct port_poller *poller, struct port_event *events, int capacity, int64_t timeout_ns)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + timeout_ns;

	for (;;) {
		int64_t left_ns = timeout_ns < 0 ? WAIT_SLICE_MS * NS_PER_MS
						 : deadline_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int count = copy_entries(poller);
		int ready = poll_slice(poller, count, left_ns > 0 ? left_ns : 0);

		if (ready < 0)
			return ready;
		if (ready > 0)
			return collect(poller, count, events, capacity);
		if (left_ns <= 0 || port_stop_requested())
			return 0;
	}
}
