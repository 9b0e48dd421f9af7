/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes round a ring: a header of 4 bytes, the size of the content, and the content: 6 bytes and more (the paper's are 4 and 6),
 * its number, a check of it, and bytes that follow from both. The last message of all says how many there were.
 */
#ifndef BW_RING_MESSAGE_H
#define BW_RING_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	RING_HEADER_BYTES = 4,
	RING_CONTENT_BYTES_MIN = 6,
	RING_CONTENT_BYTES_MAX = 60000, /* a datagram has room for both */
	RING_BYTES_MAX = RING_HEADER_BYTES + RING_CONTENT_BYTES_MAX,
	RING_COUNT_MAX = 10000000,
};

struct ring_message {
	uint32_t content_bytes;
	uint32_t number; /* 0..RING_COUNT_MAX - 1; of the end: how many there were, 0..RING_COUNT_MAX */
	bool is_end;
};

/** Write header and content. */
void ring_message_pack(const struct ring_message *message, uint8_t wire[]);

/** Read the size of the content. @return 0, or -EINVAL: beyond what is allowed */
int ring_header_parse(const uint8_t wire[static RING_HEADER_BYTES], uint32_t *content_bytes);

/** Read a content, of which each byte is looked at. @return 0, or -EINVAL: it is none */
int ring_content_parse(const uint8_t content[], uint32_t content_bytes, struct ring_message *message);

#endif
