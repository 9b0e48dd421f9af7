/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/receive/receiver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS INT64_C(100000000) /* 100 ms: how soon a stop is seen */

enum { EVENTS_MAX = 64, UDP_BUFFER_BYTES = 2 * 1024 * 1024 };

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
	if (err) {
		free(receiver->scratch);
		receiver->scratch = NULL;
	}
	return err;
}

void receiver_close(struct receiver *receiver)
{
	port_poller_destroy(receiver->poller);
	free(receiver->scratch);
	receiver->poller = NULL;
	receiver->scratch = NULL;
}

static void activate(struct endpoint *endpoint, struct incoming *incoming, port_socket sock)
{
	endpoint->incoming = incoming;
	endpoint->sock = sock;
	endpoint->fresh = true;
	endpoint->position = 0;
	atomic_store_explicit(&endpoint->state, ENDPOINT_ACTIVE, memory_order_release);
}

static int watch(struct endpoint *endpoint)
{
	struct receiver *receiver = endpoint->incoming->receiver;

	if (receiver->plan->capture_stamps)
		port_socket_stamp_receive(endpoint->sock); /* what gets no stamp is not counted in receive_stack */
	return port_poller_add(receiver->poller, endpoint->sock, PORT_POLL_IN, endpoint);
}

int receiver_open_udp(struct incoming *incoming)
{
	struct address local = { incoming->receiver->plan->consumer.ipv4, incoming->port };
	struct endpoint *endpoint = &incoming->endpoints[0];
	port_socket sock;
	int err = port_udp_open(&local, &sock);

	if (err)
		return err;
	port_socket_set_receive_buffer(sock, UDP_BUFFER_BYTES); /* a smaller one is not an error: loss is counted */
	activate(endpoint, incoming, sock);
	return watch(endpoint);
}

static void retire(struct endpoint *endpoint)
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
		activate(endpoint, incoming, sock);
		err = watch(endpoint); /* from here on the thread may use it */
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
			retire(&incoming->endpoints[i]);
	}
}

/* The producer has a new connection: let older ones run dry, so that a dead one does not stay for ever. */
static void supersede_others(struct endpoint *endpoint)
{
	struct incoming *incoming = endpoint->incoming;

	endpoint->fresh = false;
	for (int i = 0; i < RECEIVER_CONNECTIONS_MAX; i++) {
		struct endpoint *other = &incoming->endpoints[i];

		if (other != endpoint && atomic_load_explicit(&other->state, memory_order_acquire) == ENDPOINT_ACTIVE &&
		    !other->fresh)
			port_tcp_shutdown_input(other->sock);
	}
}

/*
 * Take the part of a read that belongs to the current message. Returns the bytes used, or -EBADMSG when the stream of
 * bytes cannot be trusted any more.
 */
static int64_t take_part(struct endpoint *endpoint, const uint8_t *bytes, uint32_t length)
{
	struct incoming *incoming = endpoint->incoming;
	uint32_t size_bytes = incoming->account.stream->size_bytes;
	uint32_t used = 0, part;

	if (endpoint->position < FRAME_HEADER_BYTES) {
		struct frame_header header;

		used = FRAME_HEADER_BYTES - endpoint->position;
		if (used > length)
			used = length;
		memcpy(endpoint->header + endpoint->position, bytes, used);
		endpoint->position += used;
		if (endpoint->position < FRAME_HEADER_BYTES)
			return used;
		if (frame_parse(endpoint->header, incoming->receiver->plan->nonce, incoming->account.stream->id, &header) != 0)
			return -EBADMSG;
	}
	part = size_bytes - endpoint->position;
	if (part > length - used)
		part = length - used;
	if (incoming->receiver->check_fill && !frame_fill_matches(bytes + used, part, endpoint->position))
		return -EBADMSG;
	endpoint->position += part;
	return used + part;
}

/* Enter the message whose last byte has come. The header was checked when it came. */
static void complete_message(struct endpoint *endpoint, const struct arrival *arrival)
{
	struct incoming *incoming = endpoint->incoming;
	struct frame_header header;

	endpoint->position = 0;
	if (frame_parse(endpoint->header, incoming->receiver->plan->nonce, incoming->account.stream->id, &header) == 0)
		account_take(&incoming->account, &header, arrival, &incoming->receiver->hostile);
}

