/* SPDX-License-Identifier: Apache-2.0 */
#include "congestion.h"

#include "lwip/priv/tcp_priv.h"

/* CUBIC's constants: growth in segments/s³, the factor of a loss, and the additive increase that is as fast as Reno's with it. */
#define CUBIC_C 0.4
#define CUBIC_BETA 0.7
#define CUBIC_ALPHA (3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA))

/* The threshold's least value in segments: with 4 of them, one loss is still seen by what arrives after it. RFC 5681 has 2, and 10 for
 * a connection that begins (RFC 6928). */
#define THRESHOLD_SEGMENTS 4

/* A round trip that is longer than the least by an eighth, within these limits, is a queue. RFC 9406 has 4 ms: 40 round trips of a LAN. */
#define QUEUE_MIN_US 500u
#define QUEUE_MAX_US 16000u
#define QUEUE_SAMPLES 8

static double cube_root(double x)
{
	double root = x > 1 ? x : 1;

	if (x <= 0)
		return 0;
	for (int i = 0; i < 100; i++) {
		double next = (2 * root + x / (root * root)) / 3;

		if (next >= root)
			break;
		root = next;
	}
	return root;
}

static void reduce(struct tcp_pcb *pcb)
{
	struct recovery *recovery = &pcb->recovery;
	double window = (double)pcb->cwnd / pcb->mss;

	recovery->undo_window_bytes = pcb->cwnd;
	recovery->undo_threshold_bytes = pcb->ssthresh;
	recovery->undo_segments = 0;
	recovery->undo_possible = true;

	recovery->cubic_max = window < recovery->cubic_max ? window * (1 + CUBIC_BETA) / 2 : window;
	recovery->cubic_epoch_us = 0;
	pcb->ssthresh = LWIP_MAX((tcpwnd_size_t)(pcb->cwnd * CUBIC_BETA), (tcpwnd_size_t)THRESHOLD_SEGMENTS * pcb->mss);
}

/* The threshold falls, and the rate is brought there. */
static void begin_reduction(struct tcp_pcb *pcb)
{
	struct recovery *recovery = &pcb->recovery;

	reduce(pcb);
	recovery->recovery_flight_bytes = LWIP_MAX(pcb->snd_nxt - pcb->lastack, 1);
	recovery->rate_delivered_bytes = 0;
	recovery->rate_sent_bytes = 0;
}

static void begin(struct tcp_pcb *pcb)
{
	begin_reduction(pcb);
	pcb->cwnd = LWIP_MAX(pcb->recovery.in_flight_bytes, 1);
}

static void probe_repaired(struct tcp_pcb *pcb)
{
	begin_reduction(pcb);
	pcb->cwnd = LWIP_MIN(pcb->cwnd, pcb->ssthresh);
}

static void collapse(struct tcp_pcb *pcb, bool first)
{
	if (first)
		reduce(pcb);
	pcb->cwnd = pcb->mss;
}

static uint64_t on_sent(struct tcp_pcb *pcb, uint32_t size_bytes, uint64_t now_us)
{
	(void)now_us;
	pcb->recovery.rate_sent_bytes += size_bytes;
	return 0;
}

static void reduce_rate(struct tcp_pcb *pcb, uint32_t delivered_bytes)
{
	struct recovery *recovery = &pcb->recovery;
	uint32_t flight = recovery->in_flight_bytes;
	int64_t allowance;

	recovery->rate_delivered_bytes += delivered_bytes;
	if (flight > pcb->ssthresh) {
		allowance = (int64_t)(((uint64_t)recovery->rate_delivered_bytes * pcb->ssthresh + recovery->recovery_flight_bytes - 1) /
				      recovery->recovery_flight_bytes) - recovery->rate_sent_bytes;
	} else {
		int64_t owed = (int64_t)recovery->rate_delivered_bytes - recovery->rate_sent_bytes;

		allowance = LWIP_MIN((int64_t)pcb->ssthresh - flight, LWIP_MAX(owed, (int64_t)delivered_bytes) + pcb->mss);
	}
	pcb->cwnd = flight + (uint32_t)LWIP_MAX(allowance, 0);
}

