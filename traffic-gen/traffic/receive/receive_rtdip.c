/* SPDX-License-Identifier: Apache-2.0 */
/* What RTDiP brings: the frames of all streams of a thread by their priorities, put together to messages; and the grants for more
 * of them (rtdip_flow.h). */
#include "traffic/receive/receiver.h"

#include <errno.h>
#include <stdlib.h>

#include "numbers.h"
#include "traffic/rtdip_fragment.h"

enum {
	POLLED, /* of the thread's first stream: the descriptor of all of them */
	PARTS,  /* of each stream: what is there of the current message */
};

enum { SMALL_FRAME_BYTES = 1480, SMALL_RECORD_BYTES = 2048 };

/* A ring has room for two messages, also in frames of an MTU of 1500, which take the most. */
static uint32_t ring_bytes_for(const struct stream *stream)
{
	uint64_t wanted_bytes = 2 * ((uint64_t)stream->size_bytes / SMALL_FRAME_BYTES + 1) * SMALL_RECORD_BYTES;
	uint32_t bytes = RTDIP_RING_BYTES;

	while (bytes < wanted_bytes && bytes < RTDIP_RING_MAX_BYTES)
		bytes *= 2;
	return bytes;
}

/* Open the thread's handle by its first stream. */
static int open_handle(struct receiver *receiver, struct incoming *first)
{
	int err, descriptor;

	rtdip_flow_init(&receiver->rtdip_flow, (uint32_t)receiver->plan->nonce);
	receiver->rtdip_ports = calloc(UINT16_MAX + 1, sizeof(struct incoming *));
	if (!receiver->rtdip_ports)
		return -ENOMEM;
	err = rtdip_open(receiver->plan->rtdip_socket, 0, &receiver->rtdip);
	if (err)
		return err;
	descriptor = rtdip_descriptor(receiver->rtdip);
	if (descriptor < 0)
		return descriptor;
	receiver_activate(&first->endpoints[POLLED], first, descriptor);
	return port_poller_add(receiver->poller, descriptor, PORT_POLL_IN, &first->endpoints[POLLED]);
}

/* Low-latency streams take part in no flow control: they go before all that does. */
static int join_flow(struct receiver *receiver, struct incoming *incoming)
{
	const struct stream *stream = incoming->account.stream;

	incoming->flow = -1;
	if (stream->low_latency)
		return 0;
	incoming->flow = rtdip_flow_add(&receiver->rtdip_flow, stream->size_bytes, stream->budget_ns);
	if (incoming->flow < 0)
		return incoming->flow;
	receiver->rtdip_flow_streams[incoming->flow] = incoming;
	return 0;
}

int receiver_listen_rtdip(struct acceptor *acceptor, struct incoming *incoming)
{
	struct receiver *receiver = incoming->receiver;
	int err = receiver->rtdip ? 0 : open_handle(receiver, incoming);

	(void)acceptor;
	if (!err)
		err = rtdip_bind(receiver->rtdip, incoming->port, ring_bytes_for(incoming->account.stream));
	if (err >= 0)
		err = join_flow(receiver, incoming);
	if (err < 0)
		return err;
	incoming->endpoints[PARTS].incoming = incoming;
	receiver->rtdip_ports[incoming->port] = incoming;
	return 0;
}

/* Send the grants that are due. One that cannot be sent is as good as lost: its sender asks. */
static void send_grants(struct receiver *receiver, int64_t now_monotonic_ns)
{
	uint8_t data[RTDIP_GRANT_BYTES];
	struct rtdip_grant grant;
	uint32_t number;

	while (rtdip_flow_grant(&receiver->rtdip_flow, now_monotonic_ns, &number, &grant)) {
		rtdip_grant_pack(&grant, data);
		rtdip_send(receiver->rtdip, &receiver->rtdip_flow.streams[number].from, receiver->rtdip_flow_streams[number]->port,
			   RTDIP_HIGH, data, sizeof(data));
	}
}

