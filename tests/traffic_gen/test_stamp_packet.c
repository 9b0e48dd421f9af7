/* SPDX-License-Identifier: Apache-2.0 */
/** STAMP test packets: what is on the wire, what is refused, and its two formats of time. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/time_units.h"
#include "check.h"
#include "ntp/ntp_packet.h"
#include "random.h"
#include "traffic/roundtrip/stamp_packet.h"

#define ERA_1_UTC_NS (INT64_C(2085978496) * NS_PER_S) /* 7 February 2036, 06:28:16: NTP's seconds are 0 again */
#define TAI_UTC_NS (37 * NS_PER_S)

enum { LONG_BYTES = 100 };

static const struct stamp_request request = { .sequence = 0x01020304, .ssid = 0x0b0c, .sent = UINT64_C(0x1112131415161718) };

static void test_request_on_the_wire(void)
{
	static const uint8_t head[16] = { 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 1, 0x0b, 0x0c };
	static const uint8_t known_delay[12] = { 0x80, 252, 0, 8 }, padding[4] = { 0x80, 1, 0, LONG_BYTES - 60 };
	struct stamp_request found = { 0 };
	uint8_t packet[LONG_BYTES];

	for (size_t size_bytes = STAMP_PACKET_BYTES; size_bytes <= LONG_BYTES; size_bytes++) {
		memset(packet, 0xee, sizeof(packet));
		stamp_request_pack(&request, packet, size_bytes);
		CHECK(memcmp(packet, head, sizeof(head)) == 0);
		for (size_t i = sizeof(head); i < STAMP_PACKET_BYTES; i++)
			CHECK_INT(packet[i], 0);
		CHECK(size_bytes == LONG_BYTES || packet[size_bytes] == 0xee);
		CHECK_INT(stamp_request_parse(packet, size_bytes, &found), 0);
	}
	CHECK(memcmp(packet + STAMP_PACKET_BYTES, known_delay, sizeof(known_delay)) == 0);
	CHECK(memcmp(packet + STAMP_PACKET_BYTES + sizeof(known_delay), padding, sizeof(padding)) == 0);
	CHECK_INT(found.sequence, request.sequence);
	CHECK_INT(found.ssid, request.ssid);
	CHECK_INT(found.sent, request.sent);
	CHECK_INT(found.format, STAMP_NTP);
	stamp_request_pack(&request, packet, STAMP_PACKET_BYTES + 3);
	CHECK(packet[44] == 0 && packet[45] == 0 && packet[46] == 0);
	stamp_request_set_sent(packet, 5);
	CHECK_INT(stamp_request_parse(packet, STAMP_PACKET_BYTES, &found), 0);
	CHECK_INT(found.sent, 5);
}

static void test_what_is_no_request(void)
{
	struct stamp_request found;
	struct stamp_reply reply;
	uint8_t packet[LONG_BYTES];

	stamp_request_pack(&request, packet, sizeof(packet));
	for (size_t size_bytes = 0; size_bytes < STAMP_PACKET_BYTES; size_bytes++) {
		CHECK_INT(stamp_request_parse(packet, size_bytes, &found), -EMSGSIZE);
		CHECK_INT(stamp_reply_parse(packet, size_bytes, &reply), -EMSGSIZE);
	}
	for (size_t i = 16; i < STAMP_PACKET_BYTES; i++) {
		packet[i] = 1;
		CHECK_INT(stamp_request_parse(packet, sizeof(packet), &found), -EBADMSG);
		packet[i] = 0;
	}
	packet[13] = 0; /* the multiplier */
	CHECK_INT(stamp_request_parse(packet, sizeof(packet), &found), -EBADMSG);
	CHECK_INT(stamp_reply_parse(packet, sizeof(packet), &reply), -EBADMSG);
	packet[13] = 1;
	packet[12] = 0xff; /* synchronised, and a scale: its sender's */
	CHECK_INT(stamp_request_parse(packet, sizeof(packet), &found), 0);
	CHECK_INT(found.format, STAMP_PTP);
}

