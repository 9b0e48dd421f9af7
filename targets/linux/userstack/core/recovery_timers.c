/* SPDX-License-Identifier: Apache-2.0 */
/* Of a connection: what goes out again, and the timers. */
#include "congestion.h"
#include "recovery_internal.h"

/* ACKs that tell a peer which numbers are right: so many, in so long. */
#define CHALLENGES 10
#define CHALLENGES_US 5000000u

/* Sending. */

void recovery_on_sent(struct tcp_pcb *pcb, struct tcp_seg *seg)
{
	struct recovery *recovery = &pcb->recovery;
	uint64_t now_us = stack_now_us();

	if (size_of(seg) == 0)
		return;
	seg->mark = (struct recovery_mark){.first_sent_us = now_us, .sent_us = now_us};
	delivery_on_sent(&recovery->delivery, &seg->mark.delivery, recovery->in_flight_bytes == 0, now_us);
	if (!pcb->unacked)
		recovery->progress_us = now_us;
	recovery->last_sent_us = now_us;
	recovery->last_sent = seg;
	recovery->in_flight_bytes += size_of(seg);
	recovery->paced_due_us = congestion_of(pcb)->on_sent(pcb, size_of(seg), now_us);
	recovery->counts.sent_segments++;
	recovery_total.sent_segments++;
}

static bool resend(struct tcp_pcb *pcb, struct tcp_seg *seg, bool probe)
{
	struct recovery *recovery = &pcb->recovery;
	struct recovery_counts *counts[] = {&recovery->counts, &recovery_total};
	uint64_t now_us = stack_now_us();

	if (tcp_resend(pcb, seg) != ERR_OK)
		return false;
	for (unsigned int i = 0; i < LWIP_ARRAYSIZE(counts); i++) {
		counts[i]->sent_segments++;
		counts[i]->retransmitted_segments++;
		if (probe)
			counts[i]->by_probe++;
		else if (seg->mark.flags & BY_TIMEOUT)
			counts[i]->by_timeout++;
		else
			counts[i]->by_rack++;
	}
	delivery_on_sent(&recovery->delivery, &seg->mark.delivery, recovery->in_flight_bytes == 0, now_us);
	if (seg->mark.flags & LOST) {
		recovery->lost_bytes -= size_of(seg);
		recovery->in_flight_bytes += size_of(seg);
	}
	seg->mark.flags = (uint8_t)((seg->mark.flags & ~(LOST | BY_TIMEOUT)) | RESENT);
	seg->mark.sent_us = recovery->last_sent_us = now_us;
	if (seg == pcb->unacked)
		recovery->progress_us = seg->mark.sent_us;
	recovery->paced_due_us = congestion_of(pcb)->on_sent(pcb, size_of(seg), now_us);
	recovery->undo_segments++;
	return true;
}

void recovery_resend_first(struct tcp_pcb *pcb)
{
	if (pcb->unacked)
		resend(pcb, pcb->unacked, false);
}

void recovery_output(struct tcp_pcb *pcb)
{
	struct recovery *recovery = &pcb->recovery;

	for (struct tcp_seg *seg = recovery_missing_from(pcb->unacked); seg && recovery->lost_bytes > 0;
	     seg = recovery_missing_from(seg->next)) {
		if (!(seg->mark.flags & LOST))
			continue;
		if ((size_of(seg) > congestion_of(pcb)->room_bytes(pcb, stack_now_us()) && !recovery->force) || !resend(pcb, seg, false))
			break;
		recovery->force = false;
	}
}

uint32_t recovery_window_bytes(const struct tcp_pcb *pcb)
{
	const struct recovery *recovery = &pcb->recovery;
	int64_t room_bytes = recovery->probe_bytes > 0 ? recovery->probe_bytes : congestion_of(pcb)->room_bytes(pcb, stack_now_us());
	int64_t sent_bytes;

	if (!pcb->unsent)
		return pcb->cwnd;
	sent_bytes = (int32_t)(start_of(pcb->unsent) - pcb->lastack);
	/* A lost segment goes first. */
	if (recovery->lost_bytes > 0 && recovery->probe_bytes == 0)
		room_bytes = 0;
	return (uint32_t)LWIP_MAX(sent_bytes + room_bytes, 0);
}

/* Receiving. */

bool recovery_together, recovery_held_back;

void recovery_on_ack_delayed(struct tcp_pcb *pcb)
{
	pcb->recovery.ack_due_us = stack_now_us() + recovery_limits.ack_delay_us;
	pcb->recovery.ack_segments = 1;
}

/* As of segments that a kernel's card has joined (GRO). Alone, every second segment is acknowledged at once (RFC 5681, 4.2). */
int recovery_ack_waits(struct tcp_pcb *pcb)
{
	if (!recovery_together || ++pcb->recovery.ack_segments >= recovery_limits.ack_segments)
		return false;
	pcb->recovery.ack_due_us = 0;
	recovery_held_back = true;
	return true;
}

