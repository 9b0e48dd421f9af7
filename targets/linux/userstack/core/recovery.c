/* SPDX-License-Identifier: Apache-2.0 */
/* Of a connection: round trips, what the peer has, what is lost. */
#include "congestion.h"
#include "recovery_internal.h"

#define MIN_RTT_AGE_US 10000000u /* how long the least round trip counts */
#define DUPLICATE_ACKS 3
#define REORDER_KEEP 16 /* recoveries (RFC 8985, 6.2) */
#define LONE_ACKS 8 /* after so many the peer's way with single segments is known */

struct recovery_limits recovery_limits = {
	.timeout_min_us = 5000,
	.timeout_max_us = 60000000,
	.timeout_initial_us = 1000000,
	.peer_ack_delay_us = 2000,
	.ack_delay_us = 100,
	.ack_segments = 8,
	.give_up_us = 120000000,
};
struct recovery_counts recovery_total;

uint64_t recovery_answer_us(const struct recovery *recovery)
{
	uint64_t delay_us = recovery_limits.peer_ack_delay_us;

	if (recovery->lone_acks == LONE_ACKS)
		delay_us = LWIP_MIN(delay_us, recovery->lone_delay_us + recovery->lone_delay_us / 2);
	return recovery->min_rtt_us + delay_us;
}

uint64_t recovery_timeout_us(const struct recovery *recovery)
{
	uint64_t timeout_us = recovery_limits.timeout_initial_us, least_us = recovery_limits.timeout_min_us;

	if (recovery->smoothed_rtt_us > 0)
		timeout_us = recovery->smoothed_rtt_us + 4 * recovery->rtt_variation_us;
	/* The minimum is for peers that acknowledge late; a probe of what they have is answered at once. */
	if (recovery->probed && recovery->backoff == 0)
		least_us = LWIP_MIN(least_us, recovery_answer_us(recovery));
	timeout_us = LWIP_MAX(timeout_us, least_us) << LWIP_MIN(recovery->backoff, 30u);
	return LWIP_MIN(timeout_us, recovery_limits.timeout_max_us);
}

static void take_rtt(struct recovery *recovery, uint64_t rtt_us)
{
	int64_t error_us = (int64_t)rtt_us - (int64_t)recovery->smoothed_rtt_us;

	recovery->backoff = 0; /* not before (RFC 6298, 5): an acknowledgement of what went out twice tells nothing of the way */
	rtt_us = LWIP_MAX(rtt_us, 1);
	if (recovery->smoothed_rtt_us == 0) {
		recovery->smoothed_rtt_us = rtt_us;
		recovery->rtt_variation_us = rtt_us / 2;
		return;
	}
	recovery->rtt_variation_us = (3 * recovery->rtt_variation_us + (uint64_t)(error_us < 0 ? -error_us : error_us)) / 4;
	recovery->smoothed_rtt_us = LWIP_MAX((7 * recovery->smoothed_rtt_us + rtt_us) / 8, 1);
}

static void take_min_rtt(struct recovery *recovery, uint64_t rtt_us, uint64_t now_us)
{
	rtt_us = LWIP_MAX(rtt_us, 1);
	if (recovery->min_rtt_us == 0 || rtt_us <= recovery->min_rtt_us || now_us - recovery->min_rtt_at_us > MIN_RTT_AGE_US) {
		recovery->min_rtt_us = rtt_us;
		recovery->min_rtt_at_us = now_us;
	}
}

/* A delay that does not come again is forgotten. */
static void take_lone_ack(struct recovery *recovery, uint64_t rtt_us)
{
	uint64_t delay_us = rtt_us - LWIP_MIN(rtt_us, recovery->min_rtt_us);

	recovery->lone_delay_us = LWIP_MAX(delay_us, recovery->lone_delay_us - recovery->lone_delay_us / 8);
	recovery->lone_acks = LWIP_MIN(recovery->lone_acks + 1, LONE_ACKS);
}

struct tcp_seg *recovery_missing_from(struct tcp_seg *seg)
{
	struct tcp_seg *missing = seg;

	while (missing && missing->mark.flags & SACKED)
		missing = missing->mark.beyond ? missing->mark.beyond : missing->next;
	if (seg != missing)
		seg->mark.beyond = missing;
	return missing;
}

void recovery_mark_lost(struct recovery *recovery, struct tcp_seg *seg, uint8_t cause)
{
	seg->mark.flags = (uint8_t)(seg->mark.flags | LOST | cause);
	recovery->in_flight_bytes -= size_of(seg);
	recovery->lost_bytes += size_of(seg);
}

