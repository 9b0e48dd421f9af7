/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/interval.h"

#include <math.h>
#include <string.h>

#define SECONDS_PER_NS 1e-9
#define ANCHOR_APART_NS INT64_C(30000000000) /* so far anchors are apart, */
#define ANCHOR_FIRST_NS INT64_C(1000000000)  /* and the first ones, from which the rate is known soon */

void interval_init(struct interval *interval, int64_t drift_limit_ppb, int64_t rate_limit_ppb)
{
	memset(interval, 0, sizeof(*interval));
	interval->drift_limit_ppb = drift_limit_ppb;
	interval->rate_limit_ppb = rate_limit_ppb;
	interval->rate_low_ppb = -(double)rate_limit_ppb;
	interval->rate_high_ppb = (double)rate_limit_ppb;
}

/* Where the offset can be at a time that is not before the last exchange: two ends less the origin. */
static struct interval_point interval_at(const struct interval *interval, int64_t local_ns)
{
	double age_s = (double)(local_ns - interval->now.at_local_ns) * SECONDS_PER_NS;
	double drift_ppb = (double)interval->drift_limit_ppb;

	return (struct interval_point){
		.at_local_ns = local_ns,
		.low_ns = interval->now.low_ns + age_s * (interval->rate_low_ppb - drift_ppb),
		.high_ns = interval->now.high_ns + age_s * (interval->rate_high_ppb + drift_ppb),
	};
}

double interval_growth_ppb(const struct interval *interval, double rate_ppb)
{
	return (double)interval->drift_limit_ppb +
	       fmax(fmax(interval->rate_high_ppb - rate_ppb, rate_ppb - interval->rate_low_ppb), 0.0);
}

double interval_growth_most_ppb(const struct interval *interval, double rate_ppb)
{
	return (double)interval->drift_limit_ppb + (double)interval->rate_limit_ppb + fabs(rate_ppb);
}

double interval_rate_over_s(const struct interval *interval)
{
	return interval->anchor_count ? (double)(interval->now.at_local_ns - interval->anchors[0].at_local_ns) * SECONDS_PER_NS : 0;
}

static void anchor_add(struct interval *interval)
{
	int last = interval->anchor_count - 1;
	int64_t apart_ns = interval->anchor_count < INTERVAL_ANCHORS / 2 ? ANCHOR_FIRST_NS : ANCHOR_APART_NS;

	if (last >= 0 && interval->now.at_local_ns - interval->anchors[last].at_local_ns < apart_ns)
		return;
	if (interval->anchor_count == INTERVAL_ANCHORS) {
		memmove(interval->anchors, interval->anchors + 1, (INTERVAL_ANCHORS - 1) * sizeof(interval->anchors[0]));
		interval->anchor_count--;
	}
	interval->anchors[interval->anchor_count++] = interval->now;
}

/* The mean rate since the oldest anchor. */
static void rate_bound(struct interval *interval)
{
	const struct interval_point *from = &interval->anchors[0], *now = &interval->now;
	double age_s = (double)(now->at_local_ns - from->at_local_ns) * SECONDS_PER_NS, limit_ppb = (double)interval->rate_limit_ppb;

	if (interval->anchor_count == 0 || age_s <= 0)
		return;
	interval->rate_low_ppb = fmax((now->low_ns - from->high_ns) / age_s, -limit_ppb);
	interval->rate_high_ppb = fmin((now->high_ns - from->low_ns) / age_s, limit_ppb);
}

bool interval_take(struct interval *interval, int64_t local_ns, int64_t low_ns, int64_t high_ns, double *off_ns)
{
	struct interval_point can;
	double low, high;

	if (!interval->begun) {
		interval->begun = true;
		interval->origin_ns = low_ns;
		interval->now = (struct interval_point){ local_ns, 0, (double)(high_ns - low_ns) };
		anchor_add(interval);
		return true;
	}
	if (local_ns < interval->now.at_local_ns)
		local_ns = interval->now.at_local_ns;
	can = interval_at(interval, local_ns);
	low = (double)(low_ns - interval->origin_ns);
	high = (double)(high_ns - interval->origin_ns);
	if (low > can.high_ns || high < can.low_ns) {
		if (off_ns)
			*off_ns = (low + high - can.low_ns - can.high_ns) / 2;
		return false;
	}
	interval->now = (struct interval_point){ local_ns, fmax(low, can.low_ns), fmin(high, can.high_ns) };
	rate_bound(interval);
	anchor_add(interval);
	return true;
}
