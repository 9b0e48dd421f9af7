/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/select.h"

#include <math.h>
#include <stdlib.h>

struct edge {
	double at;
	int step; /* +1: an interval begins; -1: one ends */
};

struct hull {
	double low, high;
};

/* Beginnings before ends at the same place: intervals that touch overlap. */
static int edge_compare(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	if (a->at != b->at)
		return (a->at > b->at) - (a->at < b->at);
	return b->step - a->step;
}

/* The hull of all places that lie in at least `needed` intervals. Returns false where there is none. */
static bool hull_of(struct edge *edges, int count, int needed, struct hull *hull)
{
	int inside = 0;
	bool found = false;

	*hull = (struct hull){ 0 };
	qsort(edges, (size_t)count, sizeof(edges[0]), edge_compare);
	for (int i = 0; i < count; i++) {
		if (edges[i].step > 0 && ++inside == needed && !found) {
			found = true;
			hull->low = edges[i].at;
		} else if (edges[i].step < 0) {
			if (inside == needed)
				hull->high = edges[i].at;
			inside--;
		}
	}
	return found;
}

/* What a candidate says of one moment. */
struct said {
	double offset_ns, low_ns, high_ns; /* relative to the first candidate's offset; the truth is within low .. high */
	double rate_ppb, growth_ppb;
};

static void add_edges(struct edge *edges, int *count, double low, double high)
{
	edges[(*count)++] = (struct edge){ low, 1 };
	edges[(*count)++] = (struct edge){ high, -1 };
}

static double width_ns(const struct said *said)
{
	return said->high_ns - said->low_ns;
}

static double clip(double value, const struct hull *hull)
{
	return value < hull->low ? hull->low : value > hull->high ? hull->high : value;
}

/* Give each candidate its role. Returns how many are combined. */
static int give_roles(struct select_candidate *candidates, const struct said *said, int count, const struct hull *hull)
{
	int combined = 0, best = -1;

	for (int i = 0; i < count; i++) {
		if (!candidates[i].usable)
			continue;
		if (said[i].low_ns > hull->high || said[i].high_ns < hull->low) {
			candidates[i].role = SELECT_FALSETICKER;
		} else if (said[i].offset_ns < hull->low || said[i].offset_ns > hull->high) {
			candidates[i].role = SELECT_OUTLYING;
		} else {
			candidates[i].role = SELECT_COMBINED;
			combined++;
			if (best < 0 || width_ns(&said[i]) < width_ns(&said[best]))
				best = i;
		}
	}
	if (best >= 0)
		candidates[best].role = SELECT_BEST;
	return combined;
}

static double weight_of(const struct select_candidate *candidate, const struct said *said)
{
	if (candidate->role != SELECT_BEST && candidate->role != SELECT_COMBINED)
		return 0;
	return 1 / (width_ns(said) * width_ns(said) + 1);
}

/* Mean of those that are combined, the surer ones more; the middle of the hulls where there are none. */
static struct said mean_of(const struct select_candidate *candidates, const struct said *said, int count, const struct hull *offsets,
			   const struct hull *rates)
{
	struct said mean = { .offset_ns = (offsets->low + offsets->high) / 2, .rate_ppb = (rates->low + rates->high) / 2 };
	double weights = 0, offset_ns = 0, rate_ppb = 0;

	for (int i = 0; i < count; i++) {
		double weight = weight_of(&candidates[i], &said[i]);

		weights += weight;
		offset_ns += weight * said[i].offset_ns;
		rate_ppb += weight * said[i].rate_ppb;
	}
	if (weights > 0) {
		mean.offset_ns = clip(offset_ns / weights, offsets);
		mean.rate_ppb = clip(rate_ppb / weights, rates);
	}
	mean.low_ns = offsets->low;
	mean.high_ns = offsets->high;
	mean.growth_ppb = fmax(rates->high - mean.rate_ppb, mean.rate_ppb - rates->low);
	return mean;
}

/*
 * Variance of the mean: no more than the weighted mean of theirs, however they hang together, and of how they differ. Where nothing
 * is combined: of a place somewhere in the hull.
 */
