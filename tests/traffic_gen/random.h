/* SPDX-License-Identifier: Apache-2.0 */
/** Reproducible random numbers for tests and simulations: splitmix64, the same on every machine and C library. */
#ifndef BW_TEST_RANDOM_H
#define BW_TEST_RANDOM_H

#include <math.h>
#include <stdint.h>

struct random {
	uint64_t state; /* the seed at first */
};

static inline uint64_t random_bits(struct random *random)
{
	uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/** Uniform in [0, 1). */
static inline double random_unit(struct random *random)
{
	return (double)(random_bits(random) >> 11) / 9007199254740992.0;
}

/** Uniform integer in [low, high]. */
static inline int64_t random_between(struct random *random, int64_t low, int64_t high)
{
	uint64_t span = (uint64_t)high - (uint64_t)low + 1;

	return (int64_t)((uint64_t)low + (span ? random_bits(random) % span : random_bits(random)));
}

/** Normal, with the standard deviation 1: the transform of Box and Muller. */
static inline double random_normal(struct random *random)
{
	double radius = sqrt(-2 * log(1 - random_unit(random)));

	return radius * cos(6.283185307179586 * random_unit(random));
}

/** Exponential with the given mean. */
static inline double random_exponential(struct random *random, double mean)
{
	return -mean * log(1 - random_unit(random));
}

#endif
