/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which count of the processor's counter belongs to which time of a clock: the newest bracketed reading is the point, the
 * readings of the last moments give the rate. Exact integers; the rate is a ratio of two differences. Pure.
 * Callers pass the times of one clock as clock_ns: a PHC, or the system's TAI.
 */
#ifndef BW_EDGE_CORRELATE_H
#define BW_EDGE_CORRELATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CORRELATION_POINTS = 126 }; /* divisible by three: the first and the last third give the rate */

struct correlation_point {
	uint64_t ticks;
	int64_t clock_ns;
};

struct correlation {
	struct correlation_point points[CORRELATION_POINTS]; /* a ring */
	size_t newest, count;
	int64_t age_max_ns;  /* readings older than this do not count */
	int64_t step_ns;     /* a reading so far from what was expected begins anew */
	uint64_t hz;
	int64_t rate_ticks, rate_ns; /* rate_ticks of the counter in rate_ns of the clock */
	uint64_t restarts;
};

/** value * numerator / denominator, rounded to nearest; denominator > 0 and |numerator| * denominator < 2^62. */
int64_t correlation_scale(int64_t value, int64_t numerator, int64_t denominator);

/**
 * Begin without a point.
 *
 * @param hz          of the counter, 1 MHz to 20 GHz: the rate as long as there are too few readings
 * @param age_max_ns  1 ms to 10 s
 * @param step_ns     apart from this, a clock may be slewed by a thousandth
 */
void correlation_init(struct correlation *correlation, uint64_t hz, int64_t age_max_ns, int64_t step_ns);
/** Take a reading. @return false when it left the line, and the correlation begins anew with it */
bool correlation_add(struct correlation *correlation, uint64_t ticks, int64_t clock_ns);
/** Count at a time of the clock; there is a point, and the time is not more than 100 s away. */
uint64_t correlation_ticks_at(const struct correlation *correlation, int64_t clock_ns);
/** Time of the clock at a count. */
int64_t correlation_ns_at(const struct correlation *correlation, uint64_t ticks);
/** Ticks as nanoseconds of the clock. */
int64_t correlation_ns_of(const struct correlation *correlation, int64_t ticks);

#endif
