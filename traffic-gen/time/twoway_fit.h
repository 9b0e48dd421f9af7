/* SPDX-License-Identifier: Apache-2.0 */
/**
 * All straight lines offset = a + rate * x that pass through a set of intervals: a linear programme in two unknowns,
 * solved exactly (elimination of one unknown for the range of rates, bisection on a concave function for that of a).
 */
#ifndef BW_TWOWAY_FIT_H
#define BW_TWOWAY_FIT_H

#include <stdbool.h>
#include <stddef.h>

/** At x_s the line must lie in [low_ns, high_ns]. */
struct fit_interval {
	double x_s;
	double low_ns;
	double high_ns;
};

/** The set of lines: ranges of their rates (1 ppb = 1 ns/s) and of their offsets at x = 0. */
struct fit_set {
	double rate_low_ppb;
	double rate_high_ppb;
	double offset_low_ns;
	double offset_high_ns;
};

/** Find the set for rates in [-rate_limit_ppb, rate_limit_ppb]. Return false when it is empty. O(count^2). */
bool fit_lines(const struct fit_interval *intervals, size_t count, double rate_limit_ppb, struct fit_set *set);

#endif
