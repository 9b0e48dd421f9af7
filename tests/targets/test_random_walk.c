/* SPDX-License-Identifier: Apache-2.0 */
/** The wandering frequency: base within its bound, steps of the right size, nothing beyond the bounds, repeatable. */
#include <math.h>

#include "../traffic_gen/check.h"
#include "random_walk.h"

#define BASE_MAX_PPB 50000.0
#define STEP_PPB 100.0
#define BOUND_PPB 500000.0

enum { SEEDS = 4000, WALKS = 2000, STEPS = 100 };

static void test_base_is_uniform_within_its_bound(void)
{
	double sum = 0.0, squares = 0.0;
	int outer = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct random_walk walk;

		random_walk_init(&walk, seed, BASE_MAX_PPB, STEP_PPB, 1.0, BOUND_PPB);
		CHECK_THAT(fabs(walk.base_ppb) <= BASE_MAX_PPB, "seed %d: base %g", (int)seed, walk.base_ppb);
		CHECK(walk.error_ppb == walk.base_ppb);
		sum += walk.base_ppb;
		squares += walk.base_ppb * walk.base_ppb;
		outer += fabs(walk.base_ppb) > BASE_MAX_PPB / 2;
	}
	/* Uniform: mean 0, variance max^2 / 3, half of them in the outer half; four standard errors of each. */
	CHECK_THAT(fabs(sum / SEEDS) < 4 * BASE_MAX_PPB / sqrt(3.0 * SEEDS), "mean %g", sum / SEEDS);
	CHECK_THAT(fabs(squares / SEEDS / (BASE_MAX_PPB * BASE_MAX_PPB / 3) - 1) < 4 * sqrt(0.8 / SEEDS), "variance %g",
		   squares / SEEDS);
	CHECK_THAT(fabs(outer - SEEDS / 2.0) < 4 * sqrt(SEEDS) / 2, "%d in the outer half", outer);
}

/* After n steps the error has spread by sigma * sqrt(n): the walk has no memory but its place. */
static void test_variance_grows_with_time(double interval_s)
{
	double sigma_ppb = STEP_PPB * sqrt(interval_s);
	double first = 0.0, last = 0.0, tail = 0.0;

	for (uint64_t seed = 0; seed < WALKS; seed++) {
		struct random_walk walk;
		double step_ppb;

		random_walk_init(&walk, seed, BASE_MAX_PPB, STEP_PPB, interval_s, BOUND_PPB);
		step_ppb = random_walk_step(&walk) - walk.base_ppb;
		first += step_ppb * step_ppb;
		tail += fabs(step_ppb) > 2 * sigma_ppb;
		for (int step = 1; step < STEPS; step++)
			random_walk_step(&walk);
		last += (walk.error_ppb - walk.base_ppb) * (walk.error_ppb - walk.base_ppb);
	}
	/* The relative standard error of a variance of n normal values is sqrt(2 / n). */
	CHECK_THAT(fabs(first / WALKS / (sigma_ppb * sigma_ppb) - 1) < 4 * sqrt(2.0 / WALKS), "one step: %g", first / WALKS);
	CHECK_THAT(fabs(last / WALKS / (STEPS * sigma_ppb * sigma_ppb) - 1) < 4 * sqrt(2.0 / WALKS), "%d steps: %g", STEPS,
		   last / WALKS);
	/* 4.55 % of a normal variable lie beyond two standard deviations. */
	CHECK_THAT(fabs(tail / WALKS - 0.0455) < 4 * sqrt(0.0455 * 0.9545 / WALKS), "tail: %g", tail / WALKS);
}

static void test_same_seed_same_walk(void)
{
	struct random_walk one, other, different;

	random_walk_init(&one, 7, BASE_MAX_PPB, STEP_PPB, 1.0, BOUND_PPB);
	random_walk_init(&other, 7, BASE_MAX_PPB, STEP_PPB, 1.0, BOUND_PPB);
	random_walk_init(&different, 8, BASE_MAX_PPB, STEP_PPB, 1.0, BOUND_PPB);
	for (int step = 0; step < STEPS; step++)
		CHECK(random_walk_step(&one) == random_walk_step(&other));
	CHECK(one.base_ppb != different.base_ppb);
}

static void test_bounds_hold(void)
{
	struct random_walk walk;
	int clipped = 0;

	random_walk_init(&walk, 1, 0.0, 1000.0, 1.0, 1500.0);
	for (int step = 0; step < 10000; step++) {
		double error_ppb = random_walk_step(&walk);

		clipped += walk.clipped;
		CHECK_THAT(fabs(error_ppb) <= 1500.0, "step %d: %g", step, error_ppb);
		CHECK(!walk.clipped || fabs(error_ppb) == 1500.0);
	}
	CHECK(clipped > 0);
}

static void test_no_walk_stays_at_its_base(void)
{
	struct random_walk walk;

	random_walk_init(&walk, 3, BASE_MAX_PPB, 0.0, 1.0, BOUND_PPB);
	for (int step = 0; step < STEPS; step++)
		CHECK(random_walk_step(&walk) == walk.base_ppb);
}

static void test_shift_moves_the_base_within_the_bounds(void)
{
	struct random_walk walk;

	random_walk_init(&walk, 3, 0.0, 0.0, 1.0, 300000.0);
	random_walk_shift(&walk, -200000.0);
	CHECK(walk.base_ppb == -200000.0);
	CHECK(walk.error_ppb == -200000.0);
	CHECK(!walk.clipped);
	CHECK(random_walk_step(&walk) == -200000.0);
	random_walk_shift(&walk, -200000.0);
	CHECK(walk.error_ppb == -300000.0);
	CHECK(walk.clipped);
}

int main(void)
{
	test_base_is_uniform_within_its_bound();
	test_variance_grows_with_time(1.0);
	test_variance_grows_with_time(0.25);
	test_same_seed_same_walk();
	test_bounds_hold();
	test_no_walk_stays_at_its_base();
	test_shift_moves_the_base_within_the_bounds();
	return check_result();
}
