/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/frame.h"

#include <errno.h>
#include <string.h>

#include "base/big_endian.h"

enum { FILL_STEP = 151, FILL_START = 73 }; /* odd step: all 256 values occur in each period */

static const uint8_t hello_magic[4] = { 'B', 'W', 'T', '1' };

/* Mix 64 bits so that each input bit changes half of the output bits (the finaliser of SplitMix64). */
static uint64_t mix64(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The field of the header that says a lateness. */
static int32_t field_of(int64_t lateness_ns)
{
	int64_t size_ns = FRAME_LATENESS_MAX_NS;

	if (lateness_ns < FRAME_LATENESS_MAX_NS && lateness_ns > -FRAME_LATENESS_MAX_NS)
		size_ns = lateness_ns < 0 ? -lateness_ns : lateness_ns;
	if (size_ns > FRAME_LATENESS_EXACT_NS)
		size_ns = FRAME_LATENESS_EXACT_NS + (size_ns - FRAME_LATENESS_EXACT_NS) / FRAME_LATENESS_STEP_NS;
	return (int32_t)(lateness_ns < 0 ? -size_ns : size_ns);
}

static int64_t lateness_of(int32_t field)
{
	int64_t size_ns = field < 0 ? -(int64_t)field : field;

	if (size_ns > FRAME_LATENESS_EXACT_NS)
		size_ns = FRAME_LATENESS_EXACT_NS + (size_ns - FRAME_LATENESS_EXACT_NS) * FRAME_LATENESS_STEP_NS;
	return field < 0 ? -size_ns : size_ns;
}

static uint16_t check_value(const struct frame_header *header, uint64_t nonce, uint16_t stream_id)
{
	uint64_t fields = (uint64_t)header->sequence << 32 | (uint32_t)field_of(header->lateness_ns);
	uint64_t mixed = mix64(mix64(nonce + UINT64_C(0x9e3779b97f4a7c15) * (stream_id + 1u)) ^ fields);

	return (uint16_t)(mixed >> 48);
}

int64_t frame_lateness_ns(int64_t lateness_ns)
{
	return lateness_of(field_of(lateness_ns));
}

bool frame_lateness_valid(int64_t lateness_ns)
{
	return lateness_ns < FRAME_LATENESS_MAX_NS && lateness_ns > -FRAME_LATENESS_MAX_NS;
}

void frame_pack(const struct frame_header *header, uint64_t nonce, uint16_t stream_id, uint8_t wire[FRAME_HEADER_BYTES])
{
	big_endian_put(wire, 4, header->sequence);
	big_endian_put(wire + 4, 4, (uint32_t)field_of(header->lateness_ns));
	big_endian_put(wire + 8, 2, check_value(header, nonce, stream_id));
}

int frame_parse(const uint8_t wire[FRAME_HEADER_BYTES], uint64_t nonce, uint16_t stream_id, struct frame_header *header)
{
	int32_t field = (int32_t)big_endian_get(wire + 4, 4);
	struct frame_header read = { .sequence = (uint32_t)big_endian_get(wire, 4), .lateness_ns = lateness_of(field) };

	if (field == INT32_MIN || big_endian_get(wire + 8, 2) != check_value(&read, nonce, stream_id)) /* no writer says INT32_MIN */
		return -EBADMSG;
	*header = read;
	return 0;
}

void frame_hello_pack(const struct frame_hello *hello, uint8_t wire[FRAME_HELLO_BYTES])
{
	memcpy(wire, hello_magic, sizeof(hello_magic));
	big_endian_put(wire + 4, 2, FRAME_HELLO_VERSION);
	big_endian_put(wire + 6, 2, hello->stream_id);
	big_endian_put(wire + 8, 8, hello->nonce);
	big_endian_put(wire + 16, 4, hello->size_bytes);
	big_endian_put(wire + 20, 4, 0);
}

int frame_hello_parse(const uint8_t wire[FRAME_HELLO_BYTES], struct frame_hello *hello)
{
	if (memcmp(wire, hello_magic, sizeof(hello_magic)) != 0 || big_endian_get(wire + 20, 4) != 0)
		return -EBADMSG;
	if (big_endian_get(wire + 4, 2) != FRAME_HELLO_VERSION)
		return -EPROTONOSUPPORT;
	hello->stream_id = (uint16_t)big_endian_get(wire + 6, 2);
	hello->nonce = big_endian_get(wire + 8, 8);
	hello->size_bytes = (uint32_t)big_endian_get(wire + 16, 4);
	return 0;
}

/* Byte of the fill at a position of a message (position >= FRAME_HEADER_BYTES); repeats every FRAME_FILL_PERIOD bytes. */
static uint8_t frame_fill_byte(size_t position)
{
	return (uint8_t)(position * FILL_STEP + FILL_START);
}

void frame_fill(uint8_t *buffer, size_t size_bytes)
{
	for (size_t i = 0; i < size_bytes; i++)
		buffer[i] = frame_fill_byte(i);
}

bool frame_fill_matches(const uint8_t *bytes, size_t size_bytes, size_t position)
{
	for (size_t i = 0; i < size_bytes; i++) {
		if (bytes[i] != frame_fill_byte(position + i))
			return false;
	}
	return true;
}
