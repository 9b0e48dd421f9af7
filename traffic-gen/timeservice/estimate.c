/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "time/twoway.h"
#include "timeservice/likely.h"

#define NS_PER_S INT64_C(1000000000)
#define SECONDS_PER_NS 1e-9
#define NOISE_FLOOR_NS 50.0  /* of a kernel's stamp: its clock is read in steps */
#define SLACK_NS 20          /* of the hard bound: stamps are read in steps, and a walk is no parabola from its first second */
#define WALK_MIN_PPB 0.3

enum { PICKS_MAX = 64 };     /* batches that carry the likely line, and over which the fastest ways are looked for */

/* Of a batch, the exchanges that say most, and what its fastest ways say together at one moment. */
struct pick {
	int there, back, shortest;
	int64_t at_local_ns, offset_ns, delay_ns;
	double stamp_ns; /* standard deviation of the stamps */
};

struct estimate {
	struct estimate_settings settings;
	struct twoway *twoway;
	struct likely likely;
	struct estimate_line line;
	struct exchange_sample batch[ESTIMATE_BATCH_MAX];
	int count;
	struct pick picks[PICKS_MAX]; /* of the last batches: a ring */
	uint64_t batches;
};

struct estimate_settings estimate_default_settings(void)
{
	return (struct estimate_settings){
		.window_ns = INT64_C(3) * 3600 * NS_PER_S,
		.wander_ppb_per_s = 5,
		.rate_limit_ppb = 500000,
	};
}

static struct twoway *hard_create(const struct estimate_settings *settings)
{
	struct twoway_config config = {
		.window_ns = settings->window_ns,
		.wander_ppb_per_s = settings->wander_ppb_per_s,
		.rate_limit_ppb = settings->rate_limit_ppb,
		.min_way_ns = settings->min_way_ns,
		.slack_ns = SLACK_NS,
	};

	return twoway_create(&config);
}

struct estimate *estimate_create(const struct estimate_settings *settings)
{
	struct estimate *estimate = calloc(1, sizeof(*estimate));
	double walk_ppb = (double)settings->wander_ppb_per_s;

	if (!estimate)
		return NULL;
	estimate->settings = *settings;
	estimate->twoway = hard_create(settings);
	if (!estimate->twoway) {
		free(estimate);
		return NULL;
	}
	likely_init(&estimate->likely, walk_ppb > WALK_MIN_PPB ? walk_ppb : WALK_MIN_PPB);
	return estimate;
}

void estimate_destroy(struct estimate *estimate)
{
	if (!estimate)
		return;
	twoway_destroy(estimate->twoway);
	free(estimate);
}

void estimate_restart(struct estimate *estimate)
{
	twoway_restart(estimate->twoway);
	likely_init(&estimate->likely, estimate->likely.walk_ppb_per_sqrt_s);
	estimate->batches = 0;
	estimate->count = 0;
	estimate->line.valid = false;
}

/* Outward: whatever the stamps are wrong by, the interval holds. */
static struct twoway_exchange widened(const struct exchange_sample *sample)
{
	int64_t wider_ns = sample->error_ns + sample->precision_ns;

	return (struct twoway_exchange){
		.t1_local_ns = sample->t1_local_ns - wider_ns,
		.t2_peer_ns = sample->t2_utc_ns,
		.t3_peer_ns = sample->t3_utc_ns,
		.t4_local_ns = sample->t4_local_ns + wider_ns,
	};
}

void estimate_interval(const struct exchange_sample *sample, int64_t min_way_ns, int64_t *local_ns, int64_t *low_ns,
		       int64_t *high_ns)
{
	struct twoway_exchange exchange = widened(sample);

	*local_ns = exchange.t1_local_ns + (exchange.t4_local_ns - exchange.t1_local_ns) / 2;
	*low_ns = exchange.t3_peer_ns - exchange.t4_local_ns + min_way_ns - SLACK_NS;
	*high_ns = exchange.t2_peer_ns - exchange.t1_local_ns - min_way_ns + SLACK_NS;
}

int estimate_add(struct estimate *estimate, const struct exchange_sample *sample)
{
	struct twoway_exchange exchange = widened(sample);

	if (!twoway_exchange_valid(&exchange) ||
	    twoway_rtt_ns(&exchange) + INT64_C(2) * SLACK_NS < 2 * estimate->settings.min_way_ns)
		return -ERANGE;
	if (estimate->count < ESTIMATE_BATCH_MAX)
		estimate->batch[estimate->count++] = *sample;
	return 0;
}

static struct pick pick_of(const struct estimate *estimate)
{
	const struct exchange_sample *batch = estimate->batch;
	int64_t middle_local_ns = batch[estimate->count / 2].t1_local_ns, shortest_ns = INT64_MAX;
	double rate = estimate->likely.begun ? estimate->likely.rate_ppb * SECONDS_PER_NS : 0.0, there_ns = 0, back_ns = 0;
	struct pick pick = { .at_local_ns = middle_local_ns };

