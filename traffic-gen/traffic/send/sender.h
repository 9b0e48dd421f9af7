/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer: one real-time thread that plays all streams of one producer number.
 *
 * The thread sleeps until the next slot is due (absolute deadlines, the last spin_ns of them busy), then writes one
 * bounded piece at a time: before each piece it looks for due slots again, so that a large message delays a small
 * one of the same producer by one piece at most. Low-latency streams go first, then messages not yet begun, then the
 * rest of those begun. Between pieces of a large message it yields to producers of the same priority on its CPU.
 */
#ifndef BW_SENDER_H
#define BW_SENDER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/tally.h"
#include "base/histogram.h"
#include "traffic/send/link.h"
#include "plan/plan.h"
#include "port/port.h"
#include "traffic/send/slots.h"
#include "time/stepwatch.h"
#include "traffic/send/txstamps.h"

enum {
	SENDER_STREAMS_MAX = 10,   /* message types of one producer */
};

struct sender_stream {
	struct slot_queue slots;
	struct link link;
	struct txstamps stamps;
	bool begun;           /* the header of the oldest slot is made */
	uint32_t position;    /* bytes of it that are written */
	uint64_t generation;  /* of the link (reconnects) when stamps were asked for */
	int64_t lateness_ns;  /* of it */
	uint8_t header[FRAME_HEADER_BYTES];
	struct tally scheduled, sent, late_slots; /* counted slots only */
	struct histogram *sent_minus_scheduled;
	struct histogram *transmit_stack; /* NULL: no stamps wanted */
};

struct sender {
	const struct plan *plan;
	const struct plan_producer *producer;
	const struct port_tai *tai;
	const uint8_t *fill;       /* PLAN_UDP_MAX_BYTES + FRAME_FILL_PERIOD bytes, shared */
	struct port_poller *poller;
	struct port_thread *thread;
	struct stepwatch watch;
	int64_t end_monotonic_ns;  /* give up what is unsent */
	int stream_count;
	struct sender_stream streams[SENDER_STREAMS_MAX];
	atomic_int established;    /* links that have come up at least once */
	atomic_bool finished;
	atomic_bool *stop;         /* shared */
};

/** Size of the shared fill. */
enum { SENDER_FILL_BYTES = PLAN_UDP_MAX_BYTES + FRAME_FILL_PERIOD };

/**
 * Prepare a producer.
 *
 * @param fill  made by frame_fill(), SENDER_FILL_BYTES
 * @param stop  ends the thread within 100 ms
 * @return 0 (the caller owns it: sender_destroy), or -errno
 */
int sender_create(const struct plan *plan, const struct plan_producer *producer, const struct port_tai *tai,
		  const uint8_t *fill, atomic_bool *stop, struct sender **sender_out);
void sender_destroy(struct sender *sender);

/** Body of its thread: connect, send all slots, wait for what is blocked until the grace time ends. */
void sender_run(void *sender);

/** Counted slots of a stream that were due and are not completely written. After the thread has ended. */
uint64_t sender_unsent(const struct sender_stream *stream);

#endif
