/* SPDX-License-Identifier: Apache-2.0 */
/** Messages of a ring: what is on the wire, and what is refused. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "loop/ring/ring_message.h"

static const struct ring_message long_one = { .content_bytes = 9, .number = 0x00010203 };

static void test_smallest_is_the_paper_s(void)
{
	const struct ring_message first = { .content_bytes = RING_CONTENT_BYTES_MIN };
	uint8_t wire[RING_HEADER_BYTES + RING_CONTENT_BYTES_MIN + 1];
	static const uint8_t header_and_number[] = { 0, 0, 0, 6, 0, 0, 0, 0 };
	struct ring_message found;
	uint32_t content_bytes;

	memset(wire, 0xee, sizeof(wire));
	ring_message_pack(&first, wire);
	CHECK(memcmp(wire, header_and_number, sizeof(header_and_number)) == 0);
	CHECK_INT(wire[RING_HEADER_BYTES + RING_CONTENT_BYTES_MIN], 0xee);
	CHECK_INT(ring_header_parse(wire, &content_bytes), 0);
	CHECK_INT(content_bytes, 6);
	CHECK_INT(ring_content_parse(wire + RING_HEADER_BYTES, content_bytes, &found), 0);
	CHECK_INT(found.number, 0);
	CHECK_INT(found.is_end, 0);
}

static void test_end_says_how_many(void)
{
	const struct ring_message end = { .content_bytes = 6, .number = RING_COUNT_MAX, .is_end = true };
	uint8_t wire[RING_HEADER_BYTES + 6];
	struct ring_message found;

	ring_message_pack(&end, wire);
	CHECK_INT(ring_content_parse(wire + RING_HEADER_BYTES, 6, &found), 0);
	CHECK_INT(found.number, RING_COUNT_MAX);
	CHECK_INT(found.is_end, 1);
}

static void test_number_beyond_the_last_is_none(void)
{
	const struct ring_message beyond = { .content_bytes = 6, .number = RING_COUNT_MAX };
	const struct ring_message end_beyond = { .content_bytes = 6, .number = RING_COUNT_MAX + 1, .is_end = true };
	uint8_t wire[RING_HEADER_BYTES + 6];
	struct ring_message found;

	ring_message_pack(&beyond, wire);
	CHECK_INT(ring_content_parse(wire + RING_HEADER_BYTES, 6, &found), -EINVAL);
	ring_message_pack(&end_beyond, wire);
	CHECK_INT(ring_content_parse(wire + RING_HEADER_BYTES, 6, &found), -EINVAL);
}

static void test_every_changed_bit_of_a_content_is_refused(void)
{
	uint8_t wire[RING_HEADER_BYTES + 9];
	struct ring_message found;

	for (unsigned int bit = 0; bit < 9 * 8; bit++) {
		ring_message_pack(&long_one, wire);
		wire[RING_HEADER_BYTES + bit / 8] ^= (uint8_t)(1U << bit % 8);
		CHECK_INT(ring_content_parse(wire + RING_HEADER_BYTES, 9, &found), -EINVAL);
	}
}

static void test_sizes_out_of_range_are_refused(void)
{
	static const uint8_t too_small[] = { 0, 0, 0, 5 }, too_large[] = { 0, 0, 0xea, 0x61 }, largest[] = { 0, 0, 0xea, 0x60 };
	static const uint8_t negative[] = { 0xff, 0xff, 0xff, 0xff };
	uint32_t content_bytes = 1;

	CHECK_INT(ring_header_parse(too_small, &content_bytes), -EINVAL);
	CHECK_INT(ring_header_parse(too_large, &content_bytes), -EINVAL);
	CHECK_INT(ring_header_parse(negative, &content_bytes), -EINVAL);
	CHECK_INT(content_bytes, 1);
	CHECK_INT(ring_header_parse(largest, &content_bytes), 0);
	CHECK_INT(content_bytes, RING_CONTENT_BYTES_MAX);
}

int main(void)
{
	test_smallest_is_the_paper_s();
	test_end_says_how_many();
	test_number_beyond_the_last_is_none();
	test_every_changed_bit_of_a_content_is_refused();
	test_sizes_out_of_range_are_refused();
	return check_result();
}
