/* SPDX-License-Identifier: Apache-2.0 */
/** NTP packets: what is asked, what is read, which answers are refused, and the signs of offset and delay. */
#include <errno.h>

#include "../traffic_gen/check.h"
#include "base/time_units.h"
#include "ntp/ntp_packet.h"

/* A moment of 2026, as CLOCK_REALTIME, and the begin of NTP's next era, 2036-02-07 06:28:16 UTC. */
#define NOW_NS (INT64_C(1795284915) * NS_PER_S + 250000000)
#define NEXT_ERA_NS (INT64_C(2085978496) * NS_PER_S)

static void put_64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (56 - 8 * i));
}

static void put_kiss(uint8_t *packet, uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	packet[12] = a;
	packet[13] = b;
	packet[14] = c;
	packet[15] = d;
}

/* An answer without fault to a request sent at NOW_NS, by a server that is ahead by ahead_ns; way and back take 1 ms each. */
static void answer(uint8_t packet[NTP_PACKET_BYTES], int64_t ahead_ns)
{
	memset(packet, 0, NTP_PACKET_BYTES);
	packet[0] = 4 << 3 | 4;
	packet[1] = 1;
	put_kiss(packet, 'G', 'P', 'S', 0);
	put_64(packet + 24, ntp_from_realtime_ns(NOW_NS));
	put_64(packet + 32, ntp_from_realtime_ns(NOW_NS + NS_PER_MS + ahead_ns));
	put_64(packet + 40, ntp_from_realtime_ns(NOW_NS + 3 * NS_PER_MS + ahead_ns));
}

static enum ntp_reject check(const uint8_t packet[NTP_PACKET_BYTES])
{
	struct ntp_reply reply;

	CHECK_INT(ntp_reply_parse(packet, NTP_PACKET_BYTES, &reply), 0);
	return ntp_reply_check(&reply, ntp_from_realtime_ns(NOW_NS));
}

static void test_request(void)
{
	uint8_t packet[NTP_PACKET_BYTES];
	uint8_t zeros[40] = { 0 };

	ntp_request_pack(packet, UINT64_C(0x0123456789abcdef));
	CHECK_INT(packet[0], 0x23); /* leap 0, version 4, mode 3 */
	CHECK(memcmp(packet + 1, zeros, 39) == 0);
	CHECK_INT(packet[40], 0x01);
	CHECK_INT(packet[47], 0xef);
}

static void test_good_answer_and_signs(int64_t ahead_ns)
{
	uint8_t packet[NTP_PACKET_BYTES];
	struct ntp_reply reply;
	struct ntp_sample sample;

	answer(packet, ahead_ns);
	CHECK_INT(check(packet), NTP_GOOD);
	CHECK_INT(ntp_reply_parse(packet, NTP_PACKET_BYTES, &reply), 0);
	CHECK_INT(ntp_sample_take(&reply, ntp_from_realtime_ns(NOW_NS), ntp_from_realtime_ns(NOW_NS + 4 * NS_PER_MS), &sample),
		  NTP_GOOD);
	/* The server is ahead: this client is behind. */
	CHECK_THAT(sample.offset_ns >= -ahead_ns - 1 && sample.offset_ns <= -ahead_ns + 1, "offset %" PRId64, sample.offset_ns);
	CHECK_THAT(sample.delay_ns >= 2 * NS_PER_MS - 2 && sample.delay_ns <= 2 * NS_PER_MS + 2, "delay %" PRId64,
		   sample.delay_ns);
}

