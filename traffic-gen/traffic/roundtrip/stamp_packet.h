/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test packets of STAMP in unauthenticated mode: RFC 8762, sections 4.2.1 and 4.3.1, with the session identifier (SSID) and
 * the Extra Padding TLV of RFC 8972, sections 3 and 4.1. A reply is as long as its request. Pure.
 *
 * A request that has room asks besides, by a TLV for private use (type 252, 8 bytes), how long a known delay has held the reply
 * up outside the reflector's stamps. Other reflectors do not know it, and mark it so.
 *
 * Stamps are 64 bits of the wire, in the format that the packet's Z flag names.
 */
#ifndef BW_STAMP_PACKET_H
#define BW_STAMP_PACKET_H

#include <stddef.h>
#include <stdint.h>

enum { STAMP_PACKET_BYTES = 44, STAMP_DATAGRAM_BYTES_MAX = 65507 };

#define STAMP_UNKNOWN_NS INT64_MIN

enum stamp_format {
	STAMP_NTP, /* Z = 0: seconds since 1900 modulo 2^32, and fractions of 2^-32 s */
	STAMP_PTP, /* Z = 1: seconds of TAI since 1970 modulo 2^32, and nanoseconds (IEEE 1588, truncated) */
};

struct stamp_request {
	uint32_t sequence;
	uint16_t ssid;
	uint64_t sent;
	enum stamp_format format;
};

struct stamp_reply {
	uint32_t sequence;               /* the reflector's own */
	uint16_t ssid;
	uint64_t received, sent;         /* the reflector's stamps: T2 and T3 */
	enum stamp_format format;        /* of both */
	uint32_t sender_sequence;        /* what the request had */
	uint64_t sender_sent;
	enum stamp_format sender_format;
	int64_t known_delay_ns;          /* STAMP_UNKNOWN_NS: the reflector does not say */
};

/**
 * Write a request in NTP's format. What is more than 44 bytes is the TLV of the known delay, and behind it one Extra Padding
 * TLV, or zeros; each where it has room.
 *
 * @param size_bytes  STAMP_PACKET_BYTES..STAMP_DATAGRAM_BYTES_MAX
 */
void stamp_request_pack(const struct stamp_request *request, uint8_t *packet, size_t size_bytes);

/** Put another stamp of sending into a request. */
void stamp_request_set_sent(uint8_t *packet, uint64_t sent);

/**
 * Read a request. Its must-be-zero field has to be: then no reply is a request, and two reflectors never talk to each other.
 *
 * @return 0, -EMSGSIZE (too short), or -EBADMSG (an error estimate without a multiplier, which RFC 4656, section 4.1.2 calls
 *         corrupt, or a must-be-zero field that is not)
 */
int stamp_request_parse(const uint8_t *packet, size_t size_bytes, struct stamp_request *request);

/**
 * Turn a request that was parsed into its reply, in its place and its format. TLVs stay as they are but for their flags: U
 * marks one of a type that is not known, M one that does not end within the packet.
 *
 * @param sequence  the reflector's own; a stateless one's is the request's
 */
void stamp_reflect(uint8_t *packet, size_t size_bytes, uint32_t sequence, uint64_t received);

/** Put the stamp of sending into a reply. */
void stamp_reply_set_sent(uint8_t *packet, uint64_t sent);

/** Put into a reply how long a known delay has held it up, where its request has asked as the sender here does. */
void stamp_reply_set_known_delay(uint8_t *packet, size_t size_bytes, int64_t known_delay_ns);

/** Read a reply. @return 0, -EMSGSIZE (too short), or -EBADMSG (an error estimate without a multiplier) */
int stamp_reply_parse(const uint8_t *packet, size_t size_bytes, struct stamp_reply *reply);

/** Stamp of an instant, known in both scales. */
uint64_t stamp_time(enum stamp_format format, int64_t realtime_ns, int64_t tai_ns);

/** a - b in nanoseconds; right while they are within 68 years. */
int64_t stamp_difference_ns(enum stamp_format format, uint64_t a, uint64_t b);

#endif
