/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 0  size of the content, in bytes
 * 4  number; its highest bit: the end, and the rest says how many there were
 * 8  check of the number
 * 10 fill: each byte follows from the number and its own place
 */
#include "loop/ring/ring_message.h"

#include <errno.h>

#include "base/big_endian.h"

#define END_BIT (UINT32_C(1) << 31)

/* The high half of a product with the golden ratio: each bit of a number changes half of it. */
static uint16_t check_of(uint32_t number)
{
	return (uint16_t)(((number ^ UINT32_C(0x42574c52)) * UINT32_C(0x9e3779b1)) >> 16);
}

static uint8_t fill_at(uint32_t number, uint32_t place)
{
	return (uint8_t)(number + place * 7);
}

void ring_message_pack(const struct ring_message *message, uint8_t wire[])
{
	uint8_t *content = wire + RING_HEADER_BYTES;
	uint32_t word = message->number | (message->is_end ? END_BIT : 0);

	big_endian_put(wire, 4, message->content_bytes);
	big_endian_put(content, 4, word);
	big_endian_put(content + 4, 2, check_of(word));
	for (uint32_t i = RING_CONTENT_BYTES_MIN; i < message->content_bytes; i++)
		content[i] = fill_at(word, i);
}

int ring_header_parse(const uint8_t wire[static RING_HEADER_BYTES], uint32_t *content_bytes)
{
	uint32_t size_bytes = (uint32_t)big_endian_get(wire, 4);

	if (size_bytes < RING_CONTENT_BYTES_MIN || size_bytes > RING_CONTENT_BYTES_MAX)
		return -EINVAL;
	*content_bytes = size_bytes;
	return 0;
}

int ring_content_parse(const uint8_t content[], uint32_t content_bytes, struct ring_message *message)
{
	uint32_t word;

	if (content_bytes < RING_CONTENT_BYTES_MIN || content_bytes > RING_CONTENT_BYTES_MAX)
		return -EINVAL;
	word = (uint32_t)big_endian_get(content, 4);
	if (big_endian_get(content + 4, 2) != check_of(word))
		return -EINVAL;
	for (uint32_t i = RING_CONTENT_BYTES_MIN; i < content_bytes; i++)
		if (content[i] != fill_at(word, i))
			return -EINVAL;
	*message = (struct ring_message){ content_bytes, word & ~END_BIT, (word & END_BIT) != 0 };
	return message->number < (uint32_t)RING_COUNT_MAX + message->is_end ? 0 : -EINVAL;
}
