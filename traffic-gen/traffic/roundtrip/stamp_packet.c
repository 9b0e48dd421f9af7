/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/roundtrip/stamp_packet.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/time_units.h"
#include "ntp/ntp_packet.h"

#define LOW_32_BITS UINT64_C(0xffffffff)
#define KNOWN_DELAY_MAX_NS ((uint64_t)(3600 * NS_PER_S)) /* no reply is waited for as long */

/* Positions in both packets, in a request, and in a reply. */
enum { AT_SEQUENCE = 0, AT_SENT = 4, AT_ERROR_ESTIMATE = 12, AT_SSID = 14, AT_TLVS = STAMP_PACKET_BYTES };
enum { AT_MUST_BE_ZERO = 16, MUST_BE_ZERO_BYTES = 28 };
enum { AT_RECEIVED = 16, AT_SENDER_SEQUENCE = 24, AT_SENDER_SENT = 28, AT_SENDER_ERROR_ESTIMATE = 36, AT_SENDER_TTL = 40 };

/* The error estimate: flags and scale, multiplier (RFC 4656, section 4.1.2, and RFC 8186). */
enum { FLAG_Z = 0x40, MULTIPLIER_UNKNOWN = 1, TTL_UNKNOWN = 255 };

/* A TLV: flags, type, length of its value. */
enum { TLV_HEAD_BYTES = 4, TLV_RESERVED = 0, TLV_EXTRA_PADDING = 1, TLV_KNOWN_DELAY = 252 };
enum { TLV_UNRECOGNISED = 0x80, TLV_MALFORMED = 0x40 };
enum { KNOWN_DELAY_VALUE_BYTES = 8, KNOWN_DELAY_BYTES = TLV_HEAD_BYTES + KNOWN_DELAY_VALUE_BYTES };

static enum stamp_format get_format(const uint8_t *error_estimate)
{
	return error_estimate[0] & FLAG_Z ? STAMP_PTP : STAMP_NTP;
}

static void put_error_estimate(uint8_t *at, enum stamp_format format)
{
	at[0] = format == STAMP_PTP ? FLAG_Z : 0; /* S = 0: how far the clock is synchronised is not known here */
	at[1] = MULTIPLIER_UNKNOWN;
}

static void put_tlv_head(uint8_t *at, uint8_t type, size_t value_bytes)
{
	at[0] = TLV_UNRECOGNISED; /* until a reflector has recognised it */
	at[1] = type;
	big_endian_put(at + 2, 2, value_bytes);
}

/* Whether the TLV of the known delay stands where requests of here have it. */
static bool asks_known_delay(const uint8_t *packet, size_t size_bytes)
{
	return size_bytes >= AT_TLVS + KNOWN_DELAY_BYTES && packet[AT_TLVS + 1] == TLV_KNOWN_DELAY &&
	       big_endian_get(packet + AT_TLVS + 2, 2) == KNOWN_DELAY_VALUE_BYTES;
}

void stamp_request_pack(const struct stamp_request *request, uint8_t *packet, size_t size_bytes)
{
	size_t at = AT_TLVS;

	memset(packet, 0, size_bytes);
	big_endian_put(packet + AT_SEQUENCE, 4, request->sequence);
	big_endian_put(packet + AT_SENT, 8, request->sent);
	put_error_estimate(packet + AT_ERROR_ESTIMATE, STAMP_NTP);
	big_endian_put(packet + AT_SSID, 2, request->ssid);
	if (size_bytes - at >= KNOWN_DELAY_BYTES) {
		put_tlv_head(packet + at, TLV_KNOWN_DELAY, KNOWN_DELAY_VALUE_BYTES);
		at += KNOWN_DELAY_BYTES;
	}
	if (size_bytes - at >= TLV_HEAD_BYTES)
		put_tlv_head(packet + at, TLV_EXTRA_PADDING, size_bytes - at - TLV_HEAD_BYTES);
}

void stamp_request_set_sent(uint8_t *packet, uint64_t sent)
{
	big_endian_put(packet + AT_SENT, 8, sent);
}

int stamp_request_parse(const uint8_t *packet, size_t size_bytes, struct stamp_request *request)
{
	static const uint8_t zeros[MUST_BE_ZERO_BYTES];

	if (size_bytes < STAMP_PACKET_BYTES)
		return -EMSGSIZE;
	if (packet[AT_ERROR_ESTIMATE + 1] == 0 || memcmp(packet + AT_MUST_BE_ZERO, zeros, sizeof(zeros)) != 0)
		return -EBADMSG;
	request->sequence = (uint32_t)big_endian_get(packet + AT_SEQUENCE, 4);
	request->ssid = (uint16_t)big_endian_get(packet + AT_SSID, 2);
	request->sent = big_endian_get(packet + AT_SENT, 8);
	request->format = get_format(packet + AT_ERROR_ESTIMATE);
	return 0;
}