static void test_reply(void)
{
	struct stamp_request found;
	struct stamp_reply reply;
	uint8_t packet[LONG_BYTES + 1] = { 0 };

	packet[LONG_BYTES] = 0xee;
	stamp_request_pack(&request, packet, LONG_BYTES);
	memset(packet + 60, 0xab, LONG_BYTES - 60);
	stamp_reflect(packet, LONG_BYTES, 7, 100);
	stamp_reply_set_sent(packet, 200);
	CHECK_INT(stamp_reply_parse(packet, LONG_BYTES, &reply), 0);
	CHECK_INT(reply.sequence, 7);
	CHECK_INT(reply.ssid, request.ssid);
	CHECK_INT(reply.received, 100);
	CHECK_INT(reply.sent, 200);
	CHECK_INT(reply.format, STAMP_NTP);
	CHECK_INT(reply.sender_sequence, request.sequence);
	CHECK_INT(reply.sender_sent, request.sent);
	CHECK_INT(reply.sender_format, STAMP_NTP);
	CHECK_INT(packet[40], 255);
	CHECK(packet[56] == 0 && packet[57] == 1 && packet[59] == LONG_BYTES - 60); /* recognised */
	for (size_t i = 60; i < LONG_BYTES; i++)
		CHECK_INT(packet[i], 0xab);
	CHECK_INT(packet[LONG_BYTES], 0xee);
	CHECK_INT(stamp_request_parse(packet, LONG_BYTES, &found), -EBADMSG);
}

static void test_reply_has_the_format_of_its_request(void)
{
	struct stamp_reply reply;
	uint8_t packet[STAMP_PACKET_BYTES];

	stamp_request_pack(&request, packet, sizeof(packet));
	packet[12] = 0xc5; /* S, Z and a scale */
	packet[13] = 9;
	stamp_reflect(packet, sizeof(packet), 7, 100);
	CHECK_INT(stamp_reply_parse(packet, sizeof(packet), &reply), 0);
	CHECK_INT(reply.format, STAMP_PTP);
	CHECK_INT(reply.sender_format, STAMP_PTP);
	CHECK(packet[12] == 0x40 && packet[13] == 1);
	CHECK(packet[36] == 0xc5 && packet[37] == 9);
}

static void test_flags_of_tlvs(void)
{
	/* An unknown one, a padding, an unknown one that does not end here. */
	static const uint8_t tlvs[] = { 0x80, 9, 0, 1, 0xaa, 0x80, 1, 0, 0, 0x80, 8, 0, 5, 1, 2, 3, 4 };
	static const uint8_t expected[] = { 0x80, 9, 0, 1, 0xaa, 0, 1, 0, 0, 0xc0, 8, 0, 5, 1, 2, 3, 4 };
	static const uint8_t zeros[sizeof(tlvs)];
	uint8_t packet[STAMP_PACKET_BYTES + sizeof(tlvs)];

	stamp_request_pack(&request, packet, sizeof(packet));
	memcpy(packet + STAMP_PACKET_BYTES, tlvs, sizeof(tlvs));
	stamp_reflect(packet, sizeof(packet), 7, 100);
	CHECK(memcmp(packet + STAMP_PACKET_BYTES, expected, sizeof(expected)) == 0);
	stamp_request_pack(&request, packet, sizeof(packet));
	memset(packet + STAMP_PACKET_BYTES, 0, sizeof(tlvs));
	stamp_reflect(packet, sizeof(packet), 7, 100);
	CHECK(memcmp(packet + STAMP_PACKET_BYTES, zeros, sizeof(zeros)) == 0); /* TWAMP's padding */
}

static int64_t known_delay_ns_of(uint8_t *packet, size_t size_bytes, bool told, int64_t known_delay_ns)
{
	struct stamp_reply reply = { 0 };

	stamp_request_pack(&request, packet, size_bytes);
	stamp_reflect(packet, size_bytes, 7, 100);
	if (told)
		stamp_reply_set_known_delay(packet, size_bytes, known_delay_ns);
	CHECK_INT(stamp_reply_parse(packet, size_bytes, &reply), 0);
	return reply.known_delay_ns;
}

