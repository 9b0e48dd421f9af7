/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sockets of a program the stack takes: `--only` of bw-accel, BW_ACCEL_ONLY of the library. Pure: no state of the operating
 * system, no memory of its own.
 *
 *     list:  entry[,entry…]
 *     entry: [tcp:|udp:] PORT | PORT-PORT | ADDRESS[/BITS]
 */
#ifndef BW_ACCEL_ALLOW_LIST_H
#define BW_ACCEL_ALLOW_LIST_H

#include <stdbool.h>
#include <stdint.h>

enum { ALLOW_ENTRIES_MAX = 64, ALLOW_IP_BYTES = 16 };

struct allow_entry {
	int protocol;                        /* 6 (TCP), 17 (UDP), or 0: both */
	uint16_t first_port, last_port;      /* 0: it is about an address */
	bool ipv6;
	uint8_t ip[ALLOW_IP_BYTES];          /* of IPv4 the first four bytes; 0 behind prefix_bits */
	int prefix_bits;
};

struct allow_list {
	int count;
	struct allow_entry entries[ALLOW_ENTRIES_MAX];
};

/**
 * Read a list; an empty text is the empty list.
 *
 * An IPv6 address that stands for one of IPv4 (::ffff:10.77.0.1) is that one. Bits of an address behind its prefix do not count.
 *
 * @param wrong  the entry in `text` that is refused, up to its comma; untouched where none is
 * @return 0; -EINVAL (no entry of the grammar), -ERANGE (port 1..65535, bits 0..32 or 0..128, a range that ends before it
 *         begins) or -E2BIG (more than ALLOW_ENTRIES_MAX); `list` is empty then
 */
int allow_list_parse(const char *text, struct allow_list *list, const char **wrong);

/**
 * Whether a list has a socket: one entry is enough. The empty list has all.
 *
 * @param protocol  6 or 17
 * @param ip  of the other end, in network order, 4 or 16 bytes; NULL: none yet, and no entry with an address has it
 * @param local_port  0: none yet; an entry with ports has a socket of which either end is among them
 * @param peer_port  the same
 */
bool allow_list_has(const struct allow_list *list, int protocol, const uint8_t *ip, bool ipv6, uint16_t local_port,
		    uint16_t peer_port);

#endif