static void grow_cubic(struct tcp_pcb *pcb, uint32_t delivered_bytes, uint64_t now_us)
{
	struct recovery *recovery = &pcb->recovery;
	double window = (double)pcb->cwnd / pcb->mss, delivered = (double)delivered_bytes / pcb->mss, t_s, target;

	if (recovery->cubic_epoch_us == 0) {
		recovery->cubic_epoch_us = now_us;
		recovery->cubic_origin = LWIP_MAX(recovery->cubic_max, window);
		recovery->cubic_k_s = cube_root((recovery->cubic_origin - window) / CUBIC_C);
		recovery->cubic_reno = window;
	}
	recovery->cubic_reno += (recovery->cubic_reno < recovery->cubic_origin ? CUBIC_ALPHA : 1) * delivered / window;
	t_s = (double)(now_us - recovery->cubic_epoch_us + recovery->smoothed_rtt_us) * 1e-6 - recovery->cubic_k_s;
	target = recovery->cubic_origin + CUBIC_C * t_s * t_s * t_s;
	target = LWIP_MIN(LWIP_MAX(target, window), 1.5 * window);
	window += (target - window) / window * delivered;
	pcb->cwnd = (tcpwnd_size_t)(LWIP_MAX(window, recovery->cubic_reno) * pcb->mss + 0.5);
}

static void on_delivered(struct tcp_pcb *pcb, uint32_t delivered_bytes, uint32_t flight_bytes, uint64_t now_us)
{
	struct recovery *recovery = &pcb->recovery;
	bool slow_start = pcb->cwnd < pcb->ssthresh;

	if (recovery->state == RECOVERY_FAST) {
		reduce_rate(pcb, delivered_bytes);
		return;
	}
	/* A window that is not used tells nothing of the path. */
	if (recovery->state == RECOVERY_OPEN && (uint64_t)flight_bytes * (slow_start ? 2 : 1) + pcb->mss < pcb->cwnd)
		return;
	if (slow_start)
		pcb->cwnd += LWIP_MIN(delivered_bytes, pcb->ssthresh - pcb->cwnd);
	else
		grow_cubic(pcb, delivered_bytes, now_us);
	pcb->cwnd = LWIP_MIN(pcb->cwnd, (tcpwnd_size_t)TCP_SND_BUF * 2);
}

/* Slow start ends when a queue builds up. */
static void on_rtt(struct tcp_pcb *pcb, uint64_t rtt_us, uint32_t ack, uint64_t now_us)
{
	struct recovery *recovery = &pcb->recovery;
	uint64_t queue_us = LWIP_MIN(LWIP_MAX(recovery->min_rtt_us / 8, QUEUE_MIN_US), QUEUE_MAX_US);

	(void)now_us;
	if (pcb->cwnd >= pcb->ssthresh)
		return;
	if (recovery->start_round_samples == 0 || TCP_SEQ_GEQ(ack, recovery->start_round_end)) {
		recovery->start_round_end = pcb->snd_nxt;
		recovery->start_round_samples = 0;
		recovery->start_round_min_us = rtt_us;
	}
	recovery->start_round_samples++;
	recovery->start_round_min_us = LWIP_MIN(recovery->start_round_min_us, rtt_us);
	if (recovery->start_round_samples >= QUEUE_SAMPLES && recovery->start_round_min_us >= recovery->min_rtt_us + queue_us)
		pcb->ssthresh = pcb->cwnd;
}

static void end(struct tcp_pcb *pcb)
{
	if (pcb->recovery.state == RECOVERY_FAST)
		pcb->cwnd = pcb->ssthresh;
}

static void undo(struct tcp_pcb *pcb)
{
	struct recovery *recovery = &pcb->recovery;

	pcb->cwnd = LWIP_MAX(pcb->cwnd, recovery->undo_window_bytes);
	pcb->ssthresh = LWIP_MAX(pcb->ssthresh, recovery->undo_threshold_bytes);
	recovery->cubic_epoch_us = 0;
	recovery->undo_possible = false;
}

uint32_t congestion_room_bytes(const struct tcp_pcb *pcb)
{
	uint32_t in_flight_bytes = pcb->recovery.in_flight_bytes;

	return pcb->cwnd > in_flight_bytes ? pcb->cwnd - in_flight_bytes : 0;
}

static uint32_t room_bytes(const struct tcp_pcb *pcb, uint64_t now_us)
{
	(void)now_us;
	return congestion_room_bytes(pcb);
}

static uint32_t buffer_bytes(const struct tcp_pcb *pcb)
{
	(void)pcb;
	return 0;
}

const struct congestion congestion_window = {on_sent, begin, probe_repaired, collapse, on_delivered, on_rtt, end, undo, room_bytes,
					     buffer_bytes};
const struct congestion *congestion_wanted = &congestion_window;

/* Without SACK nobody knows what has arrived, so that there is no rate. */
const struct congestion *congestion_of(const struct tcp_pcb *pcb)
{
	return pcb->flags & TF_SACK ? congestion_wanted : &congestion_window;
}
