/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "timeservice/interval.h"
#include "timeservice/weighted_fit.h"

#define SECONDS_PER_NS 1e-9
#define NOISE_FLOOR_NS 50.0  /* of a kernel's stamp: its clock is read in steps */
#define SLACK_NS 20          /* of the interval: stamps are read in steps */
#define WALK_MIN_PPB 0.3     /* a root second: of a quartz at rest */
#define WALK_STEPS 8         /* to 0.3 * 10^3.5 = 950 ppb a root second, by half a decade */
#define LIKELY_ENOUGH 2.0    /* log-likelihoods that near to the best one's are not unlikely, */
#define LIKELY_FIRST 20.0    /* and by that over the number of batches more; */
#define WALK_FIRST 5         /* until there are so many batches, a walk of 95 ppb a root second is not unlikely at all */
#define WAYS_COST 2.0        /* log-likelihoods by which the noise of the ways is less likely for each step away from what is expected */
#define CAUTION 1.75         /* so that U, two of the standard deviations that are told, covers 99.9 %: 3.5 of the filter's own */

enum { PICKS_MAX = 64, FIRST_BATCHES = 20 };     /* batches that carry the likely line, and over which the fastest ways are looked for */
enum { WAYS_STEPS = 5, WAYS_EXPECTED = 2 };

/* Noise of the ways by the queues that the batch has seen: least, expected, most. */
static const double WAYS[WAYS_STEPS] = { 0.0, 0.5, 2.0, 8.0, 32.0 };

/* Of a batch, the exchanges that say most, and what its fastest ways say together at one moment. */
struct pick {
	int there, back, shortest;
	int64_t at_local_ns, offset_ns, delay_ns;
	double stamp_ns; /* standard deviation of the stamps */
	double queue_ns; /* by which the fastest of so many exchanges may still have been held up */
	int64_t root_distance_ns; /* largest of the batch */
	bool kernel_stamps;
};

struct estimate {
	struct estimate_settings settings;
	struct interval interval; /* of the server's clock */
	struct interval utc;      /* contains the server's */
	struct weighted_fit fit, wary;
	struct estimate_line line;
	struct exchange_sample batch[ESTIMATE_BATCH_MAX];
	int count;
	int64_t root_distance_ns; /* of the last exchange */
	struct pick picks[PICKS_MAX]; /* of the last batches: a ring */
	uint64_t batches;
};

struct estimate_settings estimate_default_settings(void)
{
	return (struct estimate_settings){ .drift_limit_ppb = 15000, .rate_limit_ppb = 500000, .asymmetry_percent = 10 };
}

struct estimate *estimate_create(const struct estimate_settings *settings)
{
	struct estimate *estimate;

	if (settings->min_way_ns < 0 || settings->drift_limit_ppb < 0 || settings->rate_limit_ppb <= 0 ||
	    settings->asymmetry_percent < 0 || settings->asymmetry_percent > 100) {
		errno = EINVAL;
		return NULL;
	}
	estimate = calloc(1, sizeof(*estimate));
	if (!estimate)
		return NULL;
	estimate->settings = *settings;
	estimate_restart(estimate);
	return estimate;
}

void estimate_destroy(struct estimate *estimate)
{
	free(estimate);
}

static void intervals_init(struct estimate *estimate)
{
	interval_init(&estimate->interval, estimate->settings.drift_limit_ppb, estimate->settings.rate_limit_ppb);
	interval_init(&estimate->utc, estimate->settings.drift_limit_ppb, estimate->settings.rate_limit_ppb);
}

void estimate_restart(struct estimate *estimate)
{
	intervals_init(estimate);
	weighted_fit_init(&estimate->fit, WALK_MIN_PPB);
	estimate->batches = 0;
	estimate->count = 0;
	estimate->line.valid = false;
}

/* What the clocks gain at most: an end of an exchange's interval holds when its stamps were taken, not all the while it lasts. */
static int64_t gained_ns(const struct estimate_settings *settings, int64_t duration_ns)
{
	return (int64_t)ceil((double)duration_ns * SECONDS_PER_NS * (double)settings->rate_limit_ppb);
}

