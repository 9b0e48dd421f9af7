/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/publish.h"

#include <math.h>
#include <stdlib.h>

#include "base/time_units.h"

#define SLEW_SHORTEST_S 1.0     /* small corrections need not be hurried */
#define MULT_UNIT 281474976710656.0 /* 2^48 */
#define USABLE_LONGEST_S (365.0 * 86400)
#define DAY_NS (INT64_C(86400) * NS_PER_S)

struct publish_settings publish_default_settings(void)
{
	return (struct publish_settings){ .step_ns = 10000000, .bound_max_ns = 100000000, .slew_ppm = 500 };
}

bool publish_gives_time(uint32_t state)
{
	return state == TIMEPAGE_SYNCHRONISED || state == TIMEPAGE_HOLDOVER || state == TIMEPAGE_ENDED;
}

bool publish_continues(const struct timepage_line *last)
{
	struct timepage_line line;

	if (!last || last->state == TIMEPAGE_NONE || last->mult == 0)
		return false;
	line = *last;
	line.state = TIMEPAGE_SYNCHRONISED;
	return timepage_line_check(&line) == 0;
}

/* After how long a bound has grown to its limit. */
static double usable_s(double bound_ns, double growth_ppb, double limit_ns)
{
	double left_ns = limit_ns - bound_ns, seconds;

	if (left_ns <= 0)
		return 0;
	seconds = growth_ppb > 0 ? left_ns / growth_ppb : USABLE_LONGEST_S;
	return seconds < USABLE_LONGEST_S ? seconds : USABLE_LONGEST_S;
}

/*
 * Until the leap second that was announced, at the end of the day in which a server was heard last, the line holds at most: then UTC may be a
 * second off, and only servers can tell. utc_ns: of the line's beginning.
 */
static void end_at_leap(const struct estimate_line *estimate, int64_t utc_ns, struct timepage_line *next)
{
	int64_t heard_utc_ns = estimate->heard_local_ns + estimate_offset_at(estimate, estimate->heard_local_ns);
	int64_t leap_utc_ns = (heard_utc_ns / DAY_NS + 1) * DAY_NS - (next->leap == 2 ? NS_PER_S : 0);
	double left_ns = (double)(leap_utc_ns - utc_ns), left_ticks;

	if (next->leap != 1 && next->leap != 2)
		return;
	left_ns -= (double)next->high_ns + left_ns / NS_PER_S * (double)next->growth_ppb; /* UTC may be ahead by that */
	left_ticks = left_ns * MULT_UNIT / (double)next->settled_mult;
	if (left_ticks <= 0) {
		next->state = TIMEPAGE_UNSYNCHRONISED;
		next->reason = TIMEPAGE_REASON_LEAP;
		next->usable_until_ticks = next->base_ticks;
	} else if (left_ticks < (double)(next->usable_until_ticks - next->base_ticks)) {
		next->usable_until_ticks = next->base_ticks + (uint64_t)left_ticks;
	}
}

/* Go on from the last line: its time, and a rate that leads to the new one. */
static void slew(const struct publish_settings *settings, uint64_t hz, int64_t correction_ns, struct timepage_line *next)
{
	double fastest = (double)settings->slew_ppm * 1e-6;
	double duration_s = fabs((double)correction_ns) / NS_PER_S / fastest;
	double slope;
	uint64_t duration_ticks;

	if (duration_s < SLEW_SHORTEST_S)
		duration_s = SLEW_SHORTEST_S;
	duration_ticks = (uint64_t)ceil(duration_s * (double)hz);
	/* By the ticks that it takes: what is left at its end is rounding. */
	slope = (double)correction_ns * MULT_UNIT / (double)duration_ticks;
	next->mult = (uint64_t)llround((double)next->settled_mult + slope);
	next->settled_ticks = next->base_ticks + duration_ticks;
	next->base_utc_ns -= correction_ns;
}

