/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "check.h"
#include "traffic/frame.h"

#define NONCE UINT64_C(0x0123456789abcdef)

/* Bytes worked out by hand from docs/native-tools.md; the check value was computed apart, in Python. */
static void test_header_bytes(void)
{
	static const uint8_t expected[FRAME_HEADER_BYTES] = { 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xfe, 0xa8, 0x3f };
	struct frame_header header = { .sequence = 7, .lateness_ns = -2 };
	uint8_t wire[FRAME_HEADER_BYTES];

	frame_pack(&header, NONCE, 31, wire);
	CHECK(memcmp(wire, expected, 8) == 0);
	CHECK_THAT(memcmp(wire + 8, expected + 8, 2) == 0, "check value is %02x%02x", wire[8], wire[9]);
}

static void test_header_round_trip(void)
{
	static const struct frame_header headers[] = {
		{ 0, 0 },         { UINT32_MAX, FRAME_LATENESS_MAX_NS }, { 1, -FRAME_LATENESS_MAX_NS },
		{ 2, -2999999488 }, { 123456, 987654321 },                 { 3, FRAME_LATENESS_EXACT_NS },
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		struct frame_header read = { 0 };
		uint8_t wire[FRAME_HEADER_BYTES];

		frame_pack(&headers[i], NONCE, 6559, wire);
		CHECK_INT(frame_parse(wire, NONCE, 6559, &read), 0);
		CHECK_INT(read.sequence, headers[i].sequence);
		CHECK_INT(read.lateness_ns, headers[i].lateness_ns);
	}
}

/* No writer says -2^31: its check value is that of the largest lateness, by which it would be taken. */
static void test_a_field_that_nobody_writes(void)
{
	struct frame_header header = { .sequence = 7, .lateness_ns = -2 * FRAME_LATENESS_MAX_NS };
	uint8_t wire[FRAME_HEADER_BYTES];

	frame_pack(&header, NONCE, 31, wire);
	CHECK_INT(frame_parse(wire, NONCE, 31, &header), 0);
	CHECK(header.lateness_ns == -FRAME_LATENESS_MAX_NS);
	wire[7] = 0;
	CHECK_INT(frame_parse(wire, NONCE, 31, &header), -EBADMSG);
}

/* Every single damaged bit, another run and another stream must be noticed. A 16-bit check misses one in 65,536. */
static void test_header_damage(void)
{
	struct frame_header header = { .sequence = 1000, .lateness_ns = 5000 };
	uint8_t wire[FRAME_HEADER_BYTES];
	int missed = 0;

	frame_pack(&header, NONCE, 31, wire);
	for (int bit = 0; bit < FRAME_HEADER_BYTES * 8; bit++) {
		struct frame_header read = { 42, 42 };

		wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
		CHECK_INT(frame_parse(wire, NONCE, 31, &read), -EBADMSG);
		CHECK_INT(read.sequence, 42);
		wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (uint64_t nonce = 0; nonce < 10000; nonce++)
		missed += frame_parse(wire, nonce, 31, &header) == 0;
	for (uint16_t id = 10; id < 6559; id++)
		missed += id != 31 && frame_parse(wire, NONCE, id, &header) == 0;
	CHECK_THAT(missed <= 4, "%d of 16548 foreign headers were taken for ours", missed);
}

/* A sender that was stopped for seconds has a lateness, rounded towards 0 by 1.023 us at most. */
static void test_large_lateness(void)
{
	static const int64_t sizes_ns[] = { 0, 5, FRAME_LATENESS_EXACT_NS, INT64_C(2147483647), INT64_C(2600000001),
					    INT64_C(3000000000), FRAME_LATENESS_MAX_NS - FRAME_LATENESS_STEP_NS };

	for (size_t i = 0; i < sizeof(sizes_ns) / sizeof(sizes_ns[0]); i++) {
		int64_t said_ns = frame_lateness_ns(sizes_ns[i]);

		CHECK(said_ns <= sizes_ns[i] && said_ns > sizes_ns[i] - FRAME_LATENESS_STEP_NS);
		CHECK(sizes_ns[i] > FRAME_LATENESS_EXACT_NS || said_ns == sizes_ns[i]);
		CHECK_INT(frame_lateness_ns(-sizes_ns[i]), -said_ns);
		CHECK_INT(frame_lateness_ns(said_ns), said_ns);
		CHECK(frame_lateness_valid(said_ns) && frame_lateness_valid(-said_ns));
	}
}

static void test_saturation(void)
{
	CHECK_INT(frame_lateness_ns(INT64_C(1) << 41), FRAME_LATENESS_MAX_NS);
	CHECK_INT(frame_lateness_ns(INT64_MIN), -FRAME_LATENESS_MAX_NS);
	CHECK_INT(frame_lateness_ns(INT64_MIN + 1), -FRAME_LATENESS_MAX_NS);
	CHECK(!frame_lateness_valid(FRAME_LATENESS_MAX_NS));
	CHECK(!frame_lateness_valid(-FRAME_LATENESS_MAX_NS));
}

static void test_hello(void)
{
	struct frame_hello hello = { .stream_id = 31, .nonce = NONCE, .size_bytes = 1000 }, read = { 0 };
	static const uint8_t expected[FRAME_HELLO_BYTES] = { 'B',  'W',	 'T',  '1',  0,	   2,	 0, 31, 0x01, 0x23, 0x45, 0x67,
							     0x89, 0xab, 0xcd, 0xef, 0,	   0,	 3, 0xe8, 0,  0,    0,	  0 };
	uint8_t wire[FRAME_HELLO_BYTES];

	frame_hello_pack(&hello, wire);
	CHECK(memcmp(wire, expected, sizeof(wire)) == 0);
	CHECK_INT(frame_hello_parse(wire, &read), 0);
	CHECK_INT(read.stream_id, 31);
	CHECK(read.nonce == NONCE);
	CHECK_INT(read.size_bytes, 1000);
	wire[5] = 1;
	CHECK_INT(frame_hello_parse(wire, &read), -EPROTONOSUPPORT);
	wire[5] = 2;
	wire[23] = 1;
	CHECK_INT(frame_hello_parse(wire, &read), -EBADMSG);
	wire[23] = 0;
	wire[0] = 'b';
	CHECK_INT(frame_hello_parse(wire, &read), -EBADMSG);
}

static void test_fill(void)
{
	uint8_t buffer[1000];
	bool seen[256] = { false };
	int values = 0;

	frame_fill(buffer, sizeof(buffer));
	for (int i = 0; i < FRAME_FILL_PERIOD; i++) {
		values += !seen[buffer[i]];
		seen[buffer[i]] = true;
	}
	CHECK_INT(values, 256);
	CHECK(frame_fill_matches(buffer + 10, 600, 10));
	CHECK(frame_fill_matches(buffer + 10, 600, 10 + FRAME_FILL_PERIOD));
	CHECK(!frame_fill_matches(buffer + 10, 600, 11));
	buffer[500] ^= 1;
	CHECK(!frame_fill_matches(buffer + 10, 600, 10));
}

int main(void)
{
	test_header_bytes();
	test_header_round_trip();
	test_a_field_that_nobody_writes();
	test_header_damage();
	test_large_lateness();
	test_saturation();
	test_hello();
	test_fill();
	return check_result();
}