/* Two ends that do not agree on their numbers, by a forged segment say, would answer each other for good (RFC 5961, 7). */
int recovery_may_challenge(struct tcp_pcb *pcb)
{
	struct recovery *recovery = &pcb->recovery;
	uint64_t now_us = stack_now_us();

	if (recovery->challenges == 0 || now_us - recovery->challenges_us >= CHALLENGES_US) {
		recovery->challenges_us = now_us;
		recovery->challenges = 0;
	}
	if (recovery->challenges == CHALLENGES)
		return false;
	recovery->challenges++;
	return true;
}

void recovery_on_duplicate(struct tcp_pcb *pcb, uint32_t left, uint32_t right)
{
	pcb->recovery.duplicate = (struct recovery_range){left, right};
	pcb->recovery.counts.duplicate_segments++;
	recovery_total.duplicate_segments++;
}

/* Timers. */

static uint64_t timeout_due_us(const struct tcp_pcb *pcb)
{
	return pcb->unacked ? pcb->recovery.progress_us + recovery_timeout_us(&pcb->recovery) : UINT64_MAX;
}

/* Whether the peer may have the only segment that is under way, and wait with its acknowledgement. It would have acknowledged that, too,
 * in what came a round trip after the segment was sent. */
static bool peer_may_wait(const struct tcp_pcb *pcb)
{
	const struct recovery *recovery = &pcb->recovery;
	const struct tcp_seg *only = pcb->unacked;

	return !only->next && recovery->heard_us < only->mark.sent_us + recovery->min_rtt_us + recovery_reorder_window_us(recovery);
}

/* A probe asks for an acknowledgement that tells of a lost end of the data. Unlike RFC 8985 it also does so while losses are repaired: a
 * retransmission that is lost, too, need not wait for the timer. */
static uint64_t probe_due_us(const struct tcp_pcb *pcb)
{
	const struct recovery *recovery = &pcb->recovery;
	uint64_t wait_us = 2 * recovery->smoothed_rtt_us;

	if (!pcb->unacked || !(pcb->flags & TF_SACK) || recovery->smoothed_rtt_us == 0 || recovery->probed ||
	    recovery->state == RECOVERY_TIMEOUT || recovery->lost_bytes > 0)
		return UINT64_MAX;
	/* The smoothed round trip of lone segments has the peer's delay in it already, so that the least one counts here. */
	if (peer_may_wait(pcb))
		wait_us = LWIP_MAX(wait_us, recovery_answer_us(recovery));
	return LWIP_MIN(LWIP_MAX(recovery->last_sent_us, recovery->progress_us) + wait_us, timeout_due_us(pcb));
}

static void probe(struct tcp_pcb *pcb, uint64_t now_us)
{
	struct recovery *recovery = &pcb->recovery;
	uint32_t next = pcb->snd_nxt;
	struct tcp_seg *chosen = NULL;

	recovery->probed = true;
	recovery->progress_us = recovery->probe_sent_us = now_us;
	recovery->probe_resent = false;
	if (recovery->state == RECOVERY_OPEN && pcb->unsent) {
		recovery->probe_bytes = size_of(pcb->unsent);
		tcp_output(pcb);
		recovery->probe_bytes = 0;
	}
	if (pcb->snd_nxt == next) {
		for (struct tcp_seg *seg = pcb->unacked; seg; seg = seg->next) {
			if (seg->mark.flags & SACKED)
				continue;
			chosen = seg;
			if (recovery->state != RECOVERY_OPEN)
				break;
		}
		if (chosen)
			recovery->probe_resent = resend(pcb, chosen, true);
	}
	recovery->progress_us = now_us;
	recovery->probe_pending = true;
	recovery->probe_end = chosen ? end_of(chosen) : pcb->snd_nxt;
}

/* lwIP's slow timer ends the connection. */
static void give_up_after(struct tcp_pcb *pcb, uint64_t silent_us)
{
	uint64_t limit_us = pcb->recovery.give_up_us > 0 ? pcb->recovery.give_up_us : recovery_limits.give_up_us;

	if (silent_us > limit_us)
		pcb->nrtx = TCP_MAXRTX;
}

