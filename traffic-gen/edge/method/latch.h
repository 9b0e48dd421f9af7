/* SPDX-License-Identifier: Apache-2.0 */
/* Software's idea of the time of its edges against their captures: what was asked for and found. Its loop is latch_loop.c. */
#ifndef BW_EDGE_LATCH_H
#define BW_EDGE_LATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "edge/method/correlate.h"
#include "base/blocks.h"
#include "base/tally.h"
#include "edge/method/filtered_clock.h"
#include "base/histogram.h"
#include "edge/pins/pin.h"
#include "port/port.h"

enum { LATCH_BATCH = 64, LATCH_PEAKS_MAX = 8 };

struct latch_peak {
	uint64_t count;
	int64_t peak_to_peak_ns;
};

struct latch {
	struct edge_pin output, capture;
	bool by_counter;
	int64_t count, filter_percent;
	struct port_tai tai;
	struct filtered_clock clock;
	struct correlation correlation;
	struct histogram *delay;
	struct blocks blocks; /* of delays, in the order of their edges */
	int64_t now_clock_ns[LATCH_BATCH]; /* virtual now of the batch's edges: of the PHC if by_counter, else of TAI */
	struct latch_peak peaks[LATCH_PEAKS_MAX]; /* at 100, 1000, 10000 ... */
	size_t peak_count;
	uint64_t batches_lost;
	int64_t window_max_ns;        /* widest pair of readings around an edge */
	struct tally pairs;
	atomic_bool finished;
	int error;
	const char *failed;
	bool complete;
};

/** Make and capture all edges; the argument is a struct latch. For port_thread_start(). */
void latch_thread(void *argument);

#endif
