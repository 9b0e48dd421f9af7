/* SPDX-License-Identifier: Apache-2.0 */
#include "time/twoway.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "base/time_units.h"
#include "time/twoway_fit.h"

#define WINDOW_MAX 64  /* intervals that carry the line */
#define AROUND_MAX 32  /* intervals on each side of a moment that carry the fit of the run there */
#define RTT_MAX_NS ((INT64_C(1) << 34) - 1)
#define GROWTH_MAX_NS 4e18
#define WINDOW_LONGEST_NS INT64_C(1000000000000000) /* 11 days */
#define WAY_LONGEST_NS INT64_C(1000000000000)
#define ROUNDING_NS 1 /* of a line's figures to integers */

/* What an exchange says for certain: the offset at local_ns lies in [low_ns, high_ns]. */
struct certain {
	int64_t local_ns;
	int64_t low_ns;
	int64_t high_ns;
};

/* What belongs to a sample of the series and is not published. */
struct sample_origin {
	struct certain certain;
	int64_t published_local_ns; /* local time of the end of its burst */
	uint32_t segment;           /* counts the steps before it */
};

struct twoway {
	struct twoway_config config;
	struct twoway_line line;
	bool burst_open;
	struct twoway_exchange shortest; /* of the open burst */
	int64_t burst_end_local_ns;
	uint64_t exchanges, kept, invalid, steps;
	struct histogram *rtt;
	size_t window_count;
	struct certain window[WINDOW_MAX]; /* oldest first */
	uint64_t series_stride;            /* every how-manieth kept exchange enters */
	size_t series_count;
	struct twoway_sample series[TWOWAY_SERIES_MAX];
	struct sample_origin origins[TWOWAY_SERIES_MAX];
};

struct twoway_config twoway_default_config(void)
{
	return (struct twoway_config){
		.window_ns = INT64_C(30000000000),
		.wander_ppb_per_s = 500,
		.rate_limit_ppb = 500000,
	};
}

struct twoway *twoway_create(const struct twoway_config *config)
{
	struct twoway *twoway;

	if (config->window_ns <= 0 || config->window_ns > WINDOW_LONGEST_NS || config->wander_ppb_per_s < 0 ||
	    config->wander_ppb_per_s > 1000000 || config->rate_limit_ppb <= 0 || config->rate_limit_ppb > 10000000 ||
	    config->min_way_ns < 0 || config->min_way_ns > WAY_LONGEST_NS || config->slack_ns < 0 ||
	    config->slack_ns > WAY_LONGEST_NS) {
		errno = EINVAL;
		return NULL;
	}
	twoway = calloc(1, sizeof(*twoway));
	if (!twoway)
		return NULL;
	twoway->config = *config;
	twoway->series_stride = 1;
	twoway->rtt = histogram_create(0, RTT_MAX_NS);
	if (!twoway->rtt) {
		free(twoway);
		return NULL;
	}
	return twoway;
}

void twoway_destroy(struct twoway *twoway)
{
	if (!twoway)
		return;
	histogram_destroy(twoway->rtt);
	free(twoway);
}

int twoway_add(struct twoway *twoway, const struct twoway_exchange *exchange)
{
	int64_t rtt_ns;

	if (!twoway_exchange_valid(exchange)) {
		twoway->invalid++;
		return -EINVAL;
	}
	rtt_ns = twoway_rtt_ns(exchange);
	if (rtt_ns + 2 * twoway->config.slack_ns < 2 * twoway->config.min_way_ns) {
		twoway->invalid++;
		return -EINVAL;
	}
	histogram_record(twoway->rtt, rtt_ns);
	twoway->exchanges++;
	if (!twoway->burst_open || rtt_ns < twoway_rtt_ns(&twoway->shortest))
		twoway->shortest = *exchange;
	if (!twoway->burst_open || exchange->t4_local_ns > twoway->burst_end_local_ns)
		twoway->burst_end_local_ns = exchange->t4_local_ns;
	twoway->burst_open = true;
	return 0;
}

/*
 * Both ends of the interval hold somewhere between t1 and t4; place them in the middle, and widen them by what the
 * offset can change in between.
 */
static struct certain certain_of(const struct twoway *twoway, const struct twoway_exchange *exchange)
{
	int64_t span_ns = exchange->t4_local_ns - exchange->t1_local_ns;
	int64_t drift_ns = (int64_t)ceil((double)span_ns / 2 * (double)twoway->config.rate_limit_ppb / NS_PER_S);
	int64_t wider_ns = drift_ns + twoway->config.slack_ns - twoway->config.min_way_ns;

	return (struct certain){
		.local_ns = exchange->t1_local_ns + span_ns / 2,
		.low_ns = exchange->t3_peer_ns - exchange->t4_local_ns - wider_ns,
		.high_ns = exchange->t2_peer_ns - exchange->t1_local_ns + wider_ns,
	};
}

