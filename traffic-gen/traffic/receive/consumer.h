/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer as a whole: what recv.c runs and consumer_report.c prints. */
#ifndef BW_CONSUMER_H
#define BW_CONSUMER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "traffic/receive/acceptor.h"
#include "traffic/receive/clocks.h"
#include "base/json.h"
#include "plan/plan.h"
#include "port/port.h"
#include "traffic/receive/receiver.h"
#include "traffic/receive/recorder.h"

#define CONSUMER_TOOL "bw-traffic recv"

enum {
	CONSUMER_BULK,        /* lanes: the receiving thread of ordinary streams … */
	CONSUMER_LOW_LATENCY, /* … and that of low-latency streams, one priority higher */
	CONSUMER_LANES,
	CONSUMER_REASONS_MAX = 16,
	CONSUMER_REASON_BYTES = 160,
};

struct consumer {
	struct plan *plan;
	struct port_tai tai;
	struct own_clock own_clock;
	struct clocks clocks;
	struct recorder recorder;
	struct receiver receivers[CONSUMER_LANES];
	struct acceptor acceptor;
	struct incoming *incoming; /* one a stream of the plan */
	struct stepwatch watch;    /* of the main thread */
	struct port_scheduling scheduling;
	atomic_bool stop;
	struct json json;
	int64_t start_tai_ns, end_tai_ns; /* counted time, local clock; for the report */
	uint64_t rss_start_bytes;
	int reason_count;
	char reasons[CONSUMER_REASONS_MAX][CONSUMER_REASON_BYTES]; /* why the result is invalid */
};

/** Add a reason why the result is invalid; surplus ones are dropped. */
void consumer_invalidate(struct consumer *consumer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Counted time in the local clock by the current lines: the earliest start and the latest end of all producers. */
void consumer_interval(const struct consumer *consumer, int64_t *start_tai_ns, int64_t *end_tai_ns);

/** @return 0, or -EIO when stdout failed */
int consumer_print_ready(struct consumer *consumer);
/** @param phase  "warmup", "counting" or "grace" */
int consumer_print_progress(struct consumer *consumer, int64_t elapsed_ns, const char *phase);
/** Print the result. All threads have ended. */
int consumer_print_result(struct consumer *consumer, bool complete);

#endif
