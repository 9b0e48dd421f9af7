/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the known truth: the same for all, without jumps, at rates as they are drawn. */
#include <string.h>

#include "check.h"
#include "truth.h"

enum { HZ = 1000000000, STEP = HZ / TRUTH_STEPS_PER_S };

static const struct truth_start START = { .seed = 7, .walk_ppb_per_sqrt_s = 100, .hz = HZ, .ticks = 5, .utc_ns = INT64_C(1700000000000000000) };

static void test_same_for_who_looks_often_and_who_looks_late(void)
{
	static struct truth often, late;

	truth_init(&often, &START);
	for (uint64_t ticks = START.ticks; ticks < START.ticks + 60ULL * HZ; ticks += STEP / 3)
		truth_at(&often, ticks);
	truth_init(&late, &START);
	for (uint64_t ago = 0; ago < 9ULL * HZ; ago += STEP / 7)
		CHECK_INT(truth_at(&often, START.ticks + 60ULL * HZ - ago), truth_at(&late, START.ticks + 60ULL * HZ - ago));
}

static void test_steps_join(void)
{
	static struct truth truth;

	truth_init(&truth, &START);
	CHECK_INT(truth_at(&truth, START.ticks), START.utc_ns);
	for (uint64_t end = START.ticks + STEP; end < START.ticks + 30ULL * HZ; end += STEP) {
		int64_t across_ns = truth_at(&truth, end) - truth_at(&truth, end - 1);

		CHECK(across_ns >= 0 && across_ns <= 2);
	}
}

static void test_rate_walks_as_it_is_said(void)
{
	static struct truth truth;
	struct truth_start start = START;
	double sum_ppb2 = 0;
	int seeds = 400;

	for (start.seed = 0; start.seed < (uint64_t)seeds; start.seed++) {
		double first_ppb, walked_ppb;

		truth_init(&truth, &start);
		first_ppb = truth.rate_ppb;
		CHECK(fabs(first_ppb) <= 50000);
		truth_at(&truth, start.ticks + 4ULL * HZ);
		walked_ppb = truth.rate_ppb - first_ppb;
		sum_ppb2 += walked_ppb * walked_ppb;
	}
	/* 100 ppb a root second: 200 ppb in four seconds; of 400 the scatter is 3.5 %. */
	CHECK(fabs(sqrt(sum_ppb2 / seeds) - 200) < 30);
}

static void test_text_carries_all(void)
{
	struct truth_start read;

	CHECK(truth_start_parse("7:0.3:1000000000:5:1700000000000000000", &read));
	CHECK(read.seed == 7 && read.walk_ppb_per_sqrt_s == 0.3 && read.hz == HZ && read.ticks == 5 && read.utc_ns == START.utc_ns);
	CHECK(!truth_start_parse("7:0.3:0:5:0", &read));
	CHECK(!truth_start_parse("7:0.3", &read));
}

int main(void)
{
	test_same_for_who_looks_often_and_who_looks_late();
	test_steps_join();
	test_rate_walks_as_it_is_said();
	test_text_carries_all();
	return check_result();
}
