/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the loss recovery share. */
#ifndef BW_RECOVERY_INTERNAL_H
#define BW_RECOVERY_INTERNAL_H

#include "lwip/priv/tcp_priv.h"
#include "recovery.h"

#if !LWIP_TCP_SACK_OUT
#error "LWIP_TCP_RECOVERY needs LWIP_TCP_SACK_OUT"
#endif

/* Marks of a segment. */
enum { SACKED = 1, LOST = 2, RESENT = 4, BY_TIMEOUT = 8 };

static inline uint32_t start_of(const struct tcp_seg *seg)
{
	return lwip_ntohl(seg->tcphdr->seqno);
}

static inline uint32_t size_of(const struct tcp_seg *seg)
{
	return TCP_TCPLEN(seg);
}

static inline uint32_t end_of(const struct tcp_seg *seg)
{
	return start_of(seg) + size_of(seg);
}

/**
 * Find what has not arrived. On a long path that is a hundredth of what was sent, which is walked once alone.
 *
 * @return the segment, or the first one behind it that has not; NULL: none
 */
struct tcp_seg *recovery_missing_from(struct tcp_seg *seg);
void recovery_mark_lost(struct recovery *recovery, struct tcp_seg *seg, uint8_t cause);
/** How long a peer may take to acknowledge a single segment where nothing queues. */
uint64_t recovery_answer_us(const struct recovery *recovery);
/** How long after what was sent later a segment may arrive. */
uint64_t recovery_reorder_window_us(const struct recovery *recovery);
/** Mark what RACK takes for lost, or set the timer for when it will. */
void recovery_find_lost(struct tcp_pcb *pcb, uint64_t now_us);
/** Begin to repair what was marked, unless that goes on already. */
void recovery_begin(struct tcp_pcb *pcb);

#endif
