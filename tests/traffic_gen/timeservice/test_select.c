/* SPDX-License-Identifier: Apache-2.0 */
/** Selection among servers: a minority, whatever it says, does not move the clock beyond the bound that is told. */
#include <math.h>
#include <stdlib.h>

#include "../check.h"
#include "../random.h"
#include "base/time_units.h"
#include "timeservice/select.h"

#define AT_LOCAL_NS (INT64_C(1000) * NS_PER_S)
#define TRUTH_NS INT64_C(1795284915000000000)

enum { WORLDS = 200000 };

static struct random source = { 1 };

static double uniform(double low, double high)
{
	return low + (high - low) * random_unit(&source);
}

static struct select_candidate server(double offset_ns, double bound_ns, double rate_ppb)
{
	return (struct select_candidate){
		.usable = true,
		.line = {
			.valid = true,
			.at_local_ns = AT_LOCAL_NS,
			.offset_ns = TRUTH_NS + llround(offset_ns),
			.rate_ppb = rate_ppb,
			.low_ns = llround(bound_ns),
			.high_ns = llround(bound_ns),
			.growth_ppb = 100,
			.scatter = { .offset_ns2 = bound_ns * bound_ns / 16, .rate_ns2_per_s2 = 25 },
		},
	};
}

static bool holds(const struct estimate_line *line)
{
	return line->offset_ns - line->low_ns <= TRUTH_NS && TRUTH_NS <= line->offset_ns + line->high_ns;
}

static void test_one_and_two(void)
{
	struct select_candidate servers[2] = { server(100, 1000, 10), server(5000, 1000, 10) };
	struct estimate_line line;

	CHECK_INT(select_line(servers, 0, AT_LOCAL_NS, &line), 0);
	CHECK(!line.valid);
	CHECK_INT(select_line(servers, 1, AT_LOCAL_NS, &line), 1);
	CHECK_INT(line.offset_ns, TRUTH_NS + 100);
	CHECK_THAT(line.low_ns >= 1000 && line.low_ns <= 1003 && line.high_ns >= 1000 && line.high_ns <= 1003, "interval -%" PRId64 " +%" PRId64,
		   line.low_ns, line.high_ns);
	CHECK_THAT(scatter_u_ns(&line.scatter, 0) > 499 && scatter_u_ns(&line.scatter, 0) < 501, "U %f", scatter_u_ns(&line.scatter, 0));
	CHECK_INT(servers[0].role, SELECT_BEST);
	CHECK_INT(select_line(servers, 2, AT_LOCAL_NS, &line), 0); /* they contradict each other */
	servers[1].line.offset_ns = TRUTH_NS + 1500;
	CHECK(select_line(servers, 2, AT_LOCAL_NS, &line) > 0);
	/* Both are right: the truth is where both say. */
	CHECK_THAT(line.offset_ns - line.low_ns >= TRUTH_NS + 495 && line.offset_ns + line.high_ns <= TRUTH_NS + 1105, "hull");
	CHECK_INT(line.growth_ppb, 100);
}

static void test_falseticker(void)
{
	struct select_candidate servers[3] = { server(100, 1000, 10), server(1e12, 100, 10), server(-200, 1000, 12) };
	struct estimate_line line;

	CHECK_INT(select_line(servers, 3, AT_LOCAL_NS, &line), 2);
	CHECK_INT(servers[1].role, SELECT_FALSETICKER);
	CHECK(holds(&line));
	CHECK(llabs(line.offset_ns - TRUTH_NS) <= 1300);
	servers[2].usable = false;
	CHECK_INT(select_line(servers, 3, AT_LOCAL_NS, &line), 0);
	CHECK_INT(servers[2].role, SELECT_UNUSED);
}

/*
 * Honest servers have the truth within their bounds. Liars, fewer than half, say what they like: far off, or just beside the truth,
 * with a bound of nothing. Whatever comes of it, the truth is within the bound, of the rate too.
 */
static void test_minority(void)
{
	int told = 0;

	for (int world = 0; world < WORLDS; world++) {
		int count = 1 + (int)uniform(0, 9), liars = (int)uniform(0, (count + 1) / 2.0);
		double true_rate_ppb = uniform(-50000, 50000);
		struct select_candidate servers[SELECT_MAX];
		struct estimate_line line;

		if (2 * liars >= count)
			continue;
		for (int i = 0; i < count; i++) {
			double bound_ns = exp(uniform(0, 12));

			servers[i] = server(uniform(-bound_ns, bound_ns) * 0.999, bound_ns + 1, true_rate_ppb + uniform(-99, 99));
			if (i >= liars)
				continue;
			servers[i].line.offset_ns = TRUTH_NS + llround(uniform(-1, 1) * exp(uniform(0, uniform(0, 1) < 0.5 ? 12 : 35)));
			servers[i].line.low_ns = llround(exp(uniform(0, 20)));
			servers[i].line.high_ns = llround(exp(uniform(0, 20)));
			servers[i].line.rate_ppb = uniform(0, 1) < 0.5 ? uniform(-1e6, 1e6) : true_rate_ppb + uniform(-300, 300);
			servers[i].line.growth_ppb = (int64_t)uniform(0, 200);
		}
		CHECK(select_line(servers, count, AT_LOCAL_NS, &line) > 0);
		told++;
		if (!holds(&line))
			CHECK_THAT(false, "%d servers, %d liars: %" PRId64 " ns off, interval -%" PRId64 " +%" PRId64, count, liars,
				   line.offset_ns - TRUTH_NS, line.low_ns, line.high_ns);
		if (fabs(line.rate_ppb - true_rate_ppb) > (double)line.growth_ppb + 1e-6)
			CHECK_THAT(false, "%d servers, %d liars: rate %.1f ppb off", count, liars, line.rate_ppb - true_rate_ppb);
	}
	CHECK_THAT(told > WORLDS / 2, "%d worlds", told);
}

/* A majority of liars does move it: the test above can fail. */
static void test_majority_lies(void)
{
	struct select_candidate servers[3] = { server(0, 1000, 10), server(1e9, 100, 10), server(1e9, 100, 10) };
	struct estimate_line line;

	CHECK(select_line(servers, 3, AT_LOCAL_NS, &line) > 0);
	CHECK(!holds(&line));
	CHECK_INT(servers[0].role, SELECT_FALSETICKER);
}

/* Memory as another function may have left it, where the next call's locals will be. */
static __attribute__((noinline)) void leave_no_numbers(void)
{
	volatile double left[4096];

	for (int i = 0; i < 4096; i++)
		left[i] = NAN;
	(void)left[0];
}

/* Whoever is not usable has said nothing: not even what was in that memory before. */
static void test_unusable(void)
{
	struct select_candidate servers[4] = { server(0, 1000, 10), server(0, 1000, 10), server(0, 1000, 10), server(0, 1000, 10) };
	struct estimate_line line;

	for (int i = 1; i < 4; i++)
		servers[i].usable = false;
	leave_no_numbers();
	CHECK_INT(select_line(servers, 4, AT_LOCAL_NS, &line), 1);
	CHECK(holds(&line));
	CHECK(fabs(line.rate_ppb - 10) < 1e-6);
	CHECK(isfinite(scatter_u_ns(&line.scatter, 0)));
}

int main(void)
{
	test_unusable();
	test_one_and_two();
	test_falseticker();
	test_minority();
	test_majority_lies();
	return check_result();
}
