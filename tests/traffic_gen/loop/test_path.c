/* SPDX-License-Identifier: Apache-2.0 */
/** Paths of targets: within their bounds, not faster than their speed, the same after days. */
#include <math.h>
#include <stdbool.h>

#include "../check.h"
#include "../random.h"
#include "loop/camera/fixed.h"
#include "loop/camera/path.h"

static const struct place low = { 5000, 6000 }, high = { 500000, 380000 };
static const int64_t s_ns = INT64_C(1000000000), day_ns = INT64_C(86400) * 1000000000;

static double way_q8(struct place a, struct place b)
{
	return hypot(b.x_q8 - a.x_q8, b.y_q8 - a.y_q8);
}

static void test_sine(void)
{
	double worst = 0;

	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t angle = i * UINT32_C(42949);
		double off = fabs((double)sine_q30(angle) / 1073741824 - sin(angle * 6.283185307179586 / 4294967296));

		worst = off > worst ? off : worst;
	}
	CHECK_THAT(worst < 2e-7, "the sine is off by %g", worst);
	CHECK_INT(sine_q30(0), 0);
	CHECK_INT(sine_q30(UINT32_C(0x80000000)), 0);
}

static void test_square_root(void)
{
	CHECK_INT(square_root(0), 0);
	CHECK_INT(square_root(24), 4);
	CHECK_INT(square_root(25), 5);
	CHECK_INT(square_root(INT64_C(1000000) * 1000000 - 1), 999999);
}

static void test_bounds_and_speed(enum path_kind kind)
{
	struct random random = { .state = 3 };
	double fastest = 0;

	for (uint64_t seed = 0; seed < 50; seed++) {
		int32_t speed_q8_s = (int32_t)random_between(&random, PATH_SPEED_MIN_Q8_S, 256000);
		struct path path;

		path_make(&path, kind, seed, speed_q8_s, low, high);
		for (int i = 0; i < 400; i++) {
			int64_t t_ns = random_between(&random, 0, 400 * day_ns), later_ns = t_ns + random_between(&random, 1, s_ns);
			struct place at = path_at(&path, t_ns), then = path_at(&path, later_ns);
			double most_q8 = speed_q8_s * (double)(later_ns - t_ns) / 1e9;

			CHECK(at.x_q8 >= low.x_q8 && at.x_q8 <= high.x_q8 && at.y_q8 >= low.y_q8 && at.y_q8 <= high.y_q8);
			CHECK_THAT(way_q8(at, then) <= most_q8 + 3, "kind %d, seed %" PRIu64 ": %f in place of %f", (int)kind, seed,
				   way_q8(at, then), most_q8);
			if (most_q8 > 1000 && way_q8(at, then) / most_q8 > fastest)
				fastest = way_q8(at, then) / most_q8;
		}
	}
	CHECK_THAT(kind == PATH_STILL ? fastest == 0 : fastest > 0.5, "kind %d has %f of its speed at most", (int)kind, fastest);
}

static void test_straight_up_to_its_turn(void)
{
	struct random random = { .state = 4 };

	for (uint64_t seed = 0; seed < 200; seed++) {
		int64_t t_ns = random_between(&random, s_ns, 10 * day_ns), straight_ns;
		struct place before, behind;
		struct path path;
		double speed_q8_s;

		path_make(&path, PATH_CONSTANT, seed, 100 * 256, low, high);
		speed_q8_s = hypot(path.velocity_x_q8_s, path.velocity_y_q8_s);
		CHECK(fabs(speed_q8_s - 25600) < 2);
		straight_ns = path_straight_ns(&path, t_ns);
		CHECK(straight_ns >= 0 && straight_ns < 200 * s_ns);
		CHECK_THAT(fabs(way_q8(path_at(&path, t_ns), path_at(&path, t_ns + straight_ns)) - speed_q8_s * (double)straight_ns / 1e9) < 3,
			   "seed %" PRIu64 " is not straight", seed);
		before = path_at(&path, t_ns + straight_ns - s_ns);
		behind = path_at(&path, t_ns + straight_ns + s_ns);
		CHECK_THAT(way_q8(before, behind) < 2 * speed_q8_s - 3, "seed %" PRIu64 " has no turn", seed);
	}
}

