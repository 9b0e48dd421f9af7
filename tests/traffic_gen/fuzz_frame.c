/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: what comes from the network. Each reader refuses bytes, or gives values that its writer turns into the
 * same bytes again.
 */
#include <string.h>

#include "fuzz.h"
#include "traffic/frame.h"
#include "time/twoway.h"

#define NONCE UINT64_C(0x0123456789abcdef)

static void read_hello(const uint8_t *data)
{
	struct frame_hello hello;
	uint8_t again[FRAME_HELLO_BYTES];

	if (frame_hello_parse(data, &hello))
		return;
	frame_hello_pack(&hello, again);
	promise(memcmp(data, again, sizeof(again)) == 0);
}

/* The stream comes before the header, so that a seed can carry a right check value. */
static void read_header(const uint8_t *data)
{
	uint16_t stream_id = (uint16_t)(data[0] << 8 | data[1]);
	struct frame_header header;
	uint8_t again[FRAME_HEADER_BYTES];

	if (frame_parse(data + 2, NONCE, stream_id, &header))
		return;
	frame_pack(&header, NONCE, stream_id, again);
	promise(memcmp(data + 2, again, sizeof(again)) == 0);
}

static void read_twoway(const uint8_t *data, size_t size)
{
	struct twoway_packet packet;
	uint8_t again[TWOWAY_PACKET_BYTES];

	if (twoway_parse(data, size, &packet))
		return;
	promise(packet.kind == TWOWAY_REQUEST || packet.kind == TWOWAY_REPLY);
	twoway_pack(&packet, again);
	promise(size == sizeof(again) && memcmp(data, again, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= FRAME_HELLO_BYTES)
		read_hello(data);
	if (size >= FRAME_HEADER_BYTES + 2)
		read_header(data);
	read_twoway(data, size);
	return 0;
}