/*
 * RFC 8972, section 4: a reflector answers for each TLV by its flags. Less than the head of one is padding, and so is what
 * begins like the reserved type: TWAMP's senders pad with zeros.
 */
static void reflect_tlvs(uint8_t *packet, size_t size_bytes)
{
	size_t at = AT_TLVS;

	while (size_bytes - at >= TLV_HEAD_BYTES && packet[at + 1] != TLV_RESERVED) {
		size_t value_bytes = (size_t)big_endian_get(packet + at + 2, 2);
		bool known = packet[at + 1] == TLV_EXTRA_PADDING || packet[at + 1] == TLV_KNOWN_DELAY;

		packet[at] = known ? 0 : TLV_UNRECOGNISED;
		at += TLV_HEAD_BYTES;
		if (value_bytes > size_bytes - at) {
			packet[at - TLV_HEAD_BYTES] |= TLV_MALFORMED;
			return;
		}
		at += value_bytes;
	}
}

void stamp_reflect(uint8_t *packet, size_t size_bytes, uint32_t sequence, uint64_t received)
{
	enum stamp_format format = get_format(packet + AT_ERROR_ESTIMATE);

	memcpy(packet + AT_SENDER_SEQUENCE, packet + AT_SEQUENCE, 4);
	memcpy(packet + AT_SENDER_SENT, packet + AT_SENT, 8);
	memcpy(packet + AT_SENDER_ERROR_ESTIMATE, packet + AT_ERROR_ESTIMATE, 2);
	packet[AT_SENDER_TTL] = TTL_UNKNOWN;
	big_endian_put(packet + AT_SEQUENCE, 4, sequence);
	big_endian_put(packet + AT_RECEIVED, 8, received);
	put_error_estimate(packet + AT_ERROR_ESTIMATE, format);
	reflect_tlvs(packet, size_bytes);
}

void stamp_reply_set_sent(uint8_t *packet, uint64_t sent)
{
	big_endian_put(packet + AT_SENT, 8, sent);
}

void stamp_reply_set_known_delay(uint8_t *packet, size_t size_bytes, int64_t known_delay_ns)
{
	if (asks_known_delay(packet, size_bytes))
		big_endian_put(packet + AT_TLVS + TLV_HEAD_BYTES, KNOWN_DELAY_VALUE_BYTES, (uint64_t)known_delay_ns);
}

static int64_t known_delay_ns_of(const uint8_t *packet, size_t size_bytes)
{
	uint64_t known_delay_ns;

	if (!asks_known_delay(packet, size_bytes) || packet[AT_TLVS] & (TLV_UNRECOGNISED | TLV_MALFORMED))
		return STAMP_UNKNOWN_NS;
	known_delay_ns = big_endian_get(packet + AT_TLVS + TLV_HEAD_BYTES, KNOWN_DELAY_VALUE_BYTES);
	return known_delay_ns <= KNOWN_DELAY_MAX_NS ? (int64_t)known_delay_ns : STAMP_UNKNOWN_NS;
}

int stamp_reply_parse(const uint8_t *packet, size_t size_bytes, struct stamp_reply *reply)
{
	if (size_bytes < STAMP_PACKET_BYTES)
		return -EMSGSIZE;
	if (packet[AT_ERROR_ESTIMATE + 1] == 0)
		return -EBADMSG;
	reply->sequence = (uint32_t)big_endian_get(packet + AT_SEQUENCE, 4);
	reply->ssid = (uint16_t)big_endian_get(packet + AT_SSID, 2);
	reply->sent = big_endian_get(packet + AT_SENT, 8);
	reply->received = big_endian_get(packet + AT_RECEIVED, 8);
	reply->format = get_format(packet + AT_ERROR_ESTIMATE);
	reply->sender_sequence = (uint32_t)big_endian_get(packet + AT_SENDER_SEQUENCE, 4);
	reply->sender_sent = big_endian_get(packet + AT_SENDER_SENT, 8);
	reply->sender_format = get_format(packet + AT_SENDER_ERROR_ESTIMATE);
	reply->known_delay_ns = known_delay_ns_of(packet, size_bytes);
	return 0;
}

uint64_t stamp_time(enum stamp_format format, int64_t realtime_ns, int64_t tai_ns)
{
	if (format == STAMP_NTP)
		return ntp_from_realtime_ns(realtime_ns);
	return (uint64_t)(tai_ns / NS_PER_S) << 32 | (uint64_t)(tai_ns % NS_PER_S);
}

int64_t stamp_difference_ns(enum stamp_format format, uint64_t a, uint64_t b)
{
	int64_t seconds;

	if (format == STAMP_NTP)
		return ntp_difference_ns(a, b);
	seconds = (int32_t)((uint32_t)(a >> 32) - (uint32_t)(b >> 32));
	return seconds * NS_PER_S + (int64_t)(a & LOW_32_BITS) - (int64_t)(b & LOW_32_BITS);
}