static void test_how_long_other_paths_are_straight(void)
{
	struct path path;

	path_make(&path, PATH_STILL, 1, 0, low, high);
	CHECK(path_straight_ns(&path, day_ns) == INT64_MAX);
	path_make(&path, PATH_CIRCLE, 1, 25600, low, high);
	CHECK_INT(path_straight_ns(&path, day_ns), 0);
}

static void test_rests_first_and_then_begins(enum path_kind kind)
{
	const int64_t still_ns = 7 * s_ns / 2;
	struct random random = { .state = 5 };

	for (uint64_t seed = 0; seed < 50; seed++) {
		struct path path, late;

		path_make(&path, kind, seed, 100 * 256, low, high);
		late = path;
		late.still_ns = still_ns;
		for (int i = 0; i < 100; i++) {
			int64_t t_ns = random_between(&random, 0, i % 2 ? 8 * s_ns : 10 * day_ns);
			bool rests = t_ns < still_ns;

			CHECK(way_q8(path_at(&late, t_ns), path_at(&path, rests ? 0 : t_ns - still_ns)) == 0);
			if (kind == PATH_STILL)
				CHECK(path_straight_ns(&late, t_ns) == INT64_MAX);
			else
				CHECK_INT(path_straight_ns(&late, t_ns), rests ? still_ns - t_ns : path_straight_ns(&path, t_ns - still_ns));
		}
		CHECK(way_q8(path_at(&late, still_ns), path_at(&path, 0)) == 0);
		CHECK_INT(path_straight_ns(&late, still_ns), path_straight_ns(&path, 0));
	}
}

static void test_a_circle_is_round(void)
{
	struct path path;

	path_make(&path, PATH_CIRCLE, 8, 100 * 256, low, high);
	for (int64_t t_ns = 0; t_ns < 2 * path.period_ns; t_ns += path.period_ns / 77)
		CHECK(fabs(way_q8(path.start, path_at(&path, t_ns)) - path.radius_q8) < 1);
	CHECK(way_q8(path_at(&path, 0), path_at(&path, 1000 * path.period_ns)) == 0);
	CHECK(way_q8(path_at(&path, 0), path_at(&path, path.period_ns / 2)) > 1.99 * path.radius_q8);
}

static void test_wandering_has_no_jumps_of_velocity(void)
{
	struct path path;

	path_make(&path, PATH_WANDER, 9, 100 * 256, low, high);
	for (int64_t k = 1; k < 50; k++) {
		struct place a = path_at(&path, k * path.period_ns - s_ns / 10), b = path_at(&path, k * path.period_ns);
		struct place c = path_at(&path, k * path.period_ns + s_ns / 10);

		CHECK_THAT(hypot(a.x_q8 - 2.0 * b.x_q8 + c.x_q8, a.y_q8 - 2.0 * b.y_q8 + c.y_q8) < 100, "a kink at place %" PRId64, k);
	}
}

static void test_seeds_differ(void)
{
	for (int kind = PATH_STILL; kind <= PATH_WANDER; kind++) {
		struct path one, other;

		path_make(&one, (enum path_kind)kind, 1, 25600, low, high);
		path_make(&other, (enum path_kind)kind, 2, 25600, low, high);
		CHECK(way_q8(path_at(&one, s_ns), path_at(&other, s_ns)) > 256);
	}
}

int main(void)
{
	test_sine();
	test_square_root();
	for (int kind = PATH_STILL; kind <= PATH_WANDER; kind++)
		test_bounds_and_speed((enum path_kind)kind);
	for (int kind = PATH_STILL; kind <= PATH_WANDER; kind++)
		test_rests_first_and_then_begins((enum path_kind)kind);
	test_straight_up_to_its_turn();
	test_how_long_other_paths_are_straight();
	test_a_circle_is_round();
	test_wandering_has_no_jumps_of_velocity();
	test_seeds_differ();
	return check_result();
}
