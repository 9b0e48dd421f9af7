/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RTDiP frames: straight on Ethernet, one header, then the data. Pure; shared with the XDP program.
 *
 * On the wire behind EtherType 0x88B5 (IEEE 802, local experimental 1), all numbers in network order:
 *
 *   0   destination port   16 bits, 1..65535
 *   2   priority            8 bits, enum rtdip_priority
 *   3   version             8 bits, 1
 *   4   length             16 bits, bytes of data behind the header; Ethernet may pad a short frame
 *   6   source port        16 bits, 0: none answers
 *   8   sequence           32 bits, counted by the sender for each of its ports and each place that it sends to, modulo 2^32
 */
#ifndef RTDIP_FRAME_H
#define RTDIP_FRAME_H

#include <stdint.h>

#define RTDIP_ETHERTYPE 0x88B5
#define RTDIP_VERSION 1
#define RTDIP_MAC_BYTES 6
#define RTDIP_ETHERNET_BYTES 14
#define RTDIP_HEADER_BYTES 12
#define RTDIP_PAYLOAD_MAX_BYTES 9000 /* of Ethernet: header and data; an interface takes its MTU, where that is less */
#define RTDIP_DATA_MAX_BYTES (RTDIP_PAYLOAD_MAX_BYTES - RTDIP_HEADER_BYTES)

/* Lower numbers come first. */
enum rtdip_priority { RTDIP_HIGH, RTDIP_MEDIUM, RTDIP_LOW, RTDIP_PRIORITIES };

/* Why a frame went no further; index of the counters that the XDP program keeps. */
enum rtdip_count {
	RTDIP_DELIVERED,
	RTDIP_SHORT,     /* no whole header, or less data than it says */
	RTDIP_MALFORMED, /* another version, no such priority, more data than a frame has */
	RTDIP_NO_PORT,   /* nobody has the port */
	RTDIP_FULL,      /* its ring was full */
	RTDIP_COUNTS,
};

struct rtdip_header {
	uint16_t destination_port;
	uint8_t priority;
	uint16_t length_bytes;
	uint16_t source_port;
	uint32_t sequence;
};

/* A record of a port's ring: this, then header and data as they were on the wire. */
struct rtdip_record {
	uint64_t received_monotonic_ns; /* when the XDP program saw it */
	uint8_t source[RTDIP_MAC_BYTES];
	uint16_t payload_bytes;
};

/* What the XDP program counts of a port. */
struct rtdip_port_counts {
	uint64_t frames, bytes; /* delivered; bytes of data */
	uint64_t full;          /* dropped: the ring was full */
};

void rtdip_pack(const struct rtdip_header *header, uint8_t bytes[RTDIP_HEADER_BYTES]);

/**
 * Read a header.
 *
 * @param payload_bytes  that there are, header and padding included
 * @return 0; -EMSGSIZE (shorter than it says), or -EBADMSG (version, priority, length); header untouched then
 */
int rtdip_parse(const uint8_t *bytes, uint32_t payload_bytes, struct rtdip_header *header);

/** Read an Ethernet address, "02:00:00:00:00:01", at the beginning of a text. @return characters of it, or -EINVAL */
int rtdip_parse_mac(const char *text, uint8_t mac[RTDIP_MAC_BYTES]);

/** Names as tools write them: "high", "no port". */
const char *rtdip_priority_name(enum rtdip_priority priority);
const char *rtdip_count_name(enum rtdip_count count);

#endif
