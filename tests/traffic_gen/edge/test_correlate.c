/* SPDX-License-Identifier: Apache-2.0 */
/* Counter and clock: exact arithmetic, rate and steps. Then which readings pass the filter. */
#include "base/time_units.h"
#include "check.h"
#include "edge/method/correlate.h"
#include "random.h"
#include "edge/method/read_filter.h"

#define HZ UINT64_C(2800000123)
#define FIRST_NS INT64_C(1790000000000000000)
#define FIRST_TICKS (UINT64_MAX - 5 * HZ) /* it rolls over in the test */

/* Count at a time of a clock that is fast by ppb: the truth. */
static uint64_t true_ticks(int64_t passed_ns, int64_t ppb)
{
	return FIRST_TICKS + (uint64_t)((double)passed_ns * (double)HZ / (double)(NS_PER_S + ppb) + 0.5);
}

static void test_scale(void)
{
	CHECK_INT(correlation_scale(10, 1, 4), 3);
	CHECK_INT(correlation_scale(-10, 1, 4), -3);
	CHECK_INT(correlation_scale(9, 1, 4), 2);
	CHECK_INT(correlation_scale(INT64_C(4000000000000000000), 1, 2), INT64_C(2000000000000000000));
	/* 100 s of ticks: nothing is lost that a double would lose. */
	CHECK_INT(correlation_scale(100 * NS_PER_S + 1, (int64_t)HZ, NS_PER_S), 100 * (int64_t)HZ + 3);
	CHECK_INT(correlation_scale(-100 * NS_PER_S - 1, (int64_t)HZ, NS_PER_S), -100 * (int64_t)HZ - 3);
}

static void test_nominal_rate_at_first(void)
{
	struct correlation correlation;

	correlation_init(&correlation, HZ, NS_PER_S, 1000);
	CHECK(correlation_add(&correlation, FIRST_TICKS, FIRST_NS));
	CHECK(correlation_ticks_at(&correlation, FIRST_NS + NS_PER_S) == FIRST_TICKS + HZ);
	CHECK(correlation_ticks_at(&correlation, FIRST_NS - NS_PER_S) == FIRST_TICKS - HZ);
	CHECK_INT(correlation_ns_at(&correlation, FIRST_TICKS + 2 * HZ), FIRST_NS + 2 * NS_PER_S);
}

/* A clock that is off by some ppm, readings with an error each: the rate is found. */
static void test_rate(int64_t ppb, int64_t noise_ns, int64_t bound_ns)
{
	struct correlation correlation;
	struct random random = { 3 };
	int64_t worst_ns = 0;

	correlation_init(&correlation, HZ, NS_PER_S, 10000);
	for (int64_t i = 0; i < 2000; i++) {
		int64_t passed_ns = i * 2 * NS_PER_MS;

		CHECK(correlation_add(&correlation, true_ticks(passed_ns, ppb),
				      FIRST_NS + passed_ns + random_between(&random, -noise_ns, noise_ns)));
		if (i > 100) {
			/* What a second's interval is measured wrong by. */
			int64_t error_ns = correlation_ns_of(&correlation, (int64_t)(true_ticks(NS_PER_S, ppb) - FIRST_TICKS)) -
					   NS_PER_S;

			error_ns = error_ns < 0 ? -error_ns : error_ns;
			worst_ns = error_ns > worst_ns ? error_ns : worst_ns;
		}
	}
	CHECK_INT(correlation.restarts, 0);
	CHECK_INT(correlation.count, CORRELATION_POINTS);
	CHECK_THAT(worst_ns <= bound_ns, "rate off by %" PRId64 " ppb at %" PRId64 " ppb", worst_ns, ppb);
	CHECK_THAT(noise_ns == 0 || worst_ns > bound_ns / 20, "the readings' errors have to show: %" PRId64, worst_ns);
}

static void test_age(void)
{
	struct correlation correlation;

	correlation_init(&correlation, HZ, NS_PER_S, 1000);
	for (int64_t i = 0; i < 50; i++)
		correlation_add(&correlation, true_ticks(i * 100 * NS_PER_MS, 0), FIRST_NS + i * 100 * NS_PER_MS);
	CHECK_INT(correlation.count, 11);
}

static void test_step(void)
{
	struct correlation correlation;
	const int64_t step_ns = 30000;

	correlation_init(&correlation, HZ, NS_PER_S, 20000);
	for (int64_t i = 0; i < 100; i++)
		correlation_add(&correlation, true_ticks(i * NS_PER_MS, 0), FIRST_NS + i * NS_PER_MS);
	/* What a slew of 500 ppm makes of a millisecond is none. */
	CHECK(correlation_add(&correlation, true_ticks(100 * NS_PER_MS, 0), FIRST_NS + 100 * NS_PER_MS + 500));
	CHECK(!correlation_add(&correlation, true_ticks(101 * NS_PER_MS, 0), FIRST_NS + 101 * NS_PER_MS + step_ns));
	CHECK_INT(correlation.restarts, 1);
	CHECK_INT(correlation.count, 1);
	CHECK_INT(correlation_ns_at(&correlation, true_ticks(102 * NS_PER_MS, 0)), FIRST_NS + 102 * NS_PER_MS + step_ns);
	/* A clock that went back, and a counter that did. */
	CHECK(!correlation_add(&correlation, true_ticks(103 * NS_PER_MS, 0), FIRST_NS));
	CHECK(!correlation_add(&correlation, true_ticks(50 * NS_PER_MS, 0), FIRST_NS + NS_PER_MS));
	CHECK_INT(correlation.restarts, 3);
}

static void test_threshold(void)
{
	uint64_t brackets[100];

	for (size_t i = 0; i < 100; i++)
		brackets[i] = (i * 37) % 100 + 1; /* 1..100, mixed */
	CHECK_INT(read_filter_threshold(brackets, 100, 25), 25);
	CHECK_INT(read_filter_threshold(brackets, 100, 100), 100);
	CHECK_INT(read_filter_threshold(brackets, 100, 1), 1);
	brackets[0] = 7;
	CHECK_INT(read_filter_threshold(brackets, 1, 25), 7);
	CHECK_INT(read_filter_middle(UINT64_MAX - 3, 6), 1);
}

int main(void)
{
	test_scale();
	test_nominal_rate_at_first();
	test_rate(0, 0, 2); /* a reading is a whole number of ns */
	test_rate(40000, 0, 2);
	test_rate(-150000, 0, 2);
	test_rate(12345, 500, 4000); /* ppb; readings of 252 ms, each +-500 ns */
	test_age();
	test_step();
	test_threshold();
	return check_result();
}
