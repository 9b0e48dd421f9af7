/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/method/correlate.h"

#include <string.h>

#include "base/time_units.h"

#define PRODUCT_MAX (INT64_C(1) << 62)
#define RATE_SPAN_MIN_NS INT64_C(20000000) /* readings of a shorter time say less of the rate than its nominal value */

enum { RATE_POINTS_MIN = 6, SLEW_MAX_INVERSE = 1000 };

int64_t correlation_scale(int64_t value, int64_t numerator, int64_t denominator)
{
	int64_t whole = value / denominator, rest = value % denominator;
	int64_t product = rest * numerator;

	return whole * numerator + (product + (product < 0 ? -denominator : denominator) / 2) / denominator;
}

/* Make a rate's two numbers small enough for correlation_scale. */
static void set_rate(struct correlation *correlation, int64_t ticks, int64_t ns)
{
	while (ticks > PRODUCT_MAX / ns) {
		ticks = (ticks + 1) / 2;
		ns = (ns + 1) / 2;
	}
	correlation->rate_ticks = ticks;
	correlation->rate_ns = ns;
}

void correlation_init(struct correlation *correlation, uint64_t hz, int64_t age_max_ns, int64_t step_ns)
{
	memset(correlation, 0, sizeof(*correlation));
	correlation->hz = hz;
	correlation->age_max_ns = age_max_ns;
	correlation->step_ns = step_ns;
	set_rate(correlation, (int64_t)hz, NS_PER_S);
}

/* The reading that is so many before the newest one. */
static const struct correlation_point *point_at(const struct correlation *correlation, size_t before)
{
	return &correlation->points[(correlation->newest + CORRELATION_POINTS - before) % CORRELATION_POINTS];
}

/*
 * The rate: the difference between the sums of the newest and the oldest third of the readings. For evenly spread readings its
 * deviation is a sixteenth above that of a least-squares fit, and all of it is exact.
 */
static void renew_rate(struct correlation *correlation)
{
	size_t third = correlation->count / 3;
	const struct correlation_point *newest = point_at(correlation, 0);
	int64_t ticks = 0, ns = 0;

	if (correlation->count < RATE_POINTS_MIN ||
	    newest->clock_ns - point_at(correlation, correlation->count - 1)->clock_ns < RATE_SPAN_MIN_NS) {
		set_rate(correlation, (int64_t)correlation->hz, NS_PER_S);
		return;
	}
	for (size_t i = 0; i < third; i++) {
		const struct correlation_point *late = point_at(correlation, i);
		const struct correlation_point *early = point_at(correlation, correlation->count - 1 - i);

		ticks += (int64_t)(late->ticks - early->ticks);
		ns += late->clock_ns - early->clock_ns;
	}
	if (ticks > 0 && ns > 0)
		set_rate(correlation, ticks, ns);
}

static bool on_the_line(const struct correlation *correlation, uint64_t ticks, int64_t clock_ns)
{
	const struct correlation_point *newest = point_at(correlation, 0);
	int64_t passed_ns = clock_ns - newest->clock_ns;
	int64_t left_ns;

	if ((int64_t)(ticks - newest->ticks) <= 0 || passed_ns <= 0)
		return false;
	if (passed_ns > 100 * NS_PER_S)
		return false; /* too long ago to say */
	left_ns = passed_ns - correlation_ns_of(correlation, (int64_t)(ticks - newest->ticks));
	return (left_ns < 0 ? -left_ns : left_ns) <= correlation->step_ns + passed_ns / SLEW_MAX_INVERSE;
}

bool correlation_add(struct correlation *correlation, uint64_t ticks, int64_t clock_ns)
{
	bool follows = correlation->count == 0 || on_the_line(correlation, ticks, clock_ns);

	if (!follows) {
		correlation->count = 0;
		correlation->restarts++;
	}
	correlation->newest = (correlation->newest + 1) % CORRELATION_POINTS;
	correlation->points[correlation->newest] = (struct correlation_point){ ticks, clock_ns };
	if (correlation->count < CORRELATION_POINTS)
		correlation->count++;
	while (correlation->count > 1 &&
	       clock_ns - point_at(correlation, correlation->count - 1)->clock_ns > correlation->age_max_ns)
		correlation->count--;
	renew_rate(correlation);
	return follows;
}

static int64_t correlation_ticks_of(const struct correlation *correlation, int64_t ns)
{
	return correlation_scale(ns, correlation->rate_ticks, correlation->rate_ns);
}

int64_t correlation_ns_of(const struct correlation *correlation, int64_t ticks)
{
	return correlation_scale(ticks, correlation->rate_ns, correlation->rate_ticks);
}

uint64_t correlation_ticks_at(const struct correlation *correlation, int64_t clock_ns)
{
	const struct correlation_point *newest = point_at(correlation, 0);

	return newest->ticks + (uint64_t)correlation_ticks_of(correlation, clock_ns - newest->clock_ns);
}

int64_t correlation_ns_at(const struct correlation *correlation, uint64_t ticks)
{
	const struct correlation_point *newest = point_at(correlation, 0);

	return newest->clock_ns + correlation_ns_of(correlation, (int64_t)(ticks - newest->ticks));
}
