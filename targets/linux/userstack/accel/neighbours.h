/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where packets for an address go. The host knows routes and neighbours: it is asked once for an address, and tells of changes;
 * packets wait meanwhile.
 */
#ifndef BW_ACCEL_NEIGHBOURS_H
#define BW_ACCEL_NEIGHBOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NEIGHBOUR_MAC_BYTES = 6 };

struct neighbours_host {
	/** Ask the host for an address; neighbours_learn() follows. `ip`: 4 or 16 bytes. */
	void (*ask)(bool ipv6, const uint8_t *ip);
	/** Take a packet that can go. */
	void (*send)(const uint8_t mac[NEIGHBOUR_MAC_BYTES], const uint8_t *packet, size_t packet_bytes);
	/** Hear that a packet cannot go. @param err errno */
	void (*lost)(const uint8_t *packet, size_t packet_bytes, int err);
};

void neighbours_begin(const struct neighbours_host *host);
/** Forget all of them, with the packets that wait. */
void neighbours_end(void);
/** Send an IP packet, or let it wait for the answer. */
void neighbours_send(const uint8_t *packet, size_t packet_bytes);
/** Hear of an address. @param source  the host's own address on the way to it, as long as `ip` */
void neighbours_learn(bool ipv6, const uint8_t *ip, const uint8_t mac[NEIGHBOUR_MAC_BYTES], const uint8_t *source);
/** @return the host's own address on the way to one that can be reached, or NULL: of another one nothing is known now */
const uint8_t *neighbours_source(bool ipv6, const uint8_t *ip);
/** Hear that an address cannot be reached: what waits for it is dropped. @param err errno; 0: the host is not told of the packets */
void neighbours_lose(bool ipv6, const uint8_t *ip, int err);
/** Whether packets wait for an answer. */
bool neighbours_waiting(void);
/** Packets that were dropped as their address could not be reached, or too many waited for it. */
uint64_t neighbours_dropped(void);

#endif
