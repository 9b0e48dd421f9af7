/* SPDX-License-Identifier: Apache-2.0 */
/** Fuzz target: what comes to a node of a ring. What is taken is the same again once it is packed. */
#include <string.h>

#include "fuzz.h"
#include "loop/ring/ring_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t wire[RING_BYTES_MAX];
	struct ring_message found;
	uint32_t content_bytes;

	if (size < RING_HEADER_BYTES || ring_header_parse(data, &content_bytes))
		return 0;
	promise(content_bytes >= RING_CONTENT_BYTES_MIN && content_bytes <= RING_CONTENT_BYTES_MAX);
	if (size < RING_HEADER_BYTES + content_bytes || ring_content_parse(data + RING_HEADER_BYTES, content_bytes, &found))
		return 0;
	promise(found.content_bytes == content_bytes && found.number < (uint32_t)RING_COUNT_MAX + found.is_end);
	ring_message_pack(&found, wire);
	promise(memcmp(wire, data, RING_HEADER_BYTES + content_bytes) == 0);
	return 0;
}
