/* SPDX-License-Identifier: Apache-2.0 */
/* What a TCP connection brings, cut into messages. */
#include "traffic/receive/receiver.h"

#include <errno.h>
#include <string.h>

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

void receiver_read_tcp(struct receiver *receiver, struct endpoint *endpoint)
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
		receiver_retire(endpoint);
		return;
	}
	arrival = receiver_arrival(receiver, &received);
	if (endpoint->fresh)
		supersede_others(endpoint);
	if (take_bytes(endpoint, receiver->scratch, (uint32_t)length, &arrival) != 0) {
		tally_add(&receiver->hostile.bad_check, 1);
		receiver_retire(endpoint);
	}
}