/* What is published is behind the estimate by the correction at first, and by less and less while it is slewed. */
static void widen(struct timepage_line *next, int64_t correction_ns)
{
	double deviation_ns = sqrt(next->scatter.offset_ns2) + fabs((double)correction_ns) / SCATTER_COVERAGE;

	next->scatter.offset_ns2 = deviation_ns * deviation_ns;
	if (correction_ns > 0)
		next->high_ns += correction_ns;
	else
		next->low_ns -= correction_ns;
}

int64_t publish_line(const struct publish_settings *settings, const struct local_time *local, const struct estimate_line *estimate,
		     uint64_t now_ticks, const struct timepage_line *last, const struct publish_words *words,
		     struct timepage_line *next)
{
	int64_t now_local_ns = local_from_ticks(local, now_ticks), correction_ns = 0;
	int64_t utc_ns = now_local_ns + estimate_offset_at(estimate, now_local_ns);
	double age_s = fmax((double)(now_local_ns - estimate->at_local_ns) / NS_PER_S, 0.0);
	double wider_ns = estimate_growth_at(estimate, now_local_ns) + 1, bound_ns;
	bool continues = publish_continues(last);

	*next = (struct timepage_line){
		.base_ticks = now_ticks,
		.base_utc_ns = utc_ns,
		.settled_ticks = now_ticks,
		.settled_mult = (uint64_t)llround(NS_PER_S / (double)local->hz * (1 + estimate->rate_ppb * 1e-9) * MULT_UNIT),
		.low_ns = estimate->low_ns + (int64_t)ceil(wider_ns),
		.high_ns = estimate->high_ns + (int64_t)ceil(wider_ns),
		.growth_ppb = (uint64_t)estimate->growth_ppb,
		.scatter = scatter_later(&estimate->scatter, age_s),
		.heard_ticks = words->heard_ticks,
		.disruptions = last ? last->disruptions : 0,
		.disrupted_ticks = last ? last->disrupted_ticks : 0,
		.epoch = last ? last->epoch : 0,
		.step_ns = last ? last->step_ns : 0,
		.state = words->state,
		.reason = words->reason,
		.leap = words->leap,
		.stratum = words->stratum,
		.tai_utc_s = words->tai_utc_s,
	};
	next->mult = next->settled_mult;
	if (continues) {
		correction_ns = utc_ns - timepage_utc_ns(last, now_ticks);
		if (llabs(correction_ns) > settings->step_ns) {
			next->epoch++;
			next->disruptions++;
			next->disrupted_ticks = now_ticks;
			next->step_ns = correction_ns;
		} else if (correction_ns) {
			slew(settings, local->hz, correction_ns, next);
			widen(next, correction_ns);
		}
	}
	bound_ns = (double)(next->low_ns > next->high_ns ? next->low_ns : next->high_ns);
	next->usable_until_ticks =
		now_ticks + (uint64_t)(usable_s(bound_ns, (double)next->growth_ppb, (double)settings->bound_max_ns) * (double)local->hz);
	end_at_leap(estimate, utc_ns, next);
	if (bound_ns >= (double)settings->bound_max_ns) {
		next->state = TIMEPAGE_UNSYNCHRONISED;
		next->reason = TIMEPAGE_REASON_BOUND;
	}
	return correction_ns;
}

/* Readers, and the next service, take the line of one that has ended for a time while it is usable. */
static void end_without_time(struct timepage_line *next)
{
	next->usable_until_ticks = next->base_ticks;
	if (!publish_continues(next))
		next->mult = 0; /* figures that cannot be, or none at all */
}

void publish_withdraw(const struct timepage_line *last, const struct publish_words *words, struct timepage_line *next)
{
	*next = *last;
	next->state = words->state;
	next->reason = words->reason;
	next->leap = words->leap;
	next->stratum = words->stratum;
	next->tai_utc_s = words->tai_utc_s;
	next->disruptions += words->disrupted;
	/* The counter may stop a second time before servers have told anew. */
	if (words->disrupted || words->reason == TIMEPAGE_REASON_COUNTER_JUMPED)
		next->disrupted_ticks = words->now_ticks;
	if (words->state == TIMEPAGE_ENDED && !publish_gives_time(last->state))
		end_without_time(next);
}
