/* SPDX-License-Identifier: Apache-2.0 */
#include "random_walk.h"

#include <math.h>

#define TWO_PI 6.283185307179586
#define MANTISSA 0x1p-53

/* splitmix64 (Steele, Lea, Flood 2014): any seed is good, 0 as well. */
static uint64_t random_next(struct random_walk *walk)
{
	uint64_t z = walk->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Uniform within 0 (excluded) and 1 (included). */
static double random_uniform(struct random_walk *walk)
{
	return (double)((random_next(walk) >> 11) + 1) * MANTISSA;
}

/* Standard normal, by Box and Muller. */
static double random_normal(struct random_walk *walk)
{
	double radius = sqrt(-2.0 * log(random_uniform(walk)));

	return radius * cos(TWO_PI * random_uniform(walk));
}

static void random_walk_set(struct random_walk *walk, double error_ppb)
{
	walk->clipped = fabs(error_ppb) > walk->bound_ppb;
	walk->error_ppb = walk->clipped ? copysign(walk->bound_ppb, error_ppb) : error_ppb;
}

void random_walk_init(struct random_walk *walk, uint64_t seed, double base_max_ppb, double step_ppb_per_sqrt_s, double interval_s,
		      double bound_ppb)
{
	*walk = (struct random_walk){
		.state = seed,
		.sigma_ppb = step_ppb_per_sqrt_s * sqrt(interval_s),
		.bound_ppb = bound_ppb,
	};
	walk->base_ppb = (2.0 * random_uniform(walk) - 1.0) * base_max_ppb;
	random_walk_set(walk, walk->base_ppb);
}

void random_walk_shift(struct random_walk *walk, double shift_ppb)
{
	walk->base_ppb += shift_ppb;
	random_walk_set(walk, walk->error_ppb + shift_ppb);
}

double random_walk_step(struct random_walk *walk)
{
	random_walk_set(walk, walk->error_ppb + walk->sigma_ppb * random_normal(walk));
	return walk->error_ppb;
}
