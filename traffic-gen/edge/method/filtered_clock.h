/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bracketed readings of a clock by the processor's counter, the slow ones discarded (Listing 2 of the paper on intra-process
 * clock synchronization): counter, clock, counter, again until the bracket is under a threshold.
 */
#ifndef BW_EDGE_FILTERED_CLOCK_H
#define BW_EDGE_FILTERED_CLOCK_H

#include <stdint.h>

#include "base/histogram.h"
#include "clock/source.h"
#include "port/port.h"
#include "port/port_clock.h"

struct filtered_clock {
	struct port_phc *phc;        /* NULL: source is read */
	struct source *source;
	uint64_t hz;                 /* of the counter */
	struct histogram *bracket;   /* ns, of all readings after the warm-up */
	uint64_t threshold;          /* ticks */
	uint64_t reads, discarded;
	uint64_t unfiltered;         /* times when no bracket of FILTERED_READS_MAX was short enough: the shortest one was taken */
};

enum { FILTERED_READS_MAX = 32 };

/**
 * Read the clock a thousand times and choose the threshold.
 *
 * @param percent  of these readings pass the filter, 1..100
 * @return 0 or -errno
 */
int filtered_clock_warm_up(struct filtered_clock *clock, int64_t percent);
/**
 * Read the clock. Real-time safe, FILTERED_READS_MAX readings at most.
 *
 * @param ticks     middle of the bracket
 * @param clock_ns  what the clock showed: ns of the PHC, or of TAI
 * @return 0 or -errno
 */
int filtered_clock_read(struct filtered_clock *clock, uint64_t *ticks, int64_t *clock_ns);

#endif