/* An interval seen from `origin`: relative to it, and widened by the wander in between (see twoway.h). */
static struct fit_interval seen_from(const struct twoway *twoway, const struct certain *origin, const struct certain *certain)
{
	double x_s = (double)(certain->local_ns - origin->local_ns) / NS_PER_S;
	double wander_ns = (double)twoway->config.wander_ppb_per_s / 2 * x_s * x_s;

	return (struct fit_interval){
		.x_s = x_s,
		.low_ns = (double)(certain->low_ns - origin->low_ns) - wander_ns,
		.high_ns = (double)(certain->high_ns - origin->low_ns) + wander_ns,
	};
}

static struct twoway_line line_of(const struct twoway *twoway, const struct certain *origin, const struct fit_set *set)
{
	double middle_ns = (set->offset_low_ns + set->offset_high_ns) / 2;

	return (struct twoway_line){
		.valid = true,
		.at_local_ns = origin->local_ns,
		.offset_ns = origin->low_ns + llround(middle_ns),
		.rate_ppb = llround((set->rate_low_ppb + set->rate_high_ppb) / 2),
		.bound_ns = (int64_t)ceil((set->offset_high_ns - set->offset_low_ns) / 2) + ROUNDING_NS,
		.bound_growth_ppb = (int64_t)ceil((set->rate_high_ppb - set->rate_low_ppb) / 2) + ROUNDING_NS,
		.wander_ppb_per_s = twoway->config.wander_ppb_per_s,
	};
}

/* Find the line through the window as seen from its newest interval. Return false when there is none. */
static bool fit_window(const struct twoway *twoway, struct twoway_line *line)
{
	const struct certain *newest = &twoway->window[twoway->window_count - 1];
	struct fit_interval intervals[WINDOW_MAX];
	struct fit_set set;

	for (size_t i = 0; i < twoway->window_count; i++)
		intervals[i] = seen_from(twoway, newest, &twoway->window[i]);
	if (!fit_lines(intervals, twoway->window_count, (double)twoway->config.rate_limit_ppb, &set))
		return false;
	*line = line_of(twoway, newest, &set);
	return true;
}

static void window_remove(struct twoway *twoway, size_t index)
{
	twoway->window_count--;
	memmove(&twoway->window[index], &twoway->window[index + 1],
		(twoway->window_count - index) * sizeof(twoway->window[0]));
}

/* Make room for a new interval: what is too old goes, and of a full window the one that says least from there. */
static void window_trim(struct twoway *twoway, const struct certain *newest)
{
	double widest_ns = -1;
	size_t widest = 0;

	/* One stays whatever its age: it still tells a step. */
	while (twoway->window_count > 1 && twoway->window[0].local_ns < newest->local_ns - twoway->config.window_ns)
		window_remove(twoway, 0);
	if (twoway->window_count < WINDOW_MAX)
		return;
	for (size_t i = 0; i < twoway->window_count; i++) {
		struct fit_interval interval = seen_from(twoway, newest, &twoway->window[i]);

		if (interval.high_ns - interval.low_ns > widest_ns) {
			widest_ns = interval.high_ns - interval.low_ns;
			widest = i;
		}
	}
	window_remove(twoway, widest);
}

/* When the series is full, keep of each two neighbours the one with the shorter round trip. */
static void series_halve(struct twoway *twoway)
{
	for (size_t i = 0; i < TWOWAY_SERIES_MAX / 2; i++) {
		size_t first = 2 * i, better = first + (twoway->series[first + 1].bound_ns < twoway->series[first].bound_ns);

		twoway->series[i] = twoway->series[better];
		twoway->origins[i] = twoway->origins[better];
	}
	twoway->series_count = TWOWAY_SERIES_MAX / 2;
	twoway->series_stride *= 2;
}

static void series_append(struct twoway *twoway, const struct certain *certain)
{
	if (twoway->kept % twoway->series_stride)
		return;
	if (twoway->series_count == TWOWAY_SERIES_MAX)
		series_halve(twoway);
	twoway->series[twoway->series_count] = (struct twoway_sample){
		.local_ns = certain->local_ns,
		.offset_ns = twoway_offset_ns(&twoway->shortest),
		.bound_ns = (twoway_rtt_ns(&twoway->shortest) + 1) / 2,
		.line = twoway->line,
	};
	twoway->origins[twoway->series_count++] = (struct sample_origin){
		.certain = *certain,
		.published_local_ns = twoway->burst_end_local_ns,
		.segment = (uint32_t)twoway->steps,
	};
}

enum twoway_outcome twoway_end_burst(struct twoway *twoway, int64_t *step_ns)
{
	enum twoway_outcome outcome = TWOWAY_UPDATED;
	struct certain certain;