/* Outward: whatever the stamps are wrong by, the interval holds. */
void estimate_interval(const struct exchange_sample *sample, const struct estimate_settings *settings, int64_t *local_ns, int64_t *low_ns,
		       int64_t *high_ns)
{
	int64_t half_ns = (sample->t4_local_ns - sample->t1_local_ns) / 2;
	int64_t wider_ns = sample->error_ns + sample->precision_ns + SLACK_NS + gained_ns(settings, half_ns) - settings->min_way_ns;

	*local_ns = sample->t1_local_ns + half_ns;
	*low_ns = sample->t3_utc_ns - sample->t4_local_ns - wider_ns;
	*high_ns = sample->t2_utc_ns - sample->t1_local_ns + wider_ns;
}

int estimate_add(struct estimate *estimate, const struct exchange_sample *sample)
{
	int64_t local_ns, low_ns, high_ns;

	estimate_interval(sample, &estimate->settings, &local_ns, &low_ns, &high_ns);
	if (sample->t4_local_ns < sample->t1_local_ns || sample->t3_utc_ns < sample->t2_utc_ns || low_ns > high_ns)
		return -ERANGE;
	estimate->root_distance_ns = sample->root_distance_ns;
	if (estimate->count < ESTIMATE_BATCH_MAX)
		estimate->batch[estimate->count++] = *sample;
	return 0;
}

/* Standard deviation of an exchange's stamps. */
static double stamp_noise_ns(const struct exchange_sample *sample)
{
	return NOISE_FLOOR_NS + (double)(sample->error_ns + sample->precision_ns);
}

/*
 * Whether ways of different exchanges of the batch can be compared: not before the rate is known. In interleaved mode the first one is that of
 * the check before, a second ago; what the clocks gain meanwhile would count as a way that is faster than any.
 */
static bool rate_is_known(const struct estimate *estimate)
{
	const struct exchange_sample *first = &estimate->batch[0], *last = &estimate->batch[estimate->count - 1];
	double span_s = (double)(last->t4_local_ns - first->t1_local_ns) * SECONDS_PER_NS;

	return estimate->fit.begun && sqrt(estimate->fit.var_rate) * span_s <= stamp_noise_ns(last);
}

static int64_t round_ns(const struct exchange_sample *sample)
{
	return (sample->t4_local_ns - sample->t1_local_ns) - (sample->t3_utc_ns - sample->t2_utc_ns);
}

static int compare_ns(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return (a > b) - (a < b);
}

/* What the median exchange of the batch was held up by, by their number: of n waits at random the least is an n-th of their mean. */
static double queue_ns(const struct estimate *estimate)
{
	int64_t rounds_ns[ESTIMATE_BATCH_MAX], median_ns;
	size_t count = (size_t)estimate->count;

	for (size_t i = 0; i < count; i++)
		rounds_ns[i] = round_ns(&estimate->batch[i]);
	qsort(rounds_ns, count, sizeof(rounds_ns[0]), compare_ns);
	median_ns = rounds_ns[count / 2];
	return (double)(median_ns - rounds_ns[0]) / (double)count;
}

static struct pick pick_of(const struct estimate *estimate)
{
	const struct exchange_sample *batch = estimate->batch;
	int64_t middle_local_ns = batch[estimate->count / 2].t1_local_ns, shortest_ns = INT64_MAX;
	double rate = estimate->fit.begun ? estimate->fit.rate_ppb * SECONDS_PER_NS : 0.0, there_ns = 0, back_ns = 0;
	struct pick pick = { .at_local_ns = middle_local_ns };

