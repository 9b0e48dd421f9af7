/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NTP packets as a client sees them (RFC 5905, section 7.3), and the checks on an answer (its section 9.2, figure 17).
 *
 * Stamps are 64 bits of the wire: seconds since 1900, modulo 2^32, and fractions of 2^-32 s. Only differences are turned
 * into nanoseconds, so that eras do not matter (section 6).
 */
#ifndef BW_NTP_PACKET_H
#define BW_NTP_PACKET_H

#include <stddef.h>
#include <stdint.h>

enum { NTP_PACKET_BYTES = 48, NTP_KISS_BYTES = 5 };

struct ntp_reply {
	unsigned int leap, version, mode, stratum;
	int precision_log2_s; /* of the server's clock: -128..127 */
	int64_t root_delay_ns, root_dispersion_ns;
	char kiss[NTP_KISS_BYTES]; /* reference identifier as text; of stratum 0: the kiss code */
	uint64_t origin, receive, transmit;
};

/* Why an answer is not used. */
enum ntp_reject {
	NTP_GOOD,
	NTP_SHORT,          /* fewer than 48 bytes */
	NTP_MODE,           /* not an answer of a server */
	NTP_VERSION,        /* not 3 or 4 */
	NTP_ORIGIN,         /* not the answer to what was asked: a duplicate, a late one, a forged one */
	NTP_KISS_OF_DEATH,  /* stratum 0: the server wants to be left alone */
	NTP_LEAP,           /* the server says that it is not synchronised */
	NTP_STRATUM,        /* 16 or more: likewise */
	NTP_STAMPS,         /* one is missing, or it was sent before its request had come */
	NTP_ROOT_DISTANCE,  /* too far from a reference clock */
	NTP_NEGATIVE_DELAY, /* the server held the request for longer than the round trip took */
	NTP_REJECTS,
};

/** The largest root distance of a usable server: MAXDIST of RFC 5905, section 11.1.1, is 1 s; ntpd uses 1.5 s. */
#define NTP_ROOT_DISTANCE_MAX_NS INT64_C(1500000000)

/** Write a request of mode 3, version 4. */
void ntp_request_pack(uint8_t packet[NTP_PACKET_BYTES], uint64_t transmit);

/**
 * Write a request of the interleaved mode (RFC 9769, section 2).
 *
 * @param origin   the server's stamp of receiving the last request, as its reply had it
 * @param receive  this client's stamp of receiving that reply: differs from transmit
 */
void ntp_request_pack_interleaved(uint8_t packet[NTP_PACKET_BYTES], uint64_t origin, uint64_t receive, uint64_t transmit);

/** Read an answer. @return 0, or -EMSGSIZE when it is too short */
int ntp_reply_parse(const uint8_t *packet, size_t size_bytes, struct ntp_reply *reply);

/** Check an answer to the request that was sent with this stamp. @return NTP_GOOD, or the first reason against it */
enum ntp_reject ntp_reply_check(const struct ntp_reply *reply, uint64_t request_transmit);

/** A word for a reason: "origin", "kiss-of-death", … */
const char *ntp_reject_name(enum ntp_reject reject);

/** Stamp of a time of CLOCK_REALTIME. */
uint64_t ntp_from_realtime_ns(int64_t realtime_ns);

/** Nanoseconds since 1970 of a stamp between 2000 and 2136: from 2036 on stamps are of NTP's second era (RFC 5905, section 6). */
int64_t ntp_to_utc_ns(uint64_t stamp);

/** a - b in nanoseconds; right while they are within 68 years. */
int64_t ntp_difference_ns(uint64_t a, uint64_t b);

/* What four stamps say (RFC 5905, section 8). */
struct ntp_sample {
	int64_t offset_ns; /* of this client against the server; positive: the client is ahead (RFC 5905's theta, turned) */
	int64_t delay_ns;  /* of the round trip, without the server's part */
};

/**
 * Work out a sample.
 *
 * @param sent      this client's stamp just before it sent
 * @param received  this client's stamp just after the answer came
 * @return NTP_GOOD or NTP_NEGATIVE_DELAY
 */
enum ntp_reject ntp_sample_take(const struct ntp_reply *reply, uint64_t sent, uint64_t received,
				struct ntp_sample *sample);

#endif