void recovery_on_mss_lowered(struct tcp_pcb *pcb)
{
	for (struct tcp_seg *seg = pcb->unacked; seg; seg = seg->next)
		if (seg->len > pcb->mss && !(seg->mark.flags & (SACKED | LOST)))
			recovery_mark_lost(&pcb->recovery, seg, 0);
}

void recovery_on_removed(struct tcp_pcb *pcb, struct tcp_seg *seg)
{
	if (seg->mark.flags & LOST)
		pcb->recovery.lost_bytes -= size_of(seg);
	else if (!(seg->mark.flags & SACKED))
		pcb->recovery.in_flight_bytes -= size_of(seg);
}

/* RACK. */

static bool sent_before_arrived(const struct recovery *recovery, const struct tcp_seg *seg)
{
	return seg->mark.sent_us < recovery->rack_sent_us ||
	       (seg->mark.sent_us == recovery->rack_sent_us && TCP_SEQ_LT(end_of(seg), recovery->rack_end));
}

uint64_t recovery_reorder_window_us(const struct recovery *recovery)
{
	if (!recovery->reordered && (recovery->state != RECOVERY_OPEN || recovery->sacked_segments >= DUPLICATE_ACKS))
		return 0;
	return LWIP_MIN(recovery->min_rtt_us * (1 + recovery->reorder_quarters) / 4, recovery->smoothed_rtt_us);
}

void recovery_find_lost(struct tcp_pcb *pcb, uint64_t now_us)
{
	struct recovery *recovery = &pcb->recovery;
	uint64_t wait_us = recovery->rack_rtt_us + recovery_reorder_window_us(recovery);

	recovery->reorder_waits = false;
	for (struct tcp_seg *seg = recovery_missing_from(pcb->unacked); seg; seg = recovery_missing_from(seg->next)) {
		uint64_t due_us = seg->mark.sent_us + wait_us;

		/* What lies behind one that was sent once was sent later, too. */
		if (!sent_before_arrived(recovery, seg) && !(seg->mark.flags & RESENT))
			break;
		if (seg->mark.flags & LOST || !sent_before_arrived(recovery, seg))
			continue;
		if (due_us <= now_us) {
			recovery_mark_lost(recovery, seg, 0);
		} else if (!recovery->reorder_waits || due_us < recovery->reorder_due_us) {
			recovery->reorder_waits = true;
			recovery->reorder_due_us = due_us;
		}
	}
}

void recovery_begin(struct tcp_pcb *pcb)
{
	struct recovery *recovery = &pcb->recovery;

	if (recovery->lost_bytes == 0 || recovery->state != RECOVERY_OPEN)
		return;
	congestion_of(pcb)->begin(pcb);
	recovery->state = RECOVERY_FAST;
	recovery->recovery_end = pcb->snd_nxt;
	recovery->force = true;
}

static void end_recovery(struct tcp_pcb *pcb)
{
	struct recovery *recovery = &pcb->recovery;

	congestion_of(pcb)->end(pcb);
	recovery->state = RECOVERY_OPEN;
	if (recovery->reorder_keep > 0 && --recovery->reorder_keep == 0)
		recovery->reorder_quarters = 0;
}

/* Acknowledgements. */

struct arrival {
	uint32_t bytes;           /* that the peer has now and had not before */
	uint64_t first_rtt_us;    /* of the first and the last segment of them that went out once, 0: none */
	uint64_t last_rtt_us;
	bool original;            /* some went out once, before the timer ran out */
	bool duplicate;           /* it tells of one */
};

static void take_arrival(struct recovery *recovery, struct tcp_seg *seg, uint64_t now_us, struct arrival *arrival)
{
	uint64_t rtt_us = now_us - seg->mark.sent_us;
	bool resent = (seg->mark.flags & RESENT) != 0;
	uint32_t end = end_of(seg);

	if (seg->mark.flags & LOST)
		recovery->lost_bytes -= size_of(seg);
	else
		recovery->in_flight_bytes -= size_of(seg);
	seg->mark.flags = (uint8_t)((seg->mark.flags & ~(LOST | BY_TIMEOUT)) | SACKED);
	arrival->bytes += size_of(seg);
	delivery_on_arrival(&recovery->delivery, &seg->mark.delivery, size_of(seg), seg->mark.sent_us, now_us);

	if (!resent) {
		arrival->original |= TCP_SEQ_LEQ(end, recovery->recovery_end);
		if (TCP_SEQ_LT(end, recovery->highest_arrived))
			recovery->reordered = true;
		if (arrival->first_rtt_us == 0)
			arrival->first_rtt_us = LWIP_MAX(rtt_us, 1);
		arrival->last_rtt_us = LWIP_MAX(rtt_us, 1);
	} else {
		recovery->doubtful.left = start_of(seg);
		recovery->doubtful.right = end;
		recovery->doubtful_rtt_us = now_us - seg->mark.first_sent_us;
	}
	if (recovery->rack_rtt_us == 0 || TCP_SEQ_GT(end, recovery->highest_arrived))
		recovery->highest_arrived = end;
	/* What is faster than any round trip was the first of the two that was sent. */
	if (resent && rtt_us < recovery->min_rtt_us)
		return;
	if (recovery->rack_rtt_us == 0 || seg->mark.sent_us > recovery->rack_sent_us ||
	    (seg->mark.sent_us == recovery->rack_sent_us && TCP_SEQ_GT(end, recovery->rack_end))) {
		recovery->rack_sent_us = seg->mark.sent_us;
		recovery->rack_end = end;
		recovery->rack_rtt_us = LWIP_MAX(rtt_us, 1);
	}
}