static void test_known_delay(void)
{
	uint8_t packet[LONG_BYTES + 1] = { 0 };
	struct stamp_reply reply;

	packet[LONG_BYTES] = 0xee;
	CHECK_INT(known_delay_ns_of(packet, LONG_BYTES, true, 512345), 512345);
	CHECK(packet[44] == 0 && packet[45] == 252);
	CHECK_INT(known_delay_ns_of(packet, LONG_BYTES, false, 0), 0); /* a reflector that has none */
	CHECK_INT(known_delay_ns_of(packet, 56, true, 3), 3);
	for (size_t size_bytes = STAMP_PACKET_BYTES; size_bytes < 56; size_bytes++) { /* no room */
		packet[size_bytes] = 0xee;
		CHECK_INT(known_delay_ns_of(packet, size_bytes, true, 3), STAMP_UNKNOWN_NS);
		CHECK_INT(packet[size_bytes], 0xee);
	}
	CHECK_INT(known_delay_ns_of(packet, LONG_BYTES, true, -1), STAMP_UNKNOWN_NS);
	CHECK_INT(known_delay_ns_of(packet, LONG_BYTES, true, INT64_MAX), STAMP_UNKNOWN_NS);
	known_delay_ns_of(packet, LONG_BYTES, true, 3);
	packet[44] = 0x80; /* a reflector that does not know it */
	CHECK_INT(stamp_reply_parse(packet, LONG_BYTES, &reply), 0);
	CHECK_INT(reply.known_delay_ns, STAMP_UNKNOWN_NS);
	packet[44] = 0;
	packet[45] = 251;
	CHECK_INT(stamp_reply_parse(packet, LONG_BYTES, &reply), 0);
	CHECK_INT(reply.known_delay_ns, STAMP_UNKNOWN_NS);
}

/* Differences are off by what the fractions of both ends were cut off by: less than 1 ns each way. */
static void check_times(enum stamp_format format, int64_t a_utc_ns, int64_t b_utc_ns)
{
	uint64_t a = stamp_time(format, a_utc_ns, a_utc_ns + TAI_UTC_NS), b = stamp_time(format, b_utc_ns, b_utc_ns + TAI_UTC_NS);
	int64_t error_ns = stamp_difference_ns(format, a, b) - (a_utc_ns - b_utc_ns);

	CHECK_THAT(error_ns >= -1 && error_ns <= 1, "format %d: %" PRId64 " - %" PRId64 " is off by %" PRId64 " ns", (int)format,
		   a_utc_ns, b_utc_ns, error_ns);
}

static void test_times(void)
{
	static const int64_t around_ns[] = { -NS_PER_S, -NS_PER_S + 1, -1, 0, 1, 999999999, NS_PER_S };
	struct random random = { 1 };

	CHECK_INT(stamp_time(STAMP_NTP, ERA_1_UTC_NS, ERA_1_UTC_NS + TAI_UTC_NS), 0);
	CHECK_INT(stamp_time(STAMP_NTP, 0, TAI_UTC_NS), UINT64_C(2208988800) << 32);
	CHECK_INT(stamp_time(STAMP_PTP, 0, TAI_UTC_NS + 5), UINT64_C(37) << 32 | 5);
	for (size_t i = 0; i < sizeof(around_ns) / sizeof(around_ns[0]); i++) {
		for (size_t j = 0; j < sizeof(around_ns) / sizeof(around_ns[0]); j++) {
			check_times(STAMP_NTP, ERA_1_UTC_NS + around_ns[i], ERA_1_UTC_NS + around_ns[j]);
			check_times(STAMP_PTP, ERA_1_UTC_NS + around_ns[i], ERA_1_UTC_NS + around_ns[j]);
			/* 2^32 s of TAI since 1970 */
			check_times(STAMP_PTP, (INT64_C(1) << 32) * NS_PER_S - TAI_UTC_NS + around_ns[i],
				    (INT64_C(1) << 32) * NS_PER_S - TAI_UTC_NS + around_ns[j]);
		}
		CHECK_THAT(ntp_to_utc_ns(ntp_from_realtime_ns(ERA_1_UTC_NS + around_ns[i])) - ERA_1_UTC_NS - around_ns[i] >= -1,
			   "%" PRId64 " ns from the era's end", around_ns[i]);
	}
	for (int i = 0; i < 100000; i++) {
		int64_t a_utc_ns = random_between(&random, INT64_C(1790000000) * NS_PER_S, ERA_1_UTC_NS + INT64_C(100000000) * NS_PER_S);
		int64_t b_utc_ns = a_utc_ns + random_between(&random, -10 * NS_PER_S, 10 * NS_PER_S);

		check_times(STAMP_NTP, a_utc_ns, b_utc_ns);
		check_times(STAMP_PTP, a_utc_ns, b_utc_ns);
	}
}

int main(void)
{
	test_request_on_the_wire();
	test_what_is_no_request();
	test_reply();
	test_reply_has_the_format_of_its_request();
	test_flags_of_tlvs();
	test_known_delay();
	test_times();
	return check_result();
}