	for (int i = 0; i < estimate->count; i++) {
		/* Ways as they would have been in the middle of the batch, without what the clocks gained meanwhile. */
		double way_there_ns = (double)(batch[i].t2_utc_ns - batch[i].t1_local_ns - (batch[0].t2_utc_ns - batch[0].t1_local_ns)) -
				      rate * (double)(batch[i].t1_local_ns - middle_local_ns);
		double way_back_ns = (double)(batch[i].t4_local_ns - batch[i].t3_utc_ns + (batch[0].t2_utc_ns - batch[0].t1_local_ns)) +
				     rate * (double)(batch[i].t4_local_ns - middle_local_ns);

		if (i == 0 || way_there_ns < there_ns)
			there_ns = way_there_ns, pick.there = i;
		if (i == 0 || way_back_ns < back_ns)
			back_ns = way_back_ns, pick.back = i;
		if (round_ns(&batch[i]) < shortest_ns)
			shortest_ns = round_ns(&batch[i]), pick.shortest = i;
		if (batch[i].root_distance_ns > pick.root_distance_ns)
			pick.root_distance_ns = batch[i].root_distance_ns;
	}
	if (!rate_is_known(estimate)) {
		const struct exchange_sample *shortest = &batch[pick.shortest];

		pick.there = pick.back = pick.shortest;
		pick.at_local_ns = shortest->t1_local_ns + (shortest->t4_local_ns - shortest->t1_local_ns) / 2;
		there_ns = (double)(shortest->t2_utc_ns - shortest->t1_local_ns - (batch[0].t2_utc_ns - batch[0].t1_local_ns));
		back_ns = (double)(shortest->t4_local_ns - shortest->t3_utc_ns + (batch[0].t2_utc_ns - batch[0].t1_local_ns));
	}
	pick.offset_ns = batch[0].t2_utc_ns - batch[0].t1_local_ns + llround((there_ns - back_ns) / 2);
	pick.delay_ns = llround(there_ns + back_ns);
	pick.stamp_ns = stamp_noise_ns(&batch[pick.there]);
	pick.queue_ns = queue_ns(estimate);
	pick.kernel_stamps = batch[pick.there].kernel_stamps && batch[pick.back].kernel_stamps;
	return pick;
}

/* Hand an exchange to both intervals. Returns as interval_take(): the server's lies within UTC's, and so is the first with nothing left. */
static bool intervals_take(struct estimate *estimate, int64_t local_ns, int64_t low_ns, int64_t high_ns, int64_t root_distance_ns,
			   double *off_ns)
{
	return interval_take(&estimate->interval, local_ns, low_ns, high_ns, off_ns) &&
	       interval_take(&estimate->utc, local_ns, low_ns - root_distance_ns, high_ns + root_distance_ns, off_ns);
}

/* Hand them to the intervals, in the order of time. Returns whether they contradict it: then it begins anew with the first that does. */
static bool interval_update(struct estimate *estimate, const struct pick *pick, int64_t *step_ns)
{
	bool contradiction = false;

	for (int i = 0; i < estimate->count; i++) {
		const struct exchange_sample *sample = &estimate->batch[i];
		int64_t local_ns, low_ns, high_ns;
		double off_ns;

		if (i != pick->there && i != pick->back && i != pick->shortest)
			continue;
		estimate_interval(sample, &estimate->settings, &local_ns, &low_ns, &high_ns);
		if (intervals_take(estimate, local_ns, low_ns, high_ns, sample->root_distance_ns, &off_ns))
			continue;
		if (step_ns && !contradiction)
			*step_ns = llround(off_ns);
		contradiction = true;
		intervals_init(estimate);
		intervals_take(estimate, local_ns, low_ns, high_ns, sample->root_distance_ns, NULL);
	}
	return contradiction;
}

/* The likely line by all batches that are kept, for one walk of the rate and one noise of the ways. */
static struct weighted_fit fit_by(const struct estimate *estimate, double walk_ppb_per_sqrt_s, double ways, uint64_t first,
				  int64_t fastest_ns)
{
	struct weighted_fit fit;

	weighted_fit_init(&fit, walk_ppb_per_sqrt_s);
	for (uint64_t i = first; i < estimate->batches; i++) {
		const struct pick *pick = &estimate->picks[i % PICKS_MAX];

		weighted_fit_take(&fit, pick->at_local_ns, pick->offset_ns,
				  pick->stamp_ns + ways * pick->queue_ns + (double)(pick->delay_ns - fastest_ns) / 2);
	}
	return fit;
}

