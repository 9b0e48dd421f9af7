/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that come in parts: of a TCP connection, or of frames. */
#include "traffic/receive/receiver.h"

#include <errno.h>
#include <string.h>

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

int receiver_take_bytes(struct endpoint *endpoint, const uint8_t *bytes, uint32_t length, const struct arrival *arrival)
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