	for (int i = 0; i < estimate->count; i++) {
		/* Ways as they would have been in the middle of the batch, without what the clocks gained meanwhile. */
		double way_there_ns = (double)(batch[i].t2_utc_ns - batch[i].t1_local_ns - (batch[0].t2_utc_ns - batch[0].t1_local_ns)) -
				      rate * (double)(batch[i].t1_local_ns - middle_local_ns);
		double way_back_ns = (double)(batch[i].t4_local_ns - batch[i].t3_utc_ns + (batch[0].t2_utc_ns - batch[0].t1_local_ns)) +
				     rate * (double)(batch[i].t4_local_ns - middle_local_ns);
		int64_t round_ns = (batch[i].t4_local_ns - batch[i].t1_local_ns) - (batch[i].t3_utc_ns - batch[i].t2_utc_ns);

		if (i == 0 || way_there_ns < there_ns)
			there_ns = way_there_ns, pick.there = i;
		if (i == 0 || way_back_ns < back_ns)
			back_ns = way_back_ns, pick.back = i;
		if (round_ns < shortest_ns)
			shortest_ns = round_ns, pick.shortest = i;
	}
	pick.offset_ns = batch[0].t2_utc_ns - batch[0].t1_local_ns + llround((there_ns - back_ns) / 2);
	pick.delay_ns = llround(there_ns + back_ns);
	pick.stamp_ns = NOISE_FLOOR_NS + (double)(batch[pick.there].error_ns + batch[pick.there].precision_ns);
	return pick;
}

/* Hand them to the hard bound, in the order of time. Returns whether they contradict it. */
static bool hard_take(struct estimate *estimate, const struct pick *pick, int64_t *step_ns)
{
	bool contradiction = false;

	for (int i = 0; i < estimate->count; i++) {
		struct twoway_exchange exchange;

		if (i != pick->there && i != pick->back && i != pick->shortest)
			continue;
		exchange = widened(&estimate->batch[i]);
		twoway_add(estimate->twoway, &exchange);
		if (twoway_end_burst(estimate->twoway, contradiction ? NULL : step_ns) == TWOWAY_STEPPED)
			contradiction = true;
	}
	return contradiction;
}

/*
 * The likely line anew from all batches that are kept: how far each is trusted depends on the fastest way, which may have been seen
 * after it.
 */
static void likely_from_picks(struct estimate *estimate)
{
	uint64_t first = estimate->batches > PICKS_MAX ? estimate->batches - PICKS_MAX : 0;
	int64_t fastest_ns = INT64_MAX;

	for (uint64_t i = first; i < estimate->batches; i++)
		if (estimate->picks[i % PICKS_MAX].delay_ns < fastest_ns)
			fastest_ns = estimate->picks[i % PICKS_MAX].delay_ns;
	likely_init(&estimate->likely, estimate->likely.walk_ppb_per_sqrt_s);
	for (uint64_t i = first; i < estimate->batches; i++) {
		const struct pick *pick = &estimate->picks[i % PICKS_MAX];

		likely_take(&estimate->likely, pick->at_local_ns, pick->offset_ns,
			    pick->stamp_ns + (double)(pick->delay_ns - fastest_ns) / 2);
	}
}

static double clip(double value, double middle, double reach)
{
	return value < middle - reach ? middle - reach : value > middle + reach ? middle + reach : value;
}

/* The likely line, held inside the set of those that can be. */
static void combine(struct estimate *estimate)
{
	struct twoway_line hard = twoway_current(estimate->twoway);
	struct likely *likely = &estimate->likely;
	double off_middle_ns, rate_ppb, ahead_s;

	likely_move(likely, hard.at_local_ns);
	off_middle_ns = clip(likely_offset_ns(likely, hard.at_local_ns, hard.offset_ns), 0.0, (double)hard.bound_ns);
	rate_ppb = clip(likely->rate_ppb, (double)hard.rate_ppb, (double)hard.bound_growth_ppb);
	ahead_s = (double)(likely->at_local_ns - hard.at_local_ns) * SECONDS_PER_NS;
	likely_clip(likely, hard.offset_ns, off_middle_ns + rate_ppb * ahead_s, rate_ppb);
	estimate->line = (struct estimate_line){
		.valid = hard.valid,
		.at_local_ns = hard.at_local_ns,
		.offset_ns = hard.offset_ns + llround(off_middle_ns),
		.rate_ppb = rate_ppb,
		.bound_ns = hard.bound_ns + (int64_t)ceil(fabs(off_middle_ns)) + 1,
		.bound_growth_ppb = hard.bound_growth_ppb + (int64_t)ceil(fabs(rate_ppb - (double)hard.rate_ppb)),
		.wander_ppb_per_s = hard.wander_ppb_per_s,
	};
}

enum estimate_outcome estimate_end_batch(struct estimate *estimate, int64_t *step_ns)
{
	bool contradiction;
	struct pick pick;

	if (estimate->count == 0)
		return ESTIMATE_NOTHING;
	pick = pick_of(estimate);
	contradiction = hard_take(estimate, &pick, step_ns);
	if (contradiction)
		estimate->batches = 0;
	estimate->picks[estimate->batches++ % PICKS_MAX] = pick;
	likely_from_picks(estimate);
	combine(estimate);
	estimate->count = 0;
	return contradiction ? ESTIMATE_CONTRADICTION : ESTIMATE_UPDATED;
}

struct estimate_line estimate_current(const struct estimate *estimate)
{
	return estimate->line;
}

int64_t estimate_delay_ns(const struct estimate *estimate)
{
	return estimate->batches ? estimate->picks[(estimate->batches - 1) % PICKS_MAX].delay_ns : 0;
}

uint64_t estimate_batches(const struct estimate *estimate)
{
	return estimate->batches;
}

int64_t estimate_offset_at(const struct estimate_line *line, int64_t local_ns)
{
	return line->offset_ns + llround(line->rate_ppb * (double)(local_ns - line->at_local_ns) * SECONDS_PER_NS);
}

double estimate_bound_at(const struct estimate_line *line, int64_t local_ns)
{
	double age_s = fabs((double)(local_ns - line->at_local_ns)) * SECONDS_PER_NS;

	return (double)line->bound_ns + age_s * ((double)line->bound_growth_ppb + age_s * (double)line->wander_ppb_per_s / 2);
}
