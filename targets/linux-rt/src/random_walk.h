/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frequency error of a wandering oscillator: a base error, drawn once, and a random walk on it.
 *
 * Everything follows from the seed, so that a run can be repeated. Errors are parts per billion; positive: the clock
 * runs fast.
 */
#ifndef BW_RANDOM_WALK_H
#define BW_RANDOM_WALK_H

#include <stdbool.h>
#include <stdint.h>

struct random_walk {
	uint64_t state;    /* of the generator */
	double sigma_ppb;  /* standard deviation of one step */
	double bound_ppb;  /* |error| never exceeds it */
	double base_ppb;   /* what was drawn first, and shifted by */
	double error_ppb;  /* now */
	bool clipped;      /* the last step would have left the bounds */
};

/**
 * Draw the base error.
 *
 * @param base_max_ppb            the base is uniform within plus or minus this
 * @param step_ppb_per_sqrt_s     of the walk: its standard deviation after one second; it grows with the root of time
 * @param interval_s              between two steps
 * @param bound_ppb               plus or minus; a step beyond it ends there
 */
void random_walk_init(struct random_walk *walk, uint64_t seed, double base_max_ppb, double step_ppb_per_sqrt_s, double interval_s,
		      double bound_ppb);

/** Move the base, and the error with it: what is known, beside what was drawn. A place beyond the bounds is clipped. */
void random_walk_shift(struct random_walk *walk, double shift_ppb);

/** Take one step. @return the new error */
double random_walk_step(struct random_walk *walk);

#endif