static bool in_blocks(const struct recovery *recovery, const struct tcp_seg *seg)
{
	uint32_t left = start_of(seg), right = end_of(seg);

	for (unsigned int i = 0; i < recovery->block_count; i++)
		if (TCP_SEQ_GEQ(left, recovery->blocks[i].left) && TCP_SEQ_LEQ(right, recovery->blocks[i].right))
			return true;
	return false;
}

/* The first block may tell of what came twice (RFC 2883). */
static bool take_duplicate(struct tcp_pcb *pcb, uint32_t ack)
{
	struct recovery *recovery = &pcb->recovery;
	struct recovery_range block = recovery->blocks[0];

	if (recovery->block_count == 0)
		return false;
	if (TCP_SEQ_GT(block.right, ack) &&
	    (recovery->block_count < 2 || TCP_SEQ_LT(block.left, recovery->blocks[1].left) ||
	     TCP_SEQ_GT(block.right, recovery->blocks[1].right)))
		return false;
	if (TCP_SEQ_LEQ(block.right, ack)) {
		for (unsigned int i = 1; i < recovery->block_count; i++)
			recovery->blocks[i - 1] = recovery->blocks[i];
		recovery->block_count--;
	}

	/* The timer was short, not the peer slow to acknowledge: then the report comes after the acknowledgement. */
	if (recovery->doubtful_rtt_us > 0 && block.left == recovery->doubtful.left && block.right == recovery->doubtful.right) {
		take_rtt(recovery, recovery->doubtful_rtt_us);
		take_lone_ack(recovery, recovery->doubtful_rtt_us);
	}
	recovery->doubtful_rtt_us = 0;
	if (recovery->undo_possible && recovery->undo_segments > 0)
		recovery->undo_segments--;
	if (recovery->probe_pending && recovery->probe_resent && block.right == recovery->probe_end)
		return true;
	if (!recovery->reorder_round || TCP_SEQ_GEQ(ack, recovery->reorder_round_end)) {
		recovery->reordered = true;
		recovery->reorder_quarters++;
		recovery->reorder_round = true;
		recovery->reorder_round_end = pcb->snd_nxt;
	}
	recovery->reorder_keep = REORDER_KEEP;
	return true;
}

/* What was sent again had arrived all the time. */
static void undo(struct tcp_pcb *pcb)
{
	struct recovery *recovery = &pcb->recovery;

	for (struct tcp_seg *seg = pcb->unacked; seg; seg = seg->next) {
		if (seg->mark.flags & LOST) {
			seg->mark.flags &= (uint8_t)~(LOST | BY_TIMEOUT);
			recovery->in_flight_bytes += size_of(seg);
			recovery->lost_bytes -= size_of(seg);
		}
	}
	/* The acknowledgement of what was sent twice was of the first time: it says nothing of what was sent in between. */
	recovery->rack_sent_us = 0;
	recovery->reorder_waits = false;
	recovery->state = RECOVERY_OPEN;
	congestion_of(pcb)->undo(pcb);
}

static struct tcp_seg *first_after(struct tcp_pcb *pcb, uint32_t ack)
{
	struct tcp_seg *seg = pcb->unacked;

	while (seg && TCP_SEQ_LEQ(end_of(seg), ack))
		seg = seg->next;
	return seg;
}

/* A peer without SACK: the third duplicate, or progress within a recovery, says that the first segment is lost (RFC 6582). */
static void count_duplicate_acks(struct tcp_pcb *pcb, uint32_t ack, bool progress, bool same_window, struct arrival *arrival)
{
	struct recovery *recovery = &pcb->recovery;
	struct tcp_seg *seg = first_after(pcb, ack);

	if (progress)
		recovery->duplicate_acks = 0;
	else if (same_window && seg) {
		recovery->duplicate_acks++;
		arrival->bytes = pcb->mss;
	}
	if (seg && !(seg->mark.flags & LOST) && seg->mark.sent_us + recovery->smoothed_rtt_us / 2 <= stack_now_us() &&
	    (recovery->duplicate_acks == DUPLICATE_ACKS ||
	     (progress && recovery->state == RECOVERY_FAST && TCP_SEQ_LT(ack, recovery->recovery_end))))
		recovery_mark_lost(recovery, seg, 0);
}

