/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages of Winsock, made up by hand from the layout that Microsoft documents; all damage of them is refused. */
#include "check.h"
#include "port/windows/port_win32_control.h"

/* length 24, SOL_SOCKET, SO_TIMESTAMP, 0x0123456789abcdef */
static const uint8_t stamp[24] = { 24, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0x0a, 0x30, 0, 0,
				   0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01 };
/* length 20, IPPROTO_IP, IP_TTL, 64; padded to 24 */
static const uint8_t other[24] = { 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 64, 0, 0, 0, 0xaa, 0xaa, 0xaa, 0xaa };
#define TICKS UINT64_C(0x0123456789abcdef)

static void test_found(void)
{
	uint8_t both[48];
	uint64_t ticks = 0;

	CHECK(control_find_stamp(stamp, sizeof(stamp), &ticks));
	CHECK(ticks == TICKS);
	memcpy(both, other, 24);
	memcpy(both + 24, stamp, 24);
	ticks = 0;
	CHECK(control_find_stamp(both, sizeof(both), &ticks));
	CHECK(ticks == TICKS);
	CHECK(!control_find_stamp(other, sizeof(other), &ticks));
	CHECK(!control_find_stamp(NULL, 0, &ticks));
	/* The last one may come without its padding. */
	CHECK(!control_find_stamp(other, 20, &ticks));
}

static void test_damaged(void)
{
	uint64_t ticks = 0;
	uint8_t bytes[48];

	for (size_t size = 0; size < sizeof(stamp); size++)
		CHECK(!control_find_stamp(stamp, size, &ticks));
	/* Lengths that are too short, go beyond the end, wrap, or are no stamp's. */
	for (unsigned int length = 0; length < 256; length++) {
		memcpy(bytes, stamp, 24);
		memcpy(bytes + 24, stamp, 24);
		bytes[0] = (uint8_t)length;
		CHECK(control_find_stamp(bytes, 24, &ticks) == (length == 24));
	}
	memcpy(bytes, other, 24);
	memset(bytes, 0xff, 8);
	memcpy(bytes + 24, stamp, 24);
	CHECK(!control_find_stamp(bytes, sizeof(bytes), &ticks));
	bytes[0] = 21; /* and the rest of it 0 */
	memset(bytes + 1, 0, 7);
	CHECK(control_find_stamp(bytes, sizeof(bytes), &ticks));
}

static void test_id(void)
{
	static const uint8_t wanted[CONTROL_ID_BYTES] = { 20, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0x0b, 0x30, 0, 0, 4, 3, 2, 1 };
	uint8_t control[CONTROL_ID_BYTES];

	memset(control, 0xaa, sizeof(control));
	control_put_id(control, 0x01020304);
	CHECK(memcmp(control, wanted, sizeof(wanted)) == 0);
}

static void test_time(void)
{
	CHECK_INT(control_monotonic_ns(10000001, 10000000), 1000000100);
	CHECK_INT(control_monotonic_ns(7, 3), 2333333333);
	CHECK_INT(control_monotonic_ns(UINT64_C(10000000) * 86400 * 365 * 100, 10000000), INT64_C(3153600000) * 1000000000);
	CHECK_INT(control_monotonic_ns(UINT64_MAX, 10000000), 0);
	CHECK_INT(control_monotonic_ns(1, 0), 0);
	CHECK_INT(control_monotonic_ns(1, UINT64_MAX), 0);
}

int main(void)
{
	test_found();
	test_damaged();
	test_id();
	test_time();
	return check_result();
}
