/* SPDX-License-Identifier: Apache-2.0 */
/* What a recorded reading costs, against the bare readings in it: `bw-clock latency --cost`, of make bench-clock. */
#ifndef BW_CLOCK_LATENCY_COST_H
#define BW_CLOCK_LATENCY_COST_H

#include <stdint.h>

struct source;

/**
 * Let blocks of bare readings (counter, clock, counter) and of recorded ones (the same, the clock in ns, the difference in
 * a histogram) take turns, and print the result.
 *
 * @param source  realtime, realtime-coarse, tai or monotonic-raw
 * @param reads   of each kind, in blocks
 * @return exit code
 */
int latency_cost(struct source *source, uint64_t hz, int64_t reads);

#endif
