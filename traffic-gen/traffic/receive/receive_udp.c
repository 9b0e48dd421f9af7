/* SPDX-License-Identifier: Apache-2.0 */
/* What a UDP socket brings: each datagram is a message. */
#include "traffic/receive/receiver.h"

enum { BUFFER_BYTES = 2 * 1024 * 1024 };

int receiver_listen_udp(struct acceptor *acceptor, struct incoming *incoming)
{
	struct address local = address_at(&incoming->receiver->plan->consumer, incoming->port);
	struct endpoint *endpoint = &incoming->endpoints[0];
	port_socket sock;
	int err = port_udp_open(&local, &sock);

	(void)acceptor;
	if (err)
		return err;
	port_socket_set_receive_buffer(sock, BUFFER_BYTES); /* a smaller one is not an error: loss is counted */
	receiver_activate(endpoint, incoming, sock);
	return receiver_watch(endpoint);
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

void receiver_read_udp(struct receiver *receiver, struct endpoint *endpoint)
{
	struct incoming *incoming = endpoint->incoming;
	struct port_received received = { .unstamped = !receiver->plan->capture_stamps };
	int64_t length = port_recv(endpoint->sock, receiver->scratch, RECEIVER_SCRATCH_BYTES, &received);
	struct arrival arrival;

	if (length < 0)
		return; /* nothing there, or an error of an earlier datagram: reading it clears it */
	arrival = receiver_arrival(receiver, &received);
	if (!address_same_ip(&received.source, &incoming->account.producer->address)) {
		tally_add(&receiver->hostile.foreign_connections, 1);
		return;
	}
	take_datagram(incoming, receiver->scratch, (uint32_t)length, &arrival);
}