void recovery_on_sack(struct tcp_pcb *pcb, uint32_t left, uint32_t right)
{
	struct recovery *recovery = &pcb->recovery;

	if (!(pcb->flags & TF_SACK) || recovery->block_count == LWIP_ARRAYSIZE(recovery->blocks) || !TCP_SEQ_LT(left, right) ||
	    TCP_SEQ_GT(right, pcb->snd_nxt))
		return;
	recovery->blocks[recovery->block_count++] = (struct recovery_range){left, right};
}

void recovery_on_ack(struct tcp_pcb *pcb, uint32_t ack, int same_window)
{
	struct recovery *recovery = &pcb->recovery;
	uint64_t now_us = stack_now_us();
	uint32_t flight_bytes = recovery->in_flight_bytes, reach = TCP_SEQ_GT(recovery->highest_arrived, ack) ? recovery->highest_arrived : ack;
	bool progress = TCP_SEQ_GT(ack, pcb->lastack), lone = pcb->unacked && !pcb->unacked->next;
	struct arrival arrival = {0};
	struct tcp_seg *head;

	if (TCP_SEQ_LT(ack, pcb->lastack) || TCP_SEQ_GT(ack, pcb->snd_nxt))
		return;
	recovery->heard_us = now_us;
	arrival.duplicate = take_duplicate(pcb, ack);
	for (unsigned int i = 0; i < recovery->block_count; i++)
		if (TCP_SEQ_GT(recovery->blocks[i].right, reach))
			reach = recovery->blocks[i].right;
	head = pcb->unacked;
	for (; head && TCP_SEQ_LEQ(end_of(head), ack); head = head->next) {
		if (!(head->mark.flags & SACKED))
			take_arrival(recovery, head, now_us, &arrival);
		else if (recovery->sacked_segments > 0)
			recovery->sacked_segments--;
	}
	for (struct tcp_seg *seg = recovery_missing_from(head); seg && TCP_SEQ_LT(start_of(seg), reach);
	     seg = recovery_missing_from(seg->next)) {
		if (in_blocks(recovery, seg)) {
			take_arrival(recovery, seg, now_us, &arrival);
			recovery->sacked_segments++;
		}
	}
	if (arrival.first_rtt_us > 0) {
		take_rtt(recovery, arrival.first_rtt_us);
		take_min_rtt(recovery, arrival.last_rtt_us, now_us);
		if (lone)
			take_lone_ack(recovery, arrival.last_rtt_us);
		congestion_of(pcb)->on_rtt(pcb, arrival.last_rtt_us, ack, now_us);
	}
	if (progress) {
		recovery->progress_us = now_us;
		recovery->probed = false;
	}
	/* All that was sent again came twice, or the timer ran out while the first transmissions were under way (F-RTO, RFC 5682). */
	if (recovery->undo_possible && ((arrival.duplicate && recovery->undo_segments == 0 && recovery->state != RECOVERY_OPEN) ||
					(arrival.original && recovery->state == RECOVERY_TIMEOUT && pcb->flags & TF_SACK)))
		undo(pcb);
	if (recovery->probe_pending && TCP_SEQ_GEQ(ack, recovery->probe_end)) {
		recovery->probe_pending = false;
		if (recovery->probe_resent && !arrival.duplicate && recovery->state == RECOVERY_OPEN &&
		    now_us - recovery->probe_sent_us >= recovery->min_rtt_us) {
			/* The probe repaired a loss, which counts as any other. What comes sooner is of the first transmission. */
			congestion_of(pcb)->probe_repaired(pcb);
		}
	}
	if (recovery->state != RECOVERY_OPEN && TCP_SEQ_GEQ(ack, recovery->recovery_end))
		end_recovery(pcb);
	if (!(pcb->flags & TF_SACK))
		count_duplicate_acks(pcb, ack, progress, same_window != 0, &arrival);
	if (head && pcb->flags & TF_SACK && (recovery->sacked_segments > 0 || recovery->reorder_waits || sent_before_arrived(recovery, head)))
		recovery_find_lost(pcb, now_us);
	if (!head)
		recovery->reorder_waits = false;
	recovery_begin(pcb);
	if (arrival.bytes > 0)
		congestion_of(pcb)->on_delivered(pcb, arrival.bytes, flight_bytes, now_us);
}
