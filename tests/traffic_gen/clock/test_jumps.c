/* SPDX-License-Identifier: Apache-2.0 */
/* Steps and gaps: what is one is found with its size and place, what is none is not. */
#include "check.h"
#include "clock/compare/jumps.h"
#include "random.h"

#define START_NS INT64_C(1800000000000000000)
#define SPACING_NS INT64_C(500000)
#define THRESHOLD_NS INT64_C(100000)
#define GAP_NS INT64_C(1000000000)

enum { SAMPLES = 5000 };

static struct jumps jumps;

/* Noise of up to 20 us, a drift, one interrupted reading in fifty, and a step in the middle. */
static void run(int64_t drift_ppb, int64_t step_ns, int64_t outlier_ns)
{
	struct random random = { 3 };

	jumps_init(&jumps, THRESHOLD_NS, GAP_NS);
	for (int i = 0; i < SAMPLES; i++) {
		int64_t time_tai_ns = START_NS + i * SPACING_NS;
		int64_t offset_ns = random_between(&random, -20000, 20000) + i * SPACING_NS * drift_ppb / 1000000000;

		if (i >= SAMPLES / 2)
			offset_ns += step_ns;
		if (i % 50 == 10)
			offset_ns += outlier_ns;
		jumps_take(&jumps, time_tai_ns, offset_ns, 0);
	}
}

static void test_quiet(void)
{
	run(0, 0, 0);
	CHECK_INT(jumps.step_count, 0);
	run(0, 0, 5000000); /* single readings that were interrupted */
	CHECK_INT(jumps.step_count, 0);
	run(400000, 0, -5000000); /* slewed by 400 ppm: a second's worth is far over the threshold */
	CHECK_INT(jumps.step_count, 0);
	CHECK_INT(jumps.gap_count, 0);
}

static void test_step(int64_t step_ns, int64_t drift_ppb, int64_t outlier_ns)
{
	run(drift_ppb, step_ns, outlier_ns);
	CHECK_INT(jumps.step_count, 1);
	CHECK_THAT(jumps.steps[0].step_ns > step_ns - 40000 && jumps.steps[0].step_ns < step_ns + 40000,
		   "a step of %" PRId64 " was taken for %" PRId64, step_ns, jumps.steps[0].step_ns);
	CHECK_INT(jumps.steps[0].time_tai_ns, START_NS + SAMPLES / 2 * SPACING_NS);
}

/* Two interrupted readings in a row agree by chance: not yet a step. */
static void test_two_outliers(void)
{
	jumps_init(&jumps, THRESHOLD_NS, GAP_NS);
	for (int i = 0; i < 100; i++)
		jumps_take(&jumps, START_NS + i * SPACING_NS, i == 50 || i == 51 ? 3000000 : 0, 0);
	CHECK_INT(jumps.step_count, 0);
}

/* The window says how wrong a reading may be: what is within it is no step, there or back again. */
static void test_uncertain_readings(void)
{
	jumps_init(&jumps, THRESHOLD_NS, GAP_NS);
	for (int i = 0; i < 200; i++)
		jumps_take(&jumps, START_NS + i * SPACING_NS, i % 8 < 4 ? 0 : 400000, i % 8 < 4 ? 100 : 400000);
	CHECK_INT(jumps.step_count, 0);
	/* And the level was not lost over it. */
	for (int i = 200; i < 210; i++)
		jumps_take(&jumps, START_NS + i * SPACING_NS, 400000, 100);
	CHECK_INT(jumps.step_count, 1);
	CHECK_INT(jumps.steps[0].step_ns, 400000);
	/* Where every reading is as uncertain, smaller steps are not seen, larger ones are. */
	jumps_init(&jumps, THRESHOLD_NS, GAP_NS);
	for (int i = 0; i < 100; i++)
		jumps_take(&jumps, START_NS + i * SPACING_NS, i % 8 < 4 ? 0 : 400000, 400000);
	CHECK_INT(jumps.step_count, 0);
	for (int i = 100; i < 110; i++)
		jumps_take(&jumps, START_NS + i * SPACING_NS, 5000000, 400000);
	CHECK_INT(jumps.step_count, 1);
}

/* The first reading was interrupted: that it is over is no step. */
static void test_outlier_at_the_begin(void)
{
	jumps_init(&jumps, THRESHOLD_NS, GAP_NS);
	for (int i = 0; i < 100; i++)
		jumps_take(&jumps, START_NS + i * SPACING_NS, i < 2 ? -3000000 : 0, 0);
	CHECK_INT(jumps.step_count, 0);
}

static void test_gaps(void)
{
	jumps_init(&jumps, THRESHOLD_NS, GAP_NS);
	jumps_take(&jumps, START_NS, 0, 0);
	jumps_take(&jumps, START_NS + GAP_NS, 0, 0);
	CHECK_INT(jumps.gap_count, 0);
	jumps_take(&jumps, START_NS + 2 * GAP_NS + 1, 0, 0);
	CHECK_INT(jumps.gap_count, 1);
	CHECK_INT(jumps.gaps[0].from_tai_ns, START_NS + GAP_NS);
	CHECK_INT(jumps.gaps[0].to_tai_ns, START_NS + 2 * GAP_NS + 1);
}

static void test_full_tables(void)
{
	jumps_init(&jumps, THRESHOLD_NS, 1);
	for (int64_t i = 0; i < INT64_C(8) * JUMPS_STEPS_MAX; i++)
		jumps_take(&jumps, START_NS + i * SPACING_NS, i / 4 * 10000000, 0);
	CHECK_INT(jumps.step_count, 2 * JUMPS_STEPS_MAX - 1);
	CHECK_INT(jumps_dropped(jumps.step_count, JUMPS_STEPS_MAX), JUMPS_STEPS_MAX - 1);
	CHECK_INT(jumps.gap_count, 4 * 2 * JUMPS_STEPS_MAX - 1);
	CHECK_INT(jumps_dropped(3, JUMPS_STEPS_MAX), 0);
}

/* Whatever a device says, nothing overflows: the sanitizers' build looks on. */
static void test_hostile_readings(void)
{
	const int64_t values[] = { INT64_MAX, INT64_MIN, 0, INT64_MIN, INT64_MAX, -1, 1 };
	enum { VALUES = sizeof(values) / sizeof(values[0]) };

	jumps_init(&jumps, THRESHOLD_NS, GAP_NS);
	for (int i = 0; i < 1000; i++)
		jumps_take(&jumps, values[i % VALUES] / 2, values[i * 3 % VALUES] / 2, 0);
	CHECK(jumps.started);
}

int main(void)
{
	test_quiet();
	test_step(1000000, 0, 0);
	test_step(-1000000, 0, 7000000);
	test_step(250000, 100000, 7000000);
	test_step(INT64_C(37000000000), 0, 0);
	test_two_outliers();
	test_uncertain_readings();
	test_outlier_at_the_begin();
	test_gaps();
	test_full_tables();
	test_hostile_readings();
	return check_result();
}