static struct scatter scatter_of(const struct select_candidate *candidates, const struct said *said, int count, const struct said *mean,
				 int64_t at_local_ns)
{
	struct scatter sum = { 0 };
	double weights = 0;

	for (int i = 0; i < count; i++)
		weights += weight_of(&candidates[i], &said[i]);
	for (int i = 0; i < count; i++) {
		double weight = weights > 0 ? weight_of(&candidates[i], &said[i]) / weights : 0, apart_ns;
		struct scatter own;

		if (weight <= 0)
			continue;
		apart_ns = said[i].offset_ns - mean->offset_ns;
		own = scatter_later(&candidates[i].line.scatter, fmax((double)(at_local_ns - candidates[i].line.at_local_ns) * 1e-9, 0.0));
		own.offset_ns2 += apart_ns * apart_ns;
		scatter_add(&sum, &own, weight);
	}
	if (weights <= 0) {
		sum.offset_ns2 = width_ns(mean) * width_ns(mean) / 12;
		sum.rate_ns2_per_s2 = mean->growth_ppb * mean->growth_ppb / 3;
	}
	return sum;
}

int select_line(struct select_candidate *candidates, int count, int64_t at_local_ns, struct estimate_line *line)
{
	struct edge offset_edges[2 * SELECT_MAX], rate_edges[2 * SELECT_MAX];
	struct said said[SELECT_MAX] = { 0 }, mean; /* of those that are not usable: weighted with 0, and so a number */
	struct hull offsets, rates;
	int usable = 0, edges = 0, same_edges = 0, combined;
	int64_t from_ns = 0, heard_local_ns = INT64_MIN;

	*line = (struct estimate_line){ .valid = false };
	for (int i = 0; i < count; i++) {
		const struct estimate_line *own = &candidates[i].line;
		double wider_ns;
		int64_t offset_ns;

		candidates[i].role = SELECT_UNUSED;
		if (!candidates[i].usable)
			continue;
		offset_ns = estimate_offset_at(own, at_local_ns);
		if (usable++ == 0)
			from_ns = offset_ns;
		wider_ns = estimate_growth_at(own, at_local_ns) + 1;
		said[i] = (struct said){
			.offset_ns = (double)(offset_ns - from_ns),
			.low_ns = (double)(offset_ns - from_ns - own->low_ns) - wider_ns,
			.high_ns = (double)(offset_ns - from_ns + own->high_ns) + wider_ns,
			.rate_ppb = own->rate_ppb,
			.growth_ppb = (double)own->growth_ppb,
		};
		add_edges(offset_edges, &edges, said[i].low_ns, said[i].high_ns);
		add_edges(rate_edges, &same_edges, own->rate_ppb - said[i].growth_ppb, own->rate_ppb + said[i].growth_ppb);
	}
	if (!usable || !hull_of(offset_edges, edges, usable / 2 + 1, &offsets) ||
	    !hull_of(rate_edges, edges, usable / 2 + 1, &rates))
		return 0;
	combined = give_roles(candidates, said, count, &offsets);
	mean = mean_of(candidates, said, count, &offsets, &rates);
	for (int i = 0; i < count; i++)
		if ((weight_of(&candidates[i], &said[i]) > 0 || (combined == 0 && candidates[i].usable)) &&
		    candidates[i].line.heard_local_ns > heard_local_ns)
			heard_local_ns = candidates[i].line.heard_local_ns;
	*line = (struct estimate_line){
		.valid = true,
		.at_local_ns = at_local_ns,
		.heard_local_ns = heard_local_ns,
		.offset_ns = from_ns + llround(mean.offset_ns),
		.rate_ppb = mean.rate_ppb,
		.low_ns = (int64_t)ceil(mean.offset_ns - mean.low_ns) + 1,
		.high_ns = (int64_t)ceil(mean.high_ns - mean.offset_ns) + 1,
		.growth_ppb = (int64_t)ceil(mean.growth_ppb),
		.scatter = scatter_of(candidates, said, count, &mean, at_local_ns),
	};
	return combined > 0 ? combined : 1;
}
