/* SPDX-License-Identifier: Apache-2.0 */
#include "time/twoway_fit.h"

#include <float.h>

/* Halvings of the range of rates: from 1e6 ppb to far under 1e-9 ppb. */
#define BISECTIONS 60

/*
 * Two intervals i and j limit the rate without a: low_i <= a + rate * x_i and a + rate * x_j <= high_j give
 * rate * (x_i - x_j) >= low_i - high_j. By Fourier and Motzkin these limits, over all pairs, are all that there is.
 */
static bool limit_rates(const struct fit_interval *intervals, size_t count, struct fit_set *set)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < count; j++) {
			double dx_s = intervals[i].x_s - intervals[j].x_s;
			double gap_ns = intervals[i].low_ns - intervals[j].high_ns;

			if (dx_s == 0) {
				if (gap_ns > 0)
					return false;
			} else if (dx_s > 0) {
				if (gap_ns > set->rate_low_ppb * dx_s)
					set->rate_low_ppb = gap_ns / dx_s;
			} else {
				if (gap_ns > set->rate_high_ppb * dx_s)
					set->rate_high_ppb = gap_ns / dx_s;
			}
		}
	}
	return set->rate_low_ppb <= set->rate_high_ppb;
}

/* Highest a under all upper ends (sign 1), or the lowest over all lower ends (sign -1), at one rate; and its slope there. */
static double offset_limit(const struct fit_interval *intervals, size_t count, int sign, double rate_ppb, double *slope_s)
{
	double limit_ns = DBL_MAX;

	for (size_t i = 0; i < count; i++) {
		double bound_ns = sign > 0 ? intervals[i].high_ns : intervals[i].low_ns;
		double a_ns = sign * (bound_ns - rate_ppb * intervals[i].x_s);

		if (a_ns < limit_ns) {
			limit_ns = a_ns;
			*slope_s = -sign * intervals[i].x_s;
		}
	}
	return sign * limit_ns;
}

/* sign * offset_limit() is concave in the rate: bisect on its slope. */
static double extreme_offset(const struct fit_interval *intervals, size_t count, int sign, const struct fit_set *set)
{
	double low_ppb = set->rate_low_ppb, high_ppb = set->rate_high_ppb, slope_s = 0, best_ns, at_high_ns;

	for (int i = 0; i < BISECTIONS; i++) {
		double middle_ppb = (low_ppb + high_ppb) / 2;

		offset_limit(intervals, count, sign, middle_ppb, &slope_s);
		if (slope_s > 0)
			low_ppb = middle_ppb;
		else
			high_ppb = middle_ppb;
	}
	/* The maximum lies between the two; a concave function is no higher there than rounding makes of the better end. */
	best_ns = offset_limit(intervals, count, sign, low_ppb, &slope_s);
	at_high_ns = offset_limit(intervals, count, sign, high_ppb, &slope_s);
	return sign * at_high_ns > sign * best_ns ? at_high_ns : best_ns;
}

bool fit_lines(const struct fit_interval *intervals, size_t count, double rate_limit_ppb, struct fit_set *set)
{
	set->rate_low_ppb = -rate_limit_ppb;
	set->rate_high_ppb = rate_limit_ppb;
	if (!limit_rates(intervals, count, set))
		return false;
	set->offset_high_ns = extreme_offset(intervals, count, 1, set);
	set->offset_low_ns = extreme_offset(intervals, count, -1, set);
	return true;
}
