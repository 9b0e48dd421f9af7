/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of one stream at the consumer: which messages came, and how late, in the producer's clock. Written by
 * the one thread that receives the stream; fixed memory.
 */
#ifndef BW_ACCOUNT_H
#define BW_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "time/clockline.h"
#include "base/tally.h"
#include "traffic/frame.h"
#include "base/histogram.h"
#include "plan/plan.h"
#include "traffic/receive/recorder.h"
#include "traffic/receive/sequence.h"

/* What went wrong outside of all streams. One a thread. */
struct hostile {
	struct tally foreign_connections; /* connections and datagrams from an address that is not the producer's */
	struct tally bad_hello;           /* malformed, for another stream or size, or never completed */
	struct tally bad_check;           /* headers that are not of this run and stream */
	struct tally truncated;           /* short datagrams; connections that ended within a message */
	struct tally oversized;           /* long datagrams */
	struct tally stale;               /* hello of another run; sequence outside the plan, or impossible now */
};

/* When a message came, TAI by the consumer's own clock (own_clock.h). */
struct arrival {
	int64_t now_tai_ns;   /* right after the read that had its last byte */
	int64_t stamp_tai_ns; /* kernel receive stamp of its last byte; 0: none */
};

struct account {
	const struct stream *stream;
	const struct plan_producer *producer;
	const struct clockline *clock; /* NULL: take the clocks as they are */
	struct recorder *recorder;
	int lane;                      /* of the receiving thread */
	uint32_t warmup_end, end;      /* counted slots are [warmup_end, end) */
	struct sequence_window window;
	struct tally connections;    /* accepted hellos; written by the acceptor */
	/* of counted slots: */
	struct tally received, duplicates, reordered, invalid_samples, misses, misses_sent;
	struct tally horizon;        /* highest sequence + 1 - warmup_end */
	struct tally max_ns;         /* largest received - scheduled, for progress; >= 0 */
	struct histogram *received_minus_scheduled, *received_minus_sent, *sent_minus_scheduled;
	struct histogram *receive_stack; /* NULL: no stamps wanted */
};

/** Prepare an account. @return 0 (account_close frees it), or -ENOMEM */
int account_open(struct account *account, const struct plan *plan, const struct stream *stream,
		 const struct clockline *clock, struct recorder *recorder, int lane);
void account_close(struct account *account);

/** Enter one complete message with a valid check value. Real-time safe. */
void account_take(struct account *account, const struct frame_header *header, const struct arrival *arrival,
		  struct hostile *hostile);

/**
 * What a message of a stream has to exceed to be logged: three quarters of its budget. A verdict has a guard band of U
 * below the limit, and what lies within that has to be explained message by message as what lies above.
 */
int64_t account_late_above_ns(const struct stream *stream);

/** Counted slots of the plan. */
uint64_t account_expected(const struct account *account);
/** Counted slots that higher ones have overtaken; while the run goes on they may still come. */
uint64_t account_missing_so_far(const struct account *account);

#endif