/*
 * The same for the noise of the ways that the batches make most fit. Few batches cannot tell: two that fit by chance, and were fast, would
 * fix the rate for all that follow. Then it is what the queues within the batches let expect.
 */
static struct weighted_fit best_fit_by(const struct estimate *estimate, double walk_ppb_per_sqrt_s, uint64_t first, int64_t fastest_ns)
{
	struct weighted_fit best = { 0 };

	for (int i = 0; i < WAYS_STEPS; i++) {
		struct weighted_fit fit = fit_by(estimate, walk_ppb_per_sqrt_s, WAYS[i], first, fastest_ns);

		fit.log_likelihood -= WAYS_COST * abs(i - WAYS_EXPECTED);
		if (i == 0 || fit.log_likelihood > best.log_likelihood)
			best = fit;
	}
	return best;
}

static uint64_t first_pick(const struct estimate *estimate)
{
	return estimate->batches > PICKS_MAX ? estimate->batches - PICKS_MAX : 0;
}

/*
 * The likely line anew: how far each batch is trusted depends on the fastest way, which may have been seen after it, and how much the
 * rate walks is what the batches themselves make most likely. The variance is that of a walk which they make just not unlikely.
 */
static void fit_picks(struct estimate *estimate)
{
	uint64_t first = first_pick(estimate);
	struct weighted_fit candidates[WALK_STEPS];
	double enough = LIKELY_ENOUGH + LIKELY_FIRST / (double)(estimate->batches - first);
	int best = 0;
	int64_t fastest_ns = INT64_MAX;

	for (uint64_t i = first; i < estimate->batches; i++)
		if (estimate->picks[i % PICKS_MAX].delay_ns < fastest_ns)
			fastest_ns = estimate->picks[i % PICKS_MAX].delay_ns;
	for (int i = 0; i < WALK_STEPS; i++) {
		candidates[i] = best_fit_by(estimate, WALK_MIN_PPB * pow(10.0, i / 2.0), first, fastest_ns);
		if (candidates[i].log_likelihood > candidates[best].log_likelihood)
			best = i;
	}
	estimate->fit = candidates[best];
	for (int i = best; i < WALK_STEPS; i++)
		if (candidates[i].log_likelihood >= candidates[best].log_likelihood - enough ||
		    (i == WALK_FIRST && estimate->batches < FIRST_BATCHES))
			estimate->wary = candidates[i];
}

/*
 * What the batches' scatter does not show: that one way may always take longer than the other. Where the program stamps itself, how
 * long it takes to hear of an answer is all in one of them. Rectangular.
 */
static double asymmetry_ns2(const struct estimate *estimate)
{
	int64_t percent = estimate->settings.asymmetry_percent;
	double half_ns;

	if (estimate->batches && !estimate->picks[(estimate->batches - 1) % PICKS_MAX].kernel_stamps && percent < ESTIMATE_USER_PERCENT)
		percent = ESTIMATE_USER_PERCENT;
	half_ns = (double)estimate_delay_ns(estimate) / 2 * (double)percent / 100;
	return half_ns * half_ns / 3;
}

/*
 * What no exchange shows either: where the server was against UTC in the batches that carry the likely line, and whether it moved from one end
 * of its root distance to the other while its rate was learnt. Rectangular.
 */
static void add_root_distance(const struct estimate *estimate, double rate_ppb, struct scatter *scatter)
{
	const struct interval *interval = &estimate->interval;
	double most_ppb = interval_growth_most_ppb(interval, rate_ppb) - interval_growth_ppb(interval, rate_ppb);
	double root_ns = (double)estimate->root_distance_ns, over_s = interval_rate_over_s(interval), moved_ppb;

	for (uint64_t i = first_pick(estimate); i < estimate->batches; i++)
		root_ns = fmax(root_ns, (double)estimate->picks[i % PICKS_MAX].root_distance_ns);
	if (root_ns <= 0)
		return;
	moved_ppb = over_s > 0 ? fmin(2 * root_ns / over_s, most_ppb) : most_ppb;
	scatter->offset_ns2 += root_ns * root_ns / 3;
	scatter->rate_ns2_per_s2 += moved_ppb * moved_ppb / 6;
}

