/* SPDX-License-Identifier: Apache-2.0 */
/** The set of lines through intervals, against the corners of its polygon found one by one. */
#include "time/twoway_fit.h"

#include <math.h>
#include <stdbool.h>

#include "check.h"
#include "random.h"

#define INTERVALS_MAX 9
#define LIMIT_PPB 1000.0
#define SLACK_NS 1e-6

/* A half-plane: p * offset + q * rate <= r. */
struct half_plane {
	double p, q, r;
};

static size_t half_planes(const struct fit_interval *intervals, size_t count, struct half_plane *planes)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		planes[n++] = (struct half_plane){ 1, intervals[i].x_s, intervals[i].high_ns };
		planes[n++] = (struct half_plane){ -1, -intervals[i].x_s, -intervals[i].low_ns };
	}
	planes[n++] = (struct half_plane){ 0, 1, LIMIT_PPB };
	planes[n++] = (struct half_plane){ 0, -1, LIMIT_PPB };
	return n;
}

static bool holds(const struct half_plane *planes, size_t n, double offset_ns, double rate_ppb)
{
	for (size_t i = 0; i < n; i++)
		if (planes[i].p * offset_ns + planes[i].q * rate_ppb > planes[i].r + SLACK_NS)
			return false;
	return true;
}

/* The extremes of a polygon lie at its corners: try where each two border lines meet. */
static bool corners(const struct fit_interval *intervals, size_t count, struct fit_set *set)
{
	struct half_plane planes[2 * INTERVALS_MAX + 2];
	size_t n = half_planes(intervals, count, planes);
	bool found = false;

	*set = (struct fit_set){ INFINITY, -INFINITY, INFINITY, -INFINITY };
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < i; j++) {
			double det = planes[i].p * planes[j].q - planes[j].p * planes[i].q, offset_ns, rate_ppb;

			if (fabs(det) < 1e-9)
				continue;
			offset_ns = (planes[i].r * planes[j].q - planes[j].r * planes[i].q) / det;
			rate_ppb = (planes[i].p * planes[j].r - planes[j].p * planes[i].r) / det;
			if (!holds(planes, n, offset_ns, rate_ppb))
				continue;
			found = true;
			set->rate_low_ppb = fmin(set->rate_low_ppb, rate_ppb);
			set->rate_high_ppb = fmax(set->rate_high_ppb, rate_ppb);
			set->offset_low_ns = fmin(set->offset_low_ns, offset_ns);
			set->offset_high_ns = fmax(set->offset_high_ns, offset_ns);
		}
	}
	return found;
}

/* Integers: no set is nearly empty, and times coincide now and then. */
static size_t random_intervals(struct random *random, struct fit_interval *intervals)
{
	size_t count = (size_t)random_between(random, 1, INTERVALS_MAX);
	int64_t rate_ppb = random_between(random, -800, 800), width_ns = random_between(random, 20, 2000);

	for (size_t i = 0; i < count; i++) {
		int64_t x_s = random_between(random, -10, 10), middle_ns = rate_ppb * x_s + random_between(random, -300, 300);

		intervals[i] = (struct fit_interval){ (double)x_s, (double)(middle_ns - random_between(random, 1, width_ns)),
						      (double)(middle_ns + random_between(random, 1, width_ns)) };
	}
	return count;
}

static void check_range(uint64_t seed, double low, double high, double expected_low, double expected_high)
{
	CHECK_THAT(fabs(low - expected_low) < 1e-3 && fabs(high - expected_high) < 1e-3,
		   "seed %" PRIu64 ": %.4f..%.4f, not %.4f..%.4f", seed, low, high, expected_low, expected_high);
}

int main(void)
{
	struct fit_interval intervals[INTERVALS_MAX];
	struct fit_set set, expected;
	unsigned int empty = 0;
	const uint64_t seeds = 20000;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct random random = { seed };
		size_t count = random_intervals(&random, intervals);
		bool found = fit_lines(intervals, count, LIMIT_PPB, &set);

		CHECK_THAT(found == corners(intervals, count, &expected), "seed %" PRIu64 ": found %d", seed, found);
		empty += !found;
		if (!found)
			continue;
		check_range(seed, set.rate_low_ppb, set.rate_high_ppb, expected.rate_low_ppb, expected.rate_high_ppb);
		check_range(seed, set.offset_low_ns, set.offset_high_ns, expected.offset_low_ns, expected.offset_high_ns);
	}
	CHECK_THAT(empty > seeds / 20 && empty < seeds * 19 / 20, "%u of the sets are empty", empty);
	return check_result();
}
