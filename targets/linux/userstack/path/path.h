/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of the packet path and the service that loads them have in common: the contents of maps, and what is counted. */
#ifndef BW_PATH_H
#define BW_PATH_H

#include <stdint.h>

enum {
	PATH_SLOTS = 64, /* programs at a time; a program's number, never 0 and never used again, leaves its slot as remainder */
	PATH_PORTS = 65536,
	PATH_IPV4_ADDRESSES = 16, /* of the interface's that programs have */
	PATH_IPV6_ADDRESSES = 3,
	PATH_ADDRESSES = PATH_IPV4_ADDRESSES + PATH_IPV6_ADDRESSES,
	PATH_FRAGMENTS = 4096, /* packets in fragments that are known at a time, each way */
	PATH_MAC_BYTES = 6,
	PATH_IP_BYTES = 16,
};

/* Of one program; on each processor. */
enum path_count {
	PATH_IN, /* frames for the program */
	PATH_OUT,
	PATH_BYTES_IN, /* of their IP packets */
	PATH_BYTES_OUT,
	/* Frames from the program that were dropped, and why. */
	PATH_MALFORMED,         /* shorter than their headers say, or over the MTU */
	PATH_FOREIGN_PROTOCOL,  /* neither TCP nor UDP over IP, or to more than one station */
	PATH_FOREIGN_ADDRESS,   /* the source is none of the interface's addresses */
	PATH_FOREIGN_PORT,      /* the source port is not the program's */
	PATH_FOREIGN_FRAGMENT,  /* a later fragment whose first one was none of the program's */
	PATH_COUNTS,
};

struct path_counts {
	uint64_t of[PATH_COUNTS];
};

struct path_interface {
	uint8_t mac[PATH_MAC_BYTES];
	uint16_t reserved;
	uint32_t index, mtu_bytes;
};

struct path_address {
	uint32_t family; /* the version: 4 or 6 */
	uint8_t ip[PATH_IP_BYTES]; /* of IPv4 the first four bytes, 0 behind them */
};

/*
 * Who has a port, and on which of the interface's addresses: `only` has an address of zeros where that is all of a family, and a family
 * of 0 where it is all of both.
 */
struct path_owner {
	uint32_t number; /* 0: the kernel */
	struct path_address only;
};

/* What all fragments of a packet have in common. */
struct path_fragment {
	struct path_address source, destination;
	uint32_t id, protocol;
};

/* The place of a port's owner in its map. */
static inline uint32_t path_port_key(uint32_t protocol, uint16_t port)
{
	return (protocol == 6 ? 0 : PATH_PORTS) + port;
}

#endif
