/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variance of a time against the truth, and how it grows: of an offset and a rate that are known so well, of a rate that walks at
 * random, and of what does not change. In ns^2 after t seconds: offset + cross t + rate t^2 + walk t^3. Pure.
 */
#ifndef BW_TIMESERVICE_SCATTER_H
#define BW_TIMESERVICE_SCATTER_H

#include <math.h>
#include <stdbool.h>

struct scatter {
	double offset_ns2;
	double cross_ns2_per_s;
	double rate_ns2_per_s2;
	double walk_ns2_per_s3;
};

#define SCATTER_COVERAGE 2.0 /* k of U */
#define SCATTER_MAX 1e36

static inline double scatter_at_ns2(const struct scatter *scatter, double age_s)
{
	double variance = scatter->offset_ns2 +
			  age_s * (scatter->cross_ns2_per_s + age_s * (scatter->rate_ns2_per_s2 + age_s * scatter->walk_ns2_per_s3));

	return variance > 0 ? variance : 0;
}

/** U (k = 2) after a time. */
static inline double scatter_u_ns(const struct scatter *scatter, double age_s)
{
	return SCATTER_COVERAGE * sqrt(scatter_at_ns2(scatter, age_s));
}

/** The same, seen from a later moment. */
static inline struct scatter scatter_later(const struct scatter *scatter, double age_s)
{
	return (struct scatter){
		.offset_ns2 = scatter_at_ns2(scatter, age_s),
		.cross_ns2_per_s = scatter->cross_ns2_per_s +
				   age_s * (2 * scatter->rate_ns2_per_s2 + 3 * age_s * scatter->walk_ns2_per_s3),
		.rate_ns2_per_s2 = scatter->rate_ns2_per_s2 + 3 * age_s * scatter->walk_ns2_per_s3,
		.walk_ns2_per_s3 = scatter->walk_ns2_per_s3,
	};
}

/** Add to a sum with a weight. */
static inline void scatter_add(struct scatter *sum, const struct scatter *part, double weight)
{
	sum->offset_ns2 += weight * part->offset_ns2;
	sum->cross_ns2_per_s += weight * part->cross_ns2_per_s;
	sum->rate_ns2_per_s2 += weight * part->rate_ns2_per_s2;
	sum->walk_ns2_per_s3 += weight * part->walk_ns2_per_s3;
}

/** Finite, and not negative: so that no sum can overflow or have no root. */
static inline bool scatter_valid(const struct scatter *scatter)
{
	return scatter->offset_ns2 >= 0 && scatter->offset_ns2 <= SCATTER_MAX && scatter->cross_ns2_per_s >= 0 &&
	       scatter->cross_ns2_per_s <= SCATTER_MAX && scatter->rate_ns2_per_s2 >= 0 && scatter->rate_ns2_per_s2 <= SCATTER_MAX &&
	       scatter->walk_ns2_per_s3 >= 0 && scatter->walk_ns2_per_s3 <= SCATTER_MAX;
}

#endif
