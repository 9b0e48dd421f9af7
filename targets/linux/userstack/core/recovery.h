/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loss recovery of a TCP connection: scoreboard of selective acknowledgements (RFC 2018, 6675, 2883), RACK and tail loss probes
 * (RFC 8985), retransmission timer (RFC 6298); how much may go is congestion.h's. lwIP calls it at the places that lwip/patches/
 * names; it makes no call of the operating system. docs/user-stack.md.
 */
#ifndef BW_RECOVERY_H
#define BW_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "congestion_model.h"
#include "delivery_rate.h"

struct tcp_pcb;
struct tcp_seg;

/* Limits of the timers. A program may change them before its first connection. */
struct recovery_limits {
	uint64_t timeout_min_us;     /* of the retransmission timer */
	uint64_t timeout_max_us;
	uint64_t timeout_initial_us; /* before there is a round trip */
	uint64_t peer_ack_delay_us;  /* what a probe allows a peer that has a single segment to acknowledge, until its way is known */
	uint64_t ack_delay_us;       /* how long our own acknowledgement waits for an answer to go with */
	unsigned int ack_segments;   /* how many segments that came together it may be of */
	uint64_t give_up_us;         /* how long data may stay unacknowledged, or a closed window silent, before the connection ends */
};
extern struct recovery_limits recovery_limits;

/* What was sent again, by what found it lost. */
struct recovery_counts {
	uint64_t sent_segments; /* with data, SYN or FIN, all times that they went out */
	uint64_t retransmitted_segments;
	uint64_t by_rack, by_probe, by_timeout;
	uint64_t duplicate_segments; /* that came to us twice */
};
/* Of all connections since the program began. */
extern struct recovery_counts recovery_total;

/* Of a segment that was sent. */
struct recovery_mark {
	uint64_t first_sent_us, sent_us;
	uint8_t flags;
	struct tcp_seg *beyond; /* of one that has arrived, as all between the two have; NULL: the next one */
	struct delivery_mark delivery;
};

struct recovery_range {
	uint32_t left, right;
};

enum recovery_state { RECOVERY_OPEN, RECOVERY_FAST, RECOVERY_TIMEOUT };

/* Of a connection; zeros are its beginning. */
struct recovery {
	enum recovery_state state;
	uint32_t recovery_end; /* SND.NXT when the loss was found: the state ends there */
	uint32_t in_flight_bytes, lost_bytes;
	unsigned int sacked_segments;

	struct tcp_seg *last_sent; /* the end of pcb->unacked, while that is not empty */

	/* Of the segment that is handled. */
	struct recovery_range blocks[4];
	uint8_t block_count;

	/* Round trips. */
	uint64_t smoothed_rtt_us, rtt_variation_us, min_rtt_us, min_rtt_at_us;
	uint64_t lone_delay_us; /* what acknowledgements of single segments took beyond the least round trip: the longest of late */
	unsigned int lone_acks; /* how many there were, up to LONE_ACKS */
	unsigned int backoff;
	struct recovery_range doubtful; /* sent twice and acknowledged: of which time, a report of a duplicate tells */
	uint64_t doubtful_rtt_us;

	/* RACK: the segment sent last of those that have arrived, and what order is worth. */
	uint64_t rack_sent_us, rack_rtt_us;
	uint32_t rack_end, highest_arrived, reorder_round_end;
	bool reordered, reorder_round;
	unsigned int reorder_quarters, reorder_keep; /* window in quarters of the least round trip, for how many recoveries still */

	/* Timers, and what they count from. */
	bool reorder_waits;
	uint64_t give_up_us; /* of this connection; 0: as recovery_limits */
	uint64_t heard_us;   /* when an acknowledgement came last */
	uint64_t reorder_due_us, progress_us, last_sent_us, ack_due_us, persist_since_us, persist_due_us, probe_sent_us;
	uint64_t paced_due_us;     /* when what waits may go though nothing is acknowledged, 0: it waits for that */
	uint64_t challenges_us;    /* since when they are counted */
	unsigned int challenges;   /* ACKs for a segment without data whose numbers do not fit */
	unsigned int ack_segments; /* that our next acknowledgement waits for others to come with */
	bool probed, probe_pending, probe_resent, force, persists;
	uint32_t probe_end, probe_bytes;
	unsigned int duplicate_acks; /* of a peer without SACK */

	/* Congestion window. */
	uint32_t recovery_flight_bytes, rate_delivered_bytes, rate_sent_bytes;
	uint32_t undo_window_bytes, undo_threshold_bytes, undo_segments;
	bool undo_possible;
	uint64_t start_round_min_us; /* slow start: round trips of this window */
	uint32_t start_round_end;
	unsigned int start_round_samples;
	double cubic_max, cubic_origin, cubic_reno, cubic_k_s;
	uint64_t cubic_epoch_us;
	bool program_waits; /* for room in its buffer: it has more to send */
	struct delivery delivery;
	struct congestion_model_state model;

	/* Of what waits out of order: its last segment, while anything waits and this is known, and at most so many buffers. */
	struct tcp_seg *waiting_last;
	uint32_t waiting_pbufs;
	struct recovery_range duplicate; /* that our next acknowledgement tells (D-SACK); empty: none */
	struct recovery_counts counts;
};

/* The time, given by the program. */
uint64_t stack_now_us(void);

/** What is handled until it is set back has come together: acknowledgements of it wait for the end of it. */
extern bool recovery_together;
/** One of them does: it is due once they are not together any more. */
extern bool recovery_held_back;

/** Run the timers that are due. @param now_us what stack_now_us() says */
void recovery_advance_us(uint64_t now_us);
/** When a timer is due next, UINT64_MAX: none is. */
uint64_t recovery_next_us(void);
/** The retransmission timeout of a connection, with its back-off. */
uint64_t recovery_timeout_us(const struct recovery *recovery);

/* For lwIP. */
void recovery_on_sent(struct tcp_pcb *pcb, struct tcp_seg *seg);
void recovery_on_sack(struct tcp_pcb *pcb, uint32_t left, uint32_t right);
/** Before the queues change. @param same_window no data came and the peer's window is the same: maybe a duplicate acknowledgement */
void recovery_on_ack(struct tcp_pcb *pcb, uint32_t ack, int same_window);
void recovery_on_ack_delayed(struct tcp_pcb *pcb);
/** An acknowledgement waits already. @return whether it goes on waiting */
int recovery_ack_waits(struct tcp_pcb *pcb);
/** A segment without data came whose numbers do not fit. @return whether it is answered */
int recovery_may_challenge(struct tcp_pcb *pcb);
void recovery_on_duplicate(struct tcp_pcb *pcb, uint32_t left, uint32_t right);
/** A segment that was sent leaves the queue: another takes its place. */
void recovery_on_removed(struct tcp_pcb *pcb, struct tcp_seg *seg);
/** Before segments that were sent are cut to pcb->mss, which a router has told: those that are larger did not pass. That is no congestion. */
void recovery_on_mss_lowered(struct tcp_pcb *pcb);
/** Send the first segment again, a SYN above all. */
void recovery_resend_first(struct tcp_pcb *pcb);
/** Send again what was lost, as far as the window allows. */
void recovery_output(struct tcp_pcb *pcb);
/** How far from SND.UNA new data may reach. */
uint32_t recovery_window_bytes(const struct tcp_pcb *pcb);

#endif