	if (!twoway->burst_open)
		return TWOWAY_NOTHING;
	twoway->burst_open = false;
	certain = certain_of(twoway, &twoway->shortest);
	window_trim(twoway, &certain);
	twoway->window[twoway->window_count++] = certain;
	if (!fit_window(twoway, &twoway->line)) {
		outcome = TWOWAY_STEPPED;
		twoway->steps++;
		if (step_ns)
			*step_ns = twoway_offset_ns(&twoway->shortest) -
				   twoway_line_offset_ns(&twoway->line, certain.local_ns);
		twoway->window[0] = certain;
		twoway->window_count = 1;
		fit_window(twoway, &twoway->line); /* one interval always has a line */
	}
	series_append(twoway, &certain);
	twoway->kept++;
	return outcome;
}

struct twoway_line twoway_current(const struct twoway *twoway)
{
	return twoway->line;
}

int64_t twoway_line_bound_ns(const struct twoway_line *line, int64_t local_ns)
{
	double age_s = fabs((double)(local_ns - line->at_local_ns)) / NS_PER_S;
	double growth_ns = age_s * ((double)line->bound_growth_ppb + age_s * (double)line->wander_ppb_per_s / 2);

	if (growth_ns > GROWTH_MAX_NS)
		growth_ns = GROWTH_MAX_NS; /* centuries: the line says nothing any more */
	return line->bound_ns + (int64_t)ceil(growth_ns) + ROUNDING_NS;
}

size_t twoway_series(const struct twoway *twoway, const struct twoway_sample **samples)
{
	*samples = twoway->series;
	return twoway->series_count;
}

/* The fit of the run around sample `index`, from its neighbours before and after within the window and its segment. */
static struct twoway_line fit_around(const struct twoway *twoway, size_t index)
{
	const struct sample_origin *origin = &twoway->origins[index];
	struct fit_interval intervals[2 * AROUND_MAX + 1];
	struct fit_set set;

	/* The clock kept the limits or a step was seen: all neighbours fit. Should they not, nearer ones do. */
	for (size_t reach = AROUND_MAX;; reach /= 2) {
		size_t count = 0;

		for (size_t i = index < reach ? 0 : index - reach; i <= index + reach && i < twoway->series_count; i++) {
			const struct sample_origin *other = &twoway->origins[i];

			if (other->segment == origin->segment &&
			    llabs(other->certain.local_ns - origin->certain.local_ns) <= twoway->config.window_ns)
				intervals[count++] = seen_from(twoway, &origin->certain, &other->certain);
		}
		if (fit_lines(intervals, count, (double)twoway->config.rate_limit_ppb, &set) || reach == 0)
			break;
	}
	return line_of(twoway, &origin->certain, &set);
}

static int64_t distance_ns(const struct twoway_line *line, const struct twoway_line *fit)
{
	return llabs(twoway_line_offset_ns(line, fit->at_local_ns) - fit->offset_ns);
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Compare the lines that were in use in [from_local_ns, to_local_ns] with the fit. Return the index of the last one. */
static size_t compare_lines(const struct twoway *twoway, int64_t from_local_ns, int64_t to_local_ns,
			    struct twoway_summary *summary)
{
	struct twoway_line fit = { 0 }, next_fit = fit_around(twoway, 0);
	size_t last = 0;

	for (size_t i = 0; i < twoway->series_count; i++) {
		const struct twoway_line *line = &twoway->series[i].line;
		bool ends = i + 1 < twoway->series_count;
		int64_t use_from_local_ns = twoway->origins[i].published_local_ns;
		int64_t use_to_local_ns = ends ? twoway->origins[i + 1].published_local_ns :
						 larger(to_local_ns, use_from_local_ns);

		if (use_from_local_ns > to_local_ns && i > 0)
			break;
		last = i;
		fit = next_fit;
		if (ends)
			next_fit = fit_around(twoway, i + 1);
		if (use_to_local_ns < from_local_ns)
			continue;
		summary->residual_ns = larger(summary->residual_ns, distance_ns(line, &fit));
		if (ends && twoway->origins[i + 1].segment == twoway->origins[i].segment)
			summary->residual_ns = larger(summary->residual_ns, distance_ns(line, &next_fit));
		summary->bound_ns = larger(summary->bound_ns,
					   twoway_line_bound_ns(line, use_to_local_ns < to_local_ns ? use_to_local_ns :
												      to_local_ns));
	}
	return last;
}

void twoway_summarise(const struct twoway *twoway, int64_t from_local_ns, int64_t to_local_ns,
		      struct twoway_summary *summary)
{
	struct twoway_line fit;

	*summary = (struct twoway_summary){
		.exchanges = twoway->exchanges,
		.kept = twoway->kept,
		.invalid = twoway->invalid,
		.steps = twoway->steps,
		.at_local_ns = to_local_ns,
	};
	if (twoway->kept == 0)
		return;
	fit = fit_around(twoway, compare_lines(twoway, from_local_ns, to_local_ns, summary));
	summary->offset_ns = twoway_line_offset_ns(&fit, to_local_ns);
	summary->rate_ppb = fit.rate_ppb;
	summary->rtt_min_ns = histogram_min_ns(twoway->rtt);
	histogram_percentile(twoway->rtt, 500000, &summary->rtt_p50_ns);
}