static void take_for_flow(struct receiver *receiver, const struct incoming *incoming, const struct rtdip_message *message,
			  const struct rtdip_fragment *fragment, uint32_t length)
{
	int64_t now_monotonic_ns;

	if (incoming->flow < 0 || message->from.port == 0)
		return;
	now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	rtdip_flow_take(&receiver->rtdip_flow, (uint32_t)incoming->flow, &message->from, fragment, length, now_monotonic_ns);
	send_grants(receiver, now_monotonic_ns);
}

int64_t receiver_tend_rtdip(struct receiver *receiver, int64_t wait_max_ns)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	int64_t wait_ns;

	rtdip_flow_tend(&receiver->rtdip_flow, now_monotonic_ns);
	send_grants(receiver, now_monotonic_ns);
	wait_ns = rtdip_flow_deadline_monotonic_ns(&receiver->rtdip_flow) - now_monotonic_ns;
	return wait_ns < wait_max_ns ? wait_ns : wait_max_ns;
}

/* Take a frame's part of a message. One that follows no other begins nothing, and a sender who begins within another's message
 * ends it: the message is lost, which its account shows. */
static void take_fragment(struct receiver *receiver, const struct rtdip_message *message, const struct arrival *arrival)
{
	struct incoming *incoming = receiver->rtdip_ports[message->to_port];
	struct endpoint *parts = &incoming->endpoints[PARTS];
	uint32_t length = (uint32_t)message->size_bytes;
	struct rtdip_fragment fragment;

	if (length < RTDIP_FRAGMENT_HEADER_BYTES) {
		tally_add(&receiver->hostile.truncated, 1);
		return;
	}
	fragment = rtdip_fragment_parse(receiver->scratch);
	length -= RTDIP_FRAGMENT_HEADER_BYTES;
	if (length > incoming->account.stream->size_bytes - fragment.offset ||
	    fragment.offset >= incoming->account.stream->size_bytes) {
		tally_add(&receiver->hostile.oversized, 1);
		return;
	}
	if (length == 0) {
		take_for_flow(receiver, incoming, message, &fragment, length);
		return;
	}
	if (fragment.offset == 0) {
		parts->position = 0;
		parts->message = fragment.message;
		parts->from = message->from;
	} else if (fragment.message != parts->message || fragment.offset != parts->position ||
		   !rtdip_same_address(&parts->from, &message->from)) {
		take_for_flow(receiver, incoming, message, &fragment, length);
		return;
	}
	if (receiver_take_bytes(parts, receiver->scratch + RTDIP_FRAGMENT_HEADER_BYTES, length, arrival) != 0) {
		parts->position = 0;
		tally_add(&receiver->hostile.bad_check, 1);
		return; /* whoever sent it is granted nothing */
	}
	take_for_flow(receiver, incoming, message, &fragment, length);
}

void receiver_read_rtdip(struct receiver *receiver, struct endpoint *endpoint)
{
	struct rtdip_message message;
	int err = 0;

	/* What the handle has sorted by priority already shows in no poller: nothing may stay there. */
	while (!atomic_load_explicit(receiver->stop, memory_order_relaxed) &&
	       (err = rtdip_receive(receiver->rtdip, &message, receiver->scratch, RECEIVER_SCRATCH_BYTES, 0)) == 0) {
		struct port_received received = { 0 };
		struct arrival arrival;

		if (receiver->plan->capture_stamps)
			received.stamp_realtime_ns = port_clock_now_ns(PORT_CLOCK_REALTIME) -
						     (port_clock_now_ns(PORT_CLOCK_MONOTONIC) - message.received_monotonic_ns);
		arrival = receiver_arrival(receiver, &received);
		take_fragment(receiver, &message, &arrival);
	}
	/* Nothing comes any more, and what stays readable would keep the thread awake, at its priority. */
	if (err == -EPIPE)
		port_poller_remove(receiver->poller, endpoint->sock);
}
