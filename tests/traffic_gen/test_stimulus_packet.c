/* SPDX-License-Identifier: Apache-2.0 */
/** Messages of stimulus and response: what is on the wire, and what is refused. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "traffic/stimulus/stimulus_packet.h"

static const struct stimulus response = {
	.is_response = true, .size_bytes = 0x0102, .count = 0x01020305, .number = 0x01020304,
	.sent_tai_ns = INT64_C(0x1112131415161718), .sent_after_ns = 0x2122,
};

static void test_on_the_wire(void)
{
	static const uint8_t wanted[STIMULUS_BYTES_MIN] = {
		'B', 'W', 'S', 'R', 1, 1, 0, 0, 0, 0, 1, 2, 1, 2, 3, 5, 1, 2, 3, 4, 0, 0, 0, 0,
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 0, 0, 0, 0, 0x21, 0x22,
	};
	uint8_t wire[STIMULUS_BYTES_MIN];
	struct stimulus found;

	memset(wire, 0xee, sizeof(wire));
	stimulus_pack(&response, wire);
	CHECK(memcmp(wire, wanted, sizeof(wire)) == 0);
	CHECK_INT(stimulus_parse(wire, &found), 0);
	CHECK_INT(found.is_response, 1);
	CHECK_INT(found.size_bytes, response.size_bytes);
	CHECK_INT(found.count, response.count);
	CHECK_INT(found.number, response.number);
	CHECK_INT(found.sent_tai_ns, response.sent_tai_ns);
	CHECK_INT(found.sent_after_ns, response.sent_after_ns);
}

static void refuse(size_t at, uint8_t value)
{
	uint8_t wire[STIMULUS_BYTES_MIN];
	struct stimulus found;

	stimulus_pack(&response, wire);
	wire[at] = value;
	CHECK_INT(stimulus_parse(wire, &found), -EINVAL);
}

static void test_what_is_none(void)
{
	refuse(0, 'b');
	refuse(4, 2);
	refuse(5, 2);
	refuse(6, 1);
	refuse(9, 0x01);  /* longer than the longest */
	refuse(10, 0);    /* shorter than the shortest: 2 bytes */
	refuse(15, 4);    /* as many as its number */
	refuse(23, 1);
	refuse(32, 0x80); /* sent before it was received */
	refuse(47, 1);
	refuse(5, 0);     /* a stimulus that answers another one */
}

int main(void)
{
	test_on_the_wire();
	test_what_is_none();
	return check_result();
}
