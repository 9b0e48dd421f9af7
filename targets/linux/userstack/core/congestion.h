/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Congestion window of a connection: CUBIC (RFC 9438) with a slow start that ends by delay (RFC 9406), and proportional rate
 * reduction (RFC 6937) while losses are repaired.
 */
#ifndef BW_CONGESTION_H
#define BW_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_pcb;

/** A loss was found: the threshold falls, and the rate is brought there. */
void congestion_begin(struct tcp_pcb *pcb);
/** The timer ran out: the window is one segment. @param first not the same data's second time-out */
void congestion_collapse(struct tcp_pcb *pcb, bool first);
/** Data arrived at the peer. @param flight_bytes what was in flight before */
void congestion_on_delivered(struct tcp_pcb *pcb, uint32_t delivered_bytes, uint32_t flight_bytes, uint64_t now_us);
/** A round trip was taken: slow start ends when a queue builds up. */
void congestion_on_rtt(struct tcp_pcb *pcb, uint64_t rtt_us, uint32_t ack);
/** All losses are repaired. */
void congestion_end(struct tcp_pcb *pcb);
/** Nothing had been lost: back to the window of before. */
void congestion_undo(struct tcp_pcb *pcb);

#endif