/* The likely line, held inside the server's interval. */
static void combine(struct estimate *estimate)
{
	const struct interval *interval = &estimate->interval, *utc = &estimate->utc;
	const struct interval_point *now = &interval->now;
	const struct weighted_fit *fit = &estimate->fit, *wary = &estimate->wary;
	double utc_ns, likely_ns = weighted_fit_offset_ns(fit, now->at_local_ns, interval->origin_ns);
	double offset_ns = fmin(fmax(likely_ns, now->low_ns), now->high_ns);
	double apart_ns = offset_ns - weighted_fit_offset_ns(wary, now->at_local_ns, interval->origin_ns), apart_ppb;
	double drift_ppb = (double)interval->drift_limit_ppb;
	double rate_ppb = fmin(fmax(fit->rate_ppb, interval->rate_low_ppb - drift_ppb), interval->rate_high_ppb + drift_ppb);
	struct scatter own = {
		.offset_ns2 = wary->var_offset,
		.cross_ns2_per_s = fmax(2 * wary->cov, 0.0),
		.rate_ns2_per_s2 = wary->var_rate,
		.walk_ns2_per_s3 = wary->walk_ppb_per_sqrt_s * wary->walk_ppb_per_sqrt_s / 3,
	};
	struct scatter scatter = { 0 };

	scatter_add(&scatter, &own, CAUTION * CAUTION);
	scatter = scatter_later(&scatter, fmax((double)(now->at_local_ns - wary->at_local_ns) * SECONDS_PER_NS, 0.0));
	apart_ppb = rate_ppb - wary->rate_ppb;
	scatter.offset_ns2 += asymmetry_ns2(estimate) + apart_ns * apart_ns;
	scatter.rate_ns2_per_s2 += apart_ppb * apart_ppb;
	add_root_distance(estimate, rate_ppb, &scatter);
	utc_ns = offset_ns + (double)(interval->origin_ns - utc->origin_ns);
	estimate->line = (struct estimate_line){
		.valid = true,
		.at_local_ns = now->at_local_ns,
		.heard_local_ns = now->at_local_ns,
		.offset_ns = interval->origin_ns + llround(offset_ns),
		.rate_ppb = rate_ppb,
		.low_ns = (int64_t)ceil(utc_ns - utc->now.low_ns) + 1,
		.high_ns = (int64_t)ceil(utc->now.high_ns - utc_ns) + 1,
		.growth_ppb = (int64_t)ceil(interval_growth_ppb(utc, rate_ppb)),
		.scatter = scatter,
	};
}

bool estimate_check(struct estimate *estimate, int64_t local_ns, int64_t low_ns, int64_t high_ns, int64_t root_distance_ns)
{
	int64_t wider_ns = SLACK_NS + gained_ns(&estimate->settings, high_ns - low_ns);

	if (!estimate->line.valid)
		return true;
	if (!intervals_take(estimate, local_ns, low_ns - wider_ns, high_ns + wider_ns, root_distance_ns, NULL))
		return false;
	estimate->root_distance_ns = root_distance_ns;
	combine(estimate);
	return true;
}

enum estimate_outcome estimate_end_batch(struct estimate *estimate, int64_t *step_ns)
{
	bool contradiction;
	struct pick pick;

	if (estimate->count == 0)
		return ESTIMATE_NOTHING;
	pick = pick_of(estimate);
	contradiction = interval_update(estimate, &pick, step_ns);
	if (contradiction)
		estimate->batches = 0;
	estimate->picks[estimate->batches++ % PICKS_MAX] = pick;
	fit_picks(estimate);
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

double estimate_growth_at(const struct estimate_line *line, int64_t local_ns)
{
	return fabs((double)(local_ns - line->at_local_ns)) * SECONDS_PER_NS * (double)line->growth_ppb;
}
