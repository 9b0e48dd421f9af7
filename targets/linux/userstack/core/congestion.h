/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What says how much a connection may send. There are two of them:
 *
 * congestion_window  CUBIC (RFC 9438) with a slow start that ends by delay (RFC 9406), and proportional rate reduction (RFC 6937) while
 *                    losses are repaired
 * congestion_model   BBR's model of the path: how fast it delivers, how long it is; congestion_model.c
 */
#ifndef BW_CONGESTION_H
#define BW_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_pcb;

struct congestion {
	/** A segment went out, also once more. @return when more may go though nothing is acknowledged, 0: any time */
	uint64_t (*on_sent)(struct tcp_pcb *pcb, uint32_t size_bytes, uint64_t now_us);
	/** A loss was found. */
	void (*begin)(struct tcp_pcb *pcb);
	/** A probe has repaired a loss before it was found. */
	void (*probe_repaired)(struct tcp_pcb *pcb);
	/** The timer ran out. @param first not the same data's second time-out */
	void (*collapse)(struct tcp_pcb *pcb, bool first);
	/** Data arrived at the peer. @param flight_bytes what was in flight before */
	void (*on_delivered)(struct tcp_pcb *pcb, uint32_t delivered_bytes, uint32_t flight_bytes, uint64_t now_us);
	/** A round trip was taken. */
	void (*on_rtt)(struct tcp_pcb *pcb, uint64_t rtt_us, uint32_t ack, uint64_t now_us);
	/** All losses are repaired. */
	void (*end)(struct tcp_pcb *pcb);
	/** Nothing had been lost: back to what was before. */
	void (*undo)(struct tcp_pcb *pcb);
	/** @return how much may go out now beside what is in flight */
	uint32_t (*room_bytes)(const struct tcp_pcb *pcb, uint64_t now_us);
	/** @return how much the program has to be able to hand over that the path stays full, 0: whatever the buffer is */
	uint32_t (*buffer_bytes)(const struct tcp_pcb *pcb);
};

extern const struct congestion congestion_window, congestion_model;

/** Of all connections with SACK; of others it is the window. A program may change it before its first one. */
extern const struct congestion *congestion_wanted;
/** Of this connection. */
const struct congestion *congestion_of(const struct tcp_pcb *pcb);

/** What the window lets out. */
uint32_t congestion_room_bytes(const struct tcp_pcb *pcb);

#endif
