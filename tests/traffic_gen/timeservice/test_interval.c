/* SPDX-License-Identifier: Apache-2.0 */
/* The interval by itself: how fast its ends move away from a line, to either side. */
#include "../check.h"
#include "timeservice/interval.h"

#define S INT64_C(1000000000)
enum { DRIFT_PPB = 100, LIMIT_PPB = 1000 };

/* Two exchanges, ten seconds apart: the rate in between lies within -50 and 70 ppb. */
static struct interval two_exchanges(void)
{
	struct interval interval;

	interval_init(&interval, DRIFT_PPB, LIMIT_PPB);
	CHECK(interval_take(&interval, 0, 0, 400, NULL));
	CHECK(interval_take(&interval, 10 * S, -100, 700, NULL));
	return interval;
}

static void test_growth_is_by_the_end_that_is_farther(void)
{
	struct interval interval = two_exchanges();

	CHECK_INT((int64_t)interval.rate_low_ppb, -50);
	CHECK_INT((int64_t)interval.rate_high_ppb, 70);
	CHECK_INT((int64_t)interval_growth_ppb(&interval, 0), DRIFT_PPB + 70);
	CHECK_INT((int64_t)interval_growth_ppb(&interval, 10), DRIFT_PPB + 60);
	CHECK_INT((int64_t)interval_growth_ppb(&interval, 30), DRIFT_PPB + 80);
	CHECK_INT((int64_t)interval_growth_ppb(&interval, 200), DRIFT_PPB + 250);
	CHECK_INT((int64_t)interval_growth_ppb(&interval, -200), DRIFT_PPB + 270);
	CHECK_INT((int64_t)interval_growth_most_ppb(&interval, -200), DRIFT_PPB + LIMIT_PPB + 200);
}

/* Ten seconds later the ends have moved by rate and drift: 1500 ns below, 1700 above; one ns beyond is a contradiction. */
static void test_where_the_offset_can_be(void)
{
	for (int above = 0; above < 2; above++) {
		const int64_t edge_ns = above ? 700 + 1700 : -100 - 1500, past_ns = above ? edge_ns + 1 : edge_ns - 1;
		struct interval interval = two_exchanges(), before = interval;
		double off_ns = 0;

		CHECK(!interval_take(&interval, 20 * S, past_ns, past_ns, &off_ns));
		CHECK_INT(off_ns > 0, above);
		CHECK(interval.now.low_ns == before.now.low_ns && interval.now.high_ns == before.now.high_ns);
		CHECK(interval_take(&interval, 20 * S, edge_ns, edge_ns, NULL));
	}
}

int main(void)
{
	test_growth_is_by_the_end_that_is_farther();
	test_where_the_offset_can_be();
	return check_result();
}