static void test_refusals(void)
{
	uint8_t packet[NTP_PACKET_BYTES];
	struct ntp_reply reply;

	answer(packet, 0);
	CHECK_INT(ntp_reply_parse(packet, NTP_PACKET_BYTES - 1, &reply), -EMSGSIZE);
	packet[0] = 4 << 3 | 3;
	CHECK_INT(check(packet), NTP_MODE);
	packet[0] = 2 << 3 | 4;
	CHECK_INT(check(packet), NTP_VERSION);
	packet[0] = 3 << 3 | 4;
	CHECK_INT(check(packet), NTP_GOOD);
	answer(packet, 0);
	packet[31] ^= 1;
	CHECK_INT(check(packet), NTP_ORIGIN);
	answer(packet, 0);
	packet[0] = 3 << 6 | 4 << 3 | 4;
	CHECK_INT(check(packet), NTP_LEAP);
	packet[1] = 0; /* a kiss says leap 3, too */
	CHECK_INT(check(packet), NTP_KISS_OF_DEATH);
	answer(packet, 0);
	packet[1] = 15;
	CHECK_INT(check(packet), NTP_GOOD);
	packet[1] = 16;
	CHECK_INT(check(packet), NTP_STRATUM);
	answer(packet, 0);
	memset(packet + 32, 0, 8);
	CHECK_INT(check(packet), NTP_STAMPS);
	answer(packet, 0);
	memset(packet + 40, 0, 8);
	CHECK_INT(check(packet), NTP_STAMPS);
	answer(packet, 0);
	put_64(packet + 40, ntp_from_realtime_ns(NOW_NS)); /* sent before it was asked */
	CHECK_INT(check(packet), NTP_STAMPS);
}

static void test_root_distance(void)
{
	uint8_t packet[NTP_PACKET_BYTES];

	answer(packet, 0);
	packet[5] = 2;  /* root delay 2 s */
	packet[10] = 0x80; /* root dispersion 0.5 s */
	CHECK_INT(check(packet), NTP_GOOD);
	packet[11] = 1;
	CHECK_INT(check(packet), NTP_ROOT_DISTANCE);
}

static void test_kiss_is_text_whatever_it_holds(void)
{
	uint8_t packet[NTP_PACKET_BYTES];
	struct ntp_reply reply;

	answer(packet, 0);
	put_kiss(packet, 'D', 'E', 'N', 'Y');
	ntp_reply_parse(packet, NTP_PACKET_BYTES, &reply);
	CHECK_TEXT(reply.kiss, "DENY");
	put_kiss(packet, 0, 0x1b, 0xff, '"');
	ntp_reply_parse(packet, NTP_PACKET_BYTES, &reply);
	CHECK_TEXT(reply.kiss, "...\"");
}

static void test_negative_delay(void)
{
	uint8_t packet[NTP_PACKET_BYTES];
	struct ntp_reply reply;
	struct ntp_sample sample;

	answer(packet, 0);
	ntp_reply_parse(packet, NTP_PACKET_BYTES, &reply);
	/* The server held it for 2 ms, and it was back after 1. */
	CHECK_INT(ntp_sample_take(&reply, ntp_from_realtime_ns(NOW_NS), ntp_from_realtime_ns(NOW_NS + NS_PER_MS), &sample),
		  NTP_NEGATIVE_DELAY);
}

static void test_differences_span_eras(void)
{
	uint64_t before = ntp_from_realtime_ns(NEXT_ERA_NS - NS_PER_S / 2), after = ntp_from_realtime_ns(NEXT_ERA_NS + 250);

	CHECK(before > after);
	CHECK_THAT(ntp_difference_ns(after, before) >= NS_PER_S / 2 + 249 && ntp_difference_ns(after, before) <= NS_PER_S / 2 + 250,
		   "%" PRId64, ntp_difference_ns(after, before));
	CHECK_THAT(ntp_difference_ns(before, after) <= -NS_PER_S / 2 - 249 &&
			   ntp_difference_ns(before, after) >= -NS_PER_S / 2 - 251,
		   "%" PRId64, ntp_difference_ns(before, after));
	CHECK_INT(ntp_from_realtime_ns(0) >> 32, INT64_C(2208988800));
	CHECK_INT(ntp_from_realtime_ns(-1) >> 32, INT64_C(2208988799));
}

int main(void)
{
	test_request();
	test_good_answer_and_signs(0);
	test_good_answer_and_signs(700 * NS_PER_MS);
	test_good_answer_and_signs(-3600 * NS_PER_S);
	test_refusals();
	test_root_distance();
	test_kiss_is_text_whatever_it_holds();
	test_negative_delay();
	test_differences_span_eras();
	return check_result();
}
