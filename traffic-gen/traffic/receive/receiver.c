/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/receive/receiver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS INT64_C(100000000) /* 100 ms: how soon a stop is seen */

enum { EVENTS_MAX = 64 };

int receiver_open(struct receiver *receiver, const struct plan *plan, const struct own_clock *own_clock, int sockets_max,
		  atomic_bool *stop)
{
	int err;

	memset(receiver, 0, sizeof(*receiver));
	receiver->plan = plan;
	receiver->tai = own_clock->tai;
	receiver->own_clock = own_clock;
	receiver->stop = stop;
	receiver->scratch = malloc(RECEIVER_SCRATCH_BYTES);
	if (!receiver->scratch)
		return -ENOMEM;
	memset(receiver->scratch, 0, RECEIVER_SCRATCH_BYTES); /* touch it */
	err = port_poller_create(sockets_max, &receiver->poller);
	if (!err && plan->busy_poll_us)
		err = port_poller_set_busy_poll(receiver->poller, plan->busy_poll_us);
	if (err)
		receiver_close(receiver);
	return err;
}

void receiver_close(struct receiver *receiver)
{
	port_poller_destroy(receiver->poller);
	if (receiver->rtdip)
		rtdip_close(receiver->rtdip);
	free(receiver->rtdip_ports);
	free(receiver->scratch);
	receiver->rtdip = NULL;
	receiver->rtdip_ports = NULL;
	receiver->poller = NULL;
	receiver->scratch = NULL;
}

void receiver_activate(struct endpoint *endpoint, struct incoming *incoming, port_socket sock)
{
	endpoint->incoming = incoming;
	endpoint->sock = sock;
	endpoint->fresh = true;
	endpoint->position = 0;
	atomic_store_explicit(&endpoint->state, ENDPOINT_ACTIVE, memory_order_release);
}

int receiver_watch(struct endpoint *endpoint)
{
	struct receiver *receiver = endpoint->incoming->receiver;

	if (receiver->plan->capture_stamps)
		port_socket_stamp_receive(endpoint->sock); /* what gets no stamp is not counted in receive_stack */
	if (receiver->plan->busy_poll_us && port_socket_set_busy_poll(endpoint->sock, receiver->plan->busy_poll_us))
		return -ENOTSUP;
	return port_poller_add(receiver->poller, endpoint->sock, PORT_POLL_IN, endpoint);
}

void receiver_retire(struct endpoint *endpoint)
{
	port_poller_remove(endpoint->incoming->receiver->poller, endpoint->sock);
	port_socket_close(endpoint->sock);
	endpoint->sock = PORT_SOCKET_NONE;
	atomic_store_explicit(&endpoint->state, ENDPOINT_FREE, memory_order_release);
}

int receiver_adopt(struct incoming *incoming, port_socket sock)
{
	for (int i = 0; i < RECEIVER_CONNECTIONS_MAX; i++) {
		struct endpoint *endpoint = &incoming->endpoints[i];
		int err;

		if (atomic_load_explicit(&endpoint->state, memory_order_acquire) != ENDPOINT_FREE)
			continue; /* only this thread claims, only the receiving thread frees */
		receiver_activate(endpoint, incoming, sock);
		err = receiver_watch(endpoint); /* from here on the thread may use it */
		if (err)
			atomic_store_explicit(&endpoint->state, ENDPOINT_FREE, memory_order_release);
		return err;
	}
	return -EBUSY;
}

void receiver_close_incoming(struct incoming *incoming)
{
	for (int i = 0; i < RECEIVER_CONNECTIONS_MAX; i++) {
		if (atomic_load(&incoming->endpoints[i].state) == ENDPOINT_ACTIVE)
			receiver_retire(&incoming->endpoints[i]);
	}
}

struct arrival receiver_arrival(struct receiver *receiver, const struct port_received *received)
{
	int64_t system_tai_ns = stepwatch_tai_now_ns(&receiver->watch, receiver->tai);
	struct arrival arrival = { .now_tai_ns = own_clock_from_system_tai_ns(receiver->own_clock, system_tai_ns) };

	if (received->stamp_realtime_ns)
		arrival.stamp_tai_ns = arrival.now_tai_ns - system_tai_ns +
				       port_tai_from_realtime_ns(receiver->tai, received->stamp_realtime_ns);
	return arrival;
}

void receiver_run(void *argument)
{
	struct receiver *receiver = argument;
	struct port_event events[EVENTS_MAX];
	int64_t wait_ns = WAIT_NS;

	stepwatch_init(&receiver->watch, receiver->tai);
	while (!atomic_load_explicit(receiver->stop, memory_order_relaxed)) {
		int count = port_poller_wait(receiver->poller, events, EVENTS_MAX, wait_ns);

		for (int i = 0; i < count; i++) {
			struct endpoint *endpoint = events[i].user;

			if (atomic_load_explicit(&endpoint->state, memory_order_acquire) != ENDPOINT_ACTIVE)
				continue;
			endpoint->incoming->transport->receive(receiver, endpoint);
		}
		if (receiver->rtdip)
			wait_ns = receiver_tend_rtdip(receiver, WAIT_NS);
		stepwatch_tai_now_ns(&receiver->watch, receiver->tai);
		tally_raise(&receiver->clock_steps, receiver->watch.count);
	}
}