static void time_out(struct tcp_pcb *pcb, uint64_t now_us)
{
	struct recovery *recovery = &pcb->recovery;
	uint64_t wait_us = recovery->rack_rtt_us + recovery_reorder_window_us(recovery);
	/* A peer may drop what it has selectively acknowledged (RFC 2018, 8). */
	bool dropped = (pcb->unacked->mark.flags & SACKED) != 0;

	if (dropped)
		recovery->sacked_segments = 0;
	for (struct tcp_seg *seg = pcb->unacked; seg; seg = seg->next) {
		if (dropped)
			seg->mark.beyond = NULL;
		if (dropped && seg->mark.flags & SACKED) {
			seg->mark.flags &= (uint8_t)~SACKED;
			recovery->in_flight_bytes += size_of(seg);
		}
		if (!(seg->mark.flags & (SACKED | LOST)) && (seg == pcb->unacked || seg->mark.sent_us + wait_us <= now_us))
			recovery_mark_lost(recovery, seg, BY_TIMEOUT);
	}
	congestion_of(pcb)->collapse(pcb, recovery->state != RECOVERY_TIMEOUT);
	recovery->state = RECOVERY_TIMEOUT;
	recovery->recovery_end = pcb->snd_nxt;
	recovery->probe_pending = false;
	recovery->reorder_waits = false;
	recovery->force = true;
	recovery->backoff++;
	recovery->progress_us = now_us;
	if (pcb->state == SYN_SENT)
		pcb->nrtx++;
	else
		give_up_after(pcb, now_us - pcb->unacked->mark.first_sent_us);
	tcp_output(pcb);
}

/* The peer's window is too small for what waits: ask whether it still is. */
static void persist(struct tcp_pcb *pcb, uint64_t now_us)
{
	struct recovery *recovery = &pcb->recovery;

	recovery->persist_due_us = now_us + LWIP_MIN(recovery_timeout_us(recovery) << LWIP_MIN(pcb->persist_backoff, 30u),
						     recovery_limits.timeout_max_us);
	/* While nothing waited the peer was not asked: that is no silence. */
	give_up_after(pcb, now_us - LWIP_MAX(recovery->heard_us, recovery->persist_since_us));
	pcb->persist_backoff = (u8_t)LWIP_MIN(pcb->persist_backoff + 1u, 30u);
	if (pcb->snd_wnd == 0)
		tcp_zero_window_probe(pcb);
	else if (tcp_split_unsent_seg(pcb, (u16_t)LWIP_MIN(pcb->snd_wnd, 0xffffu)) == ERR_OK)
		tcp_output(pcb);
}

static uint64_t persist_due_us(struct tcp_pcb *pcb, uint64_t now_us)
{
	struct recovery *recovery = &pcb->recovery;

	if (pcb->persist_backoff > 0 && !recovery->persists) {
		recovery->persist_since_us = now_us;
		recovery->persist_due_us = now_us + recovery_timeout_us(recovery);
	}
	recovery->persists = pcb->persist_backoff > 0;
	return recovery->persists ? recovery->persist_due_us : UINT64_MAX;
}

/* When what waits may go though nothing is acknowledged. */
static uint64_t paced_due_us(const struct tcp_pcb *pcb)
{
	bool waits = pcb->recovery.paced_due_us > 0 && (pcb->unsent || pcb->recovery.lost_bytes > 0);

	return waits ? pcb->recovery.paced_due_us : UINT64_MAX;
}

uint64_t recovery_next_us(void)
{
	uint64_t next_us = UINT64_MAX, now_us = stack_now_us();

	for (struct tcp_pcb *pcb = tcp_active_pcbs; pcb; pcb = pcb->next) {
		if (pcb->flags & TF_ACK_DELAY)
			next_us = LWIP_MIN(next_us, pcb->recovery.ack_due_us);
		if (pcb->recovery.reorder_waits)
			next_us = LWIP_MIN(next_us, pcb->recovery.reorder_due_us);
		next_us = LWIP_MIN(next_us, LWIP_MIN(timeout_due_us(pcb), probe_due_us(pcb)));
		next_us = LWIP_MIN(next_us, LWIP_MIN(persist_due_us(pcb, now_us), paced_due_us(pcb)));
	}
	return next_us;
}

void recovery_advance_us(uint64_t now_us)
{
	for (struct tcp_pcb *pcb = tcp_active_pcbs; pcb; pcb = pcb->next) {
		struct recovery *recovery = &pcb->recovery;

		if (pcb->flags & TF_ACK_DELAY && recovery->ack_due_us <= now_us) {
			tcp_ack_now(pcb);
			tcp_output(pcb);
			tcp_clear_flags(pcb, TF_ACK_DELAY);
		}
		if (recovery->reorder_waits && recovery->reorder_due_us <= now_us) {
			recovery_find_lost(pcb, now_us);
			recovery_begin(pcb);
			tcp_output(pcb);
		}
		if (probe_due_us(pcb) <= now_us && probe_due_us(pcb) <= timeout_due_us(pcb))
			probe(pcb, now_us);
		else if (timeout_due_us(pcb) <= now_us)
			time_out(pcb, now_us);
		if (persist_due_us(pcb, now_us) <= now_us)
			persist(pcb, now_us);
		if (paced_due_us(pcb) <= now_us) {
			recovery->paced_due_us = 0;
			tcp_output(pcb);
		}
	}
}
