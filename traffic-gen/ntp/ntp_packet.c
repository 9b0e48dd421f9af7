/* SPDX-License-Identifier: Apache-2.0 */
#include "ntp/ntp_packet.h"

#include <errno.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/time_units.h"

#define SECONDS_1900_TO_1970 INT64_C(2208988800)
#define SECONDS_1900_TO_2000 UINT32_C(3155673600)
#define SECONDS_1970_TO_2000 INT64_C(946684800)
#define LOW_32_BITS UINT64_C(0xffffffff)

enum { VERSION = 4, MODE_CLIENT = 3, MODE_SERVER = 4, LEAP_UNKNOWN = 3, STRATUM_MAX = 15 };

/* Positions in the packet: RFC 5905, figure 8. */
enum { AT_FLAGS = 0, AT_STRATUM = 1, AT_PRECISION = 3, AT_ROOT_DELAY = 4, AT_ROOT_DISPERSION = 8, AT_REFERENCE_ID = 12, AT_ORIGIN = 24,
       AT_RECEIVE = 32, AT_TRANSMIT = 40 };

/* A stamp may be read in steps, and a server's clock be slewed meanwhile: that much is no contradiction. */
#define READING_NOISE_NS INT64_C(1000)

static const char *const reject_names[] = {
	[NTP_GOOD] = "good",
	[NTP_SHORT] = "short",
	[NTP_MODE] = "mode",
	[NTP_VERSION] = "version",
	[NTP_ORIGIN] = "origin",
	[NTP_KISS_OF_DEATH] = "kiss-of-death",
	[NTP_LEAP] = "leap",
	[NTP_STRATUM] = "stratum",
	[NTP_STAMPS] = "stamps",
	[NTP_ROOT_DISTANCE] = "root-distance",
	[NTP_NEGATIVE_DELAY] = "negative-delay",
};

/* NTP's short format: 16 bits of seconds, 16 of fraction. */
static int64_t get_short_ns(const uint8_t *at)
{
	return (int64_t)(big_endian_get(at, 4) * (uint64_t)NS_PER_S >> 16);
}

static void get_kiss(const uint8_t *at, char kiss[NTP_KISS_BYTES])
{
	for (int i = 0; i < NTP_KISS_BYTES - 1; i++)
		kiss[i] = at[i] > ' ' && at[i] < 0x7f ? (char)at[i] : '.';
	kiss[NTP_KISS_BYTES - 1] = '\0';
}

void ntp_request_pack(uint8_t packet[NTP_PACKET_BYTES], uint64_t transmit)
{
	ntp_request_pack_interleaved(packet, 0, 0, transmit);
}

void ntp_request_pack_interleaved(uint8_t packet[NTP_PACKET_BYTES], uint64_t origin, uint64_t receive, uint64_t transmit)
{
	memset(packet, 0, NTP_PACKET_BYTES);
	packet[AT_FLAGS] = VERSION << 3 | MODE_CLIENT;
	big_endian_put(packet + AT_ORIGIN, 8, origin);
	big_endian_put(packet + AT_RECEIVE, 8, receive);
	big_endian_put(packet + AT_TRANSMIT, 8, transmit);
}

int ntp_reply_parse(const uint8_t *packet, size_t size_bytes, struct ntp_reply *reply)
{
	if (size_bytes < NTP_PACKET_BYTES)
		return -EMSGSIZE;
	reply->leap = packet[AT_FLAGS] >> 6;
	reply->version = packet[AT_FLAGS] >> 3 & 7;
	reply->mode = packet[AT_FLAGS] & 7;
	reply->stratum = packet[AT_STRATUM];
	reply->precision_log2_s = packet[AT_PRECISION] < 128 ? packet[AT_PRECISION] : packet[AT_PRECISION] - 256;
	reply->root_delay_ns = get_short_ns(packet + AT_ROOT_DELAY);
	reply->root_dispersion_ns = get_short_ns(packet + AT_ROOT_DISPERSION);
	get_kiss(packet + AT_REFERENCE_ID, reply->kiss);
	reply->origin = big_endian_get(packet + AT_ORIGIN, 8);
	reply->receive = big_endian_get(packet + AT_RECEIVE, 8);
	reply->transmit = big_endian_get(packet + AT_TRANSMIT, 8);
	return 0;
}

enum ntp_reject ntp_reply_check(const struct ntp_reply *reply, uint64_t request_transmit)
{
	if (reply->mode != MODE_SERVER)
		return NTP_MODE;
	if (reply->version != VERSION && reply->version != VERSION - 1)
		return NTP_VERSION;
	/* Before all that a forger could say: he does not know what was asked. */
	if (reply->origin != request_transmit)
		return NTP_ORIGIN;
	if (reply->stratum == 0)
		return NTP_KISS_OF_DEATH;
	if (reply->leap == LEAP_UNKNOWN)
		return NTP_LEAP;
	if (reply->stratum > STRATUM_MAX)
		return NTP_STRATUM;
	if (!reply->receive || !reply->transmit || ntp_difference_ns(reply->transmit, reply->receive) < 0)
		return NTP_STAMPS;
	if (reply->root_delay_ns / 2 + reply->root_dispersion_ns > NTP_ROOT_DISTANCE_MAX_NS)
		return NTP_ROOT_DISTANCE;
	return NTP_GOOD;
}

const char *ntp_reject_name(enum ntp_reject reject)
{
	return reject_names[reject];
}

uint64_t ntp_from_realtime_ns(int64_t realtime_ns)
{
	int64_t seconds = realtime_ns / NS_PER_S;
	int64_t rest_ns = realtime_ns % NS_PER_S;

	if (rest_ns < 0) {
		seconds -= 1;
		rest_ns += NS_PER_S;
	}
	return (uint64_t)(seconds + SECONDS_1900_TO_1970) << 32 | ((uint64_t)rest_ns << 32) / (uint64_t)NS_PER_S;
}

int64_t ntp_to_utc_ns(uint64_t stamp)
{
	/* Seconds since 2000, modulo 2^32. */
	uint32_t seconds = (uint32_t)(stamp >> 32) - SECONDS_1900_TO_2000;

	return ((int64_t)seconds + SECONDS_1970_TO_2000) * NS_PER_S + (int64_t)((stamp & LOW_32_BITS) * (uint64_t)NS_PER_S >> 32);
}

int64_t ntp_difference_ns(uint64_t a, uint64_t b)
{
	uint64_t difference = a - b;
	int64_t seconds = (int32_t)(uint32_t)(difference >> 32);

	return seconds * NS_PER_S + (int64_t)((difference & LOW_32_BITS) * (uint64_t)NS_PER_S >> 32);
}

enum ntp_reject ntp_sample_take(const struct ntp_reply *reply, uint64_t sent, uint64_t received,
				struct ntp_sample *sample)
{
	int64_t way_ns = ntp_difference_ns(reply->receive, sent);
	int64_t back_ns = ntp_difference_ns(reply->transmit, received);

	sample->offset_ns = -(way_ns + back_ns) / 2;
	sample->delay_ns = way_ns - back_ns;
	return sample->delay_ns < -READING_NOISE_NS ? NTP_NEGATIVE_DELAY : NTP_GOOD;
}