/* Cut what was read into messages. The kernel stamp is that of the last byte: it belongs to a message that ends there. */
static int take_bytes(struct endpoint *endpoint, const uint8_t *bytes, uint32_t length, const struct arrival *arrival)
{
	uint32_t size_bytes = endpoint->incoming->account.stream->size_bytes;

	while (length > 0) {
		int64_t used = take_part(endpoint, bytes, length);

		if (used < 0)
			return (int)used;
		bytes += used;
		length -= (uint32_t)used;
		if (endpoint->position == size_bytes) {
			struct arrival own = *arrival;

			if (length > 0)
				own.stamp_tai_ns = 0;
			complete_message(endpoint, &own);
		}
	}
	return 0;
}

static struct arrival arrival_now(struct receiver *receiver, const struct port_received *received)
{
	int64_t system_tai_ns = stepwatch_tai_now_ns(&receiver->watch, receiver->tai);
	struct arrival arrival = { .now_tai_ns = own_clock_from_system_tai_ns(receiver->own_clock, system_tai_ns) };

	if (received->stamp_realtime_ns)
		arrival.stamp_tai_ns = arrival.now_tai_ns - system_tai_ns +
				       port_tai_from_realtime_ns(receiver->tai, received->stamp_realtime_ns);
	return arrival;
}

static void read_tcp(struct receiver *receiver, struct endpoint *endpoint)
{
	struct port_received received = { 0 };
	int64_t length = port_recv(endpoint->sock, receiver->scratch, RECEIVER_SCRATCH_BYTES,
				   receiver->plan->capture_stamps ? &received : NULL);
	struct arrival arrival;

	if (length == -EAGAIN)
		return;
	if (length <= 0) {
		if (endpoint->position)
			tally_add(&receiver->hostile.truncated, 1);
		retire(endpoint);
		return;
	}
	arrival = arrival_now(receiver, &received);
	if (endpoint->fresh)
		supersede_others(endpoint);
	if (take_bytes(endpoint, receiver->scratch, (uint32_t)length, &arrival) != 0) {
		tally_add(&receiver->hostile.bad_check, 1);
		retire(endpoint);
	}
}

static void take_datagram(struct incoming *incoming, const uint8_t *bytes, uint32_t length,
			  const struct arrival *arrival)
{
	struct receiver *receiver = incoming->receiver;
	const struct stream *stream = incoming->account.stream;
	struct frame_header header;

	if (length != stream->size_bytes) {
		tally_add(length < stream->size_bytes ? &receiver->hostile.truncated : &receiver->hostile.oversized, 1);
		return;
	}
	if (frame_parse(bytes, receiver->plan->nonce, stream->id, &header) != 0 ||
	    (receiver->check_fill && !frame_fill_matches(bytes + FRAME_HEADER_BYTES, length - FRAME_HEADER_BYTES,
							 FRAME_HEADER_BYTES))) {
		tally_add(&receiver->hostile.bad_check, 1);
		return;
	}
	account_take(&incoming->account, &header, arrival, &receiver->hostile);
}

static void read_udp(struct receiver *receiver, struct endpoint *endpoint)
{
	struct incoming *incoming = endpoint->incoming;
	struct port_received received = { 0 };
	int64_t length = port_recv(endpoint->sock, receiver->scratch, RECEIVER_SCRATCH_BYTES, &received);
	struct arrival arrival;

	if (length < 0)
		return; /* nothing there, or an error of an earlier datagram: reading it clears it */
	arrival = arrival_now(receiver, &received);
	if (received.source.ipv4 != incoming->account.producer->address.ipv4) {
		tally_add(&receiver->hostile.foreign_connections, 1);
		return;
	}
	take_datagram(incoming, receiver->scratch, (uint32_t)length, &arrival);
}

void receiver_run(void *argument)
{
	struct receiver *receiver = argument;
	struct port_event events[EVENTS_MAX];

	stepwatch_init(&receiver->watch, receiver->tai);
	while (!atomic_load_explicit(receiver->stop, memory_order_relaxed)) {
		int count = port_poller_wait(receiver->poller, events, EVENTS_MAX, WAIT_NS);

		for (int i = 0; i < count; i++) {
			struct endpoint *endpoint = events[i].user;

			if (atomic_load_explicit(&endpoint->state, memory_order_acquire) != ENDPOINT_ACTIVE)
				continue;
			if (endpoint->incoming->account.stream->transport == TRANSPORT_UDP)
				read_udp(receiver, endpoint);
			else
				read_tcp(receiver, endpoint);
		}
		stepwatch_tai_now_ns(&receiver->watch, receiver->tai);
		tally_raise(&receiver->clock_steps, receiver->watch.count);
	}
}
