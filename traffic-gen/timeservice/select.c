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
	double offset_ns, bound_ns; /* relative to the first candidate's offset */
	double rate_ppb, growth_ppb;
};

static void add_edges(struct edge *edges, int *count, double middle, double reach)
{
	edges[(*count)++] = (struct edge){ middle - reach, 1 };
	edges[(*count)++] = (struct edge){ middle + reach, -1 };
}

static double clip(double value, const struct hull *hull)
{
	return value < hull->low ? hull->low : value > hull->high ? hull->high : value;
}

static double far_end(double value, const struct hull *hull)
{
	return fmax(hull->high - value, value - hull->low);
}

/* Give each candidate its role. Returns how many are combined. */
static int give_roles(struct select_candidate *candidates, const struct said *said, int count, const struct hull *hull)
{
	int combined = 0, best = -1;

	for (int i = 0; i < count; i++) {
		if (!candidates[i].usable)
			continue;
		if (said[i].offset_ns - said[i].bound_ns > hull->high || said[i].offset_ns + said[i].bound_ns < hull->low) {
			candidates[i].role = SELECT_FALSETICKER;
		} else if (said[i].offset_ns < hull->low || said[i].offset_ns > hull->high) {
			candidates[i].role = SELECT_OUTLYING;
		} else {
			candidates[i].role = SELECT_COMBINED;
			combined++;
			if (best < 0 || said[i].bound_ns < said[best].bound_ns)
				best = i;
		}
	}
	if (best >= 0)
		candidates[best].role = SELECT_BEST;
	return combined;
}

/* Mean of those that are combined, the surer ones more; the middle of the hulls where there are none. */
static struct said mean_of(const struct select_candidate *candidates, const struct said *said, int count, const struct hull *offsets,
			   const struct hull *rates)
{
	struct said mean = { 0 };
	double weights = 0;

	for (int i = 0; i < count; i++) {
		double weight;

		if (candidates[i].role != SELECT_BEST && candidates[i].role != SELECT_COMBINED)
			continue;
		weight = 1 / (said[i].bound_ns * said[i].bound_ns + 1);
		weights += weight;
		mean.offset_ns += weight * said[i].offset_ns;
		mean.rate_ppb += weight * said[i].rate_ppb;
	}
	if (weights > 0) {
		mean.offset_ns /= weights;
		mean.rate_ppb /= weights;
	} else {
		mean.offset_ns = (offsets->low + offsets->high) / 2;
		mean.rate_ppb = (rates->low + rates->high) / 2;
	}
	mean.offset_ns = clip(mean.offset_ns, offsets);
	mean.rate_ppb = clip(mean.rate_ppb, rates);
	mean.bound_ns = far_end(mean.offset_ns, offsets);
	mean.growth_ppb = far_end(mean.rate_ppb, rates);
	return mean;
}

int select_line(struct select_candidate *candidates, int count, int64_t at_local_ns, struct estimate_line *line)
{
	struct edge offset_edges[2 * SELECT_MAX], rate_edges[2 * SELECT_MAX];
	struct said said[SELECT_MAX], mean;
	struct hull offsets, rates;
	int usable = 0, edges = 0, same_edges = 0, combined;
	int64_t from_ns = 0, wander_ppb_per_s = 0;

	*line = (struct estimate_line){ .valid = false };
	for (int i = 0; i < count; i++) {
		const struct estimate_line *own = &candidates[i].line;
		double age_s = fabs((double)(at_local_ns - own->at_local_ns)) * 1e-9;
		int64_t offset_ns;

		candidates[i].role = SELECT_UNUSED;
		if (!candidates[i].usable)
			continue;
		offset_ns = estimate_offset_at(own, at_local_ns);
		if (usable++ == 0)
			from_ns = offset_ns;
		said[i] = (struct said){
			.offset_ns = (double)(offset_ns - from_ns),
			.bound_ns = estimate_bound_at(own, at_local_ns) + (double)candidates[i].root_distance_ns + 1,
			.rate_ppb = own->rate_ppb,
			.growth_ppb = (double)own->bound_growth_ppb + age_s * (double)own->wander_ppb_per_s,
		};
		if (own->wander_ppb_per_s > wander_ppb_per_s)
			wander_ppb_per_s = own->wander_ppb_per_s;
		add_edges(offset_edges, &edges, said[i].offset_ns, said[i].bound_ns);
		add_edges(rate_edges, &same_edges, said[i].rate_ppb, said[i].growth_ppb);
	}
	if (!usable || !hull_of(offset_edges, edges, usable / 2 + 1, &offsets) ||
	    !hull_of(rate_edges, edges, usable / 2 + 1, &rates))
		return 0;
	combined = give_roles(candidates, said, count, &offsets);
	mean = mean_of(candidates, said, count, &offsets, &rates);
	*line = (struct estimate_line){
		.valid = true,
		.at_local_ns = at_local_ns,
		.offset_ns = from_ns + llround(mean.offset_ns),
		.rate_ppb = mean.rate_ppb,
		.bound_ns = (int64_t)ceil(mean.bound_ns) + 1,
		.bound_growth_ppb = (int64_t)ceil(mean.growth_ppb),
		.wander_ppb_per_s = wander_ppb_per_s,
	};
	return combined > 0 ? combined : 1;
}
