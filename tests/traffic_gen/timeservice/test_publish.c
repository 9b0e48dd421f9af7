/* SPDX-License-Identifier: Apache-2.0 */
/** What is published: continuous where it is slewed, a new epoch where it is stepped, a bound that holds all the while. */
#include <math.h>
#include <stdlib.h>

#include "../check.h"
#include "base/time_units.h"
#include "timeservice/publish.h"

#define UTC_NS INT64_C(1795284915000000000)
#define ORIGIN_TICKS UINT64_C(0xffffffffff000000) /* wraps in the test */

static const uint64_t frequencies[] = { 1000000, 19200000, 62500000, 1000000000, 2299998000, UINT64_C(5123456789) };
static const struct publish_words synchronised = { .state = TIMEPAGE_SYNCHRONISED, .stratum = 2, .tai_utc_s = 37 };

static struct estimate_line estimate(int64_t at_local_ns, int64_t offset_ns, double rate_ppb, int64_t bound_ns)
{
	return (struct estimate_line){
		.valid = true,
		.at_local_ns = at_local_ns,
		.offset_ns = offset_ns,
		.rate_ppb = rate_ppb,
		.low_ns = bound_ns,
		.high_ns = bound_ns,
		.growth_ppb = 50,
		.scatter = { .offset_ns2 = 100, .rate_ns2_per_s2 = 4 },
	};
}

/* As timepage_publish does. */
static void settle(struct timepage_line *line)
{
	struct timepage_line first = *line;

	first.settled_ticks = line->base_ticks + (UINT64_C(1) << 62); /* the first segment alone */
	line->settled_utc_ns = timepage_utc_ns(&first, line->settled_ticks);
}

static void test_local(void)
{
	for (size_t i = 0; i < sizeof(frequencies) / sizeof(frequencies[0]); i++) {
		struct local_time local = { ORIGIN_TICKS, UTC_NS, frequencies[i] };
		int64_t tick_ns = NS_PER_S / (int64_t)frequencies[i] + 1;

		CHECK_INT(local_from_ticks(&local, ORIGIN_TICKS), UTC_NS);
		CHECK_INT(local_from_ticks(&local, ORIGIN_TICKS + frequencies[i] * 100), UTC_NS + 100 * NS_PER_S);
		CHECK_INT(local_from_ticks(&local, ORIGIN_TICKS - frequencies[i] * 100), UTC_NS - 100 * NS_PER_S);
		for (int64_t ns = -40 * NS_PER_S; ns < 400000 * NS_PER_S; ns += llabs(ns) / 2 + 12345678901) {
			int64_t again_ns = local_from_ticks(&local, local_to_ticks(&local, UTC_NS + ns));

			CHECK_THAT(llabs(again_ns - UTC_NS - ns) <= tick_ns, "%" PRId64 " comes back as %" PRId64, ns, again_ns - UTC_NS);
		}
	}
}

/* Published time at the end of the old line and at the beginning of the new one, and everywhere against the truth. */
static void test_slew(uint64_t hz, int64_t correction_ns)
{
	struct local_time local = { ORIGIN_TICKS, UTC_NS, hz };
	struct publish_settings settings = publish_default_settings();
	struct estimate_line first = estimate(UTC_NS, 0, 0, 1000), second;
	struct timepage_line last = { 0 }, next;
	uint64_t now_ticks = ORIGIN_TICKS + 30 * hz;
	int64_t tick_ns = NS_PER_S / (int64_t)hz + 2, before_ns = 0, found_ns;

	CHECK_INT(publish_line(&settings, &local, &first, ORIGIN_TICKS, NULL, &synchronised, &last), 0);
	settle(&last);
	CHECK_INT(timepage_line_check(&last), 0);
	CHECK_INT(last.base_utc_ns, UTC_NS);
	second = estimate(UTC_NS + 30 * NS_PER_S, correction_ns, 40000, 1000);
	found_ns = publish_line(&settings, &local, &second, now_ticks, &last, &synchronised, &next);
	settle(&next);
	CHECK_INT(timepage_line_check(&next), 0);
	CHECK_THAT(llabs(found_ns - correction_ns) <= tick_ns, "correction %" PRId64, found_ns);
	CHECK_INT(next.epoch, last.epoch);
	CHECK_INT(timepage_utc_ns(&next, now_ticks), timepage_utc_ns(&last, now_ticks));
	CHECK_THAT(fabs((double)next.mult / (double)next.settled_mult - 1) <= 500.1e-6, "slew of %.1f ppm",
		   ((double)next.mult / (double)next.settled_mult - 1) * 1e6);
	for (int quarter = 0; quarter < 240; quarter++) {
		double s = quarter / 4.0;
		uint64_t ticks = now_ticks + (uint64_t)(s * (double)hz);
		int64_t utc_ns = timepage_utc_ns(&next, ticks);
		int64_t local_ns = local_from_ticks(&local, ticks);
		int64_t true_ns = local_ns + estimate_offset_at(&second, local_ns), low_ns, high_ns;

		CHECK_THAT(utc_ns > before_ns, "backwards at %.2f s", s);
		timepage_interval_ns(&next, ticks, &low_ns, &high_ns);
		CHECK_THAT(utc_ns - low_ns <= true_ns && true_ns <= utc_ns + high_ns, "interval at %.2f s", s);
		CHECK_THAT(llabs(utc_ns - true_ns) <= timepage_u_ns(&next, ticks) + tick_ns, "U at %.2f s", s);
		CHECK_THAT(llabs(utc_ns - true_ns) <= timepage_bound_ns(&next, ticks), "at %.2f s: %" PRId64 " ns off", s, utc_ns - true_ns);
		before_ns = utc_ns;
		if (s > fabs((double)correction_ns) / 450e3 + 1.5)
			CHECK_THAT(llabs(utc_ns - true_ns) <= 3 * tick_ns, "not settled at %.2f s: %" PRId64, s, utc_ns - true_ns);
	}
}

static void test_step(void)
{
	struct local_time local = { ORIGIN_TICKS, UTC_NS, 1000000000 };
	struct publish_settings settings = publish_default_settings();
	struct estimate_line first = estimate(UTC_NS, 0, 0, 1000), second = estimate(UTC_NS, 3600 * NS_PER_S, 0, 1000);
	struct publish_words withdrawn = { .state = TIMEPAGE_UNSYNCHRONISED, .reason = TIMEPAGE_REASON_CONTRADICTION,
					   .now_ticks = ORIGIN_TICKS + 4000, .disrupted = true };
	struct timepage_line last, between, next;

	publish_line(&settings, &local, &first, ORIGIN_TICKS, NULL, &synchronised, &last);
	settle(&last);
	last.epoch = 7;
	publish_withdraw(&last, &withdrawn, &between);
	CHECK_INT(between.state, TIMEPAGE_UNSYNCHRONISED);
	CHECK_INT(between.base_utc_ns, last.base_utc_ns);
	CHECK(publish_continues(&between));
	CHECK_INT(publish_line(&settings, &local, &second, ORIGIN_TICKS + 5000, &between, &synchronised, &next), 3600 * NS_PER_S);
	CHECK_INT(next.epoch, 8);
	CHECK_INT(between.disruptions, 1);
	CHECK_INT(next.disruptions, 2);
	CHECK_INT(last.disrupted_ticks, 0);
	CHECK_INT(between.disrupted_ticks, ORIGIN_TICKS + 4000);
	CHECK_INT(next.disrupted_ticks, ORIGIN_TICKS + 5000);
	CHECK_INT(next.step_ns, 3600 * NS_PER_S);
	CHECK_INT(next.base_utc_ns, UTC_NS + 3600 * NS_PER_S + 5000);
	CHECK_INT(next.mult, next.settled_mult);
}

/* An announced leap second ends the time, a little before UTC can be there by the interval; who was heard after it says that none came. */
static void test_leap(int32_t leap, int64_t leap_utc_ns)
{
	const int64_t hour_ns = 3600 * NS_PER_S;
	struct local_time local = { ORIGIN_TICKS, UTC_NS, 1000000000 };
	struct publish_settings settings = publish_default_settings();
	struct publish_words words = synchronised;
	struct estimate_line line = estimate(leap_utc_ns - hour_ns, 0, 0, 1000);
	struct timepage_line next;
	int64_t early_ns;

	words.leap = leap;
	line.heard_local_ns = line.at_local_ns;
	publish_line(&settings, &local, &line, local_to_ticks(&local, line.at_local_ns), NULL, &words, &next);
	settle(&next);
	early_ns = leap_utc_ns - timepage_utc_ns(&next, next.usable_until_ticks);
	CHECK_INT(next.state, TIMEPAGE_SYNCHRONISED);
	CHECK_THAT(early_ns >= 1000 && early_ns < 2000 + 50 * 3600, "%" PRId64 " ns before it", early_ns);

	publish_line(&settings, &local, &line, local_to_ticks(&local, leap_utc_ns + NS_PER_S), NULL, &words, &next);
	CHECK_INT(next.state, TIMEPAGE_UNSYNCHRONISED);
	CHECK_INT(next.reason, TIMEPAGE_REASON_LEAP);
	line.heard_local_ns = leap_utc_ns + NS_PER_S;
	publish_line(&settings, &local, &line, local_to_ticks(&local, leap_utc_ns + NS_PER_S), NULL, &words, &next);
	CHECK_INT(next.state, TIMEPAGE_SYNCHRONISED);
}

/* The counter was stopped for so short a time that it is slewed: the line tells nothing of readings before. */
static void test_pause(void)
{
	struct local_time local = { ORIGIN_TICKS, UTC_NS, 1000000000 };
	struct publish_settings settings = publish_default_settings();
	struct estimate_line first = estimate(UTC_NS, 0, 0, 1000), second = estimate(UTC_NS, 5000000, 0, 1000);
	struct publish_words jumped = { .state = TIMEPAGE_UNSYNCHRONISED, .reason = TIMEPAGE_REASON_COUNTER_JUMPED,
					.now_ticks = ORIGIN_TICKS + 4000, .disrupted = true };
	struct publish_words starting = { .state = TIMEPAGE_UNSYNCHRONISED, .reason = TIMEPAGE_REASON_STARTING,
					  .now_ticks = ORIGIN_TICKS + 4500 };
	struct timepage_line last, between, next;

	publish_line(&settings, &local, &first, ORIGIN_TICKS, NULL, &synchronised, &last);
	settle(&last);
	publish_withdraw(&last, &jumped, &between);
	publish_withdraw(&between, &starting, &last);
	CHECK_INT(publish_line(&settings, &local, &second, ORIGIN_TICKS + 5000, &last, &synchronised, &next), 5000000);
	CHECK_INT(next.epoch, 0);
	CHECK_INT(next.disruptions, 1);
	CHECK_INT(next.disrupted_ticks, ORIGIN_TICKS + 4000);
	jumped.now_ticks += 100;
	jumped.disrupted = false; /* there was no time to withdraw */
	publish_withdraw(&last, &jumped, &between);
	CHECK_INT(between.disruptions, 1);
	CHECK_INT(between.disrupted_ticks, ORIGIN_TICKS + 4100);
}

static void test_end_of_use(void)
{
	struct local_time local = { ORIGIN_TICKS, UTC_NS, 1000000000 };
	struct publish_settings settings = publish_default_settings();
	struct estimate_line line = estimate(UTC_NS, 0, 0, 1000);
	struct timepage_line next;
	int64_t bound_ns;

	publish_line(&settings, &local, &line, ORIGIN_TICKS, NULL, &synchronised, &next);
	settle(&next);
	bound_ns = timepage_bound_ns(&next, next.usable_until_ticks);
	CHECK_THAT(llabs(bound_ns - settings.bound_max_ns) < 1000, "bound %" PRId64 " at the end", bound_ns);
	line.low_ns = settings.bound_max_ns;
	publish_line(&settings, &local, &line, ORIGIN_TICKS, NULL, &synchronised, &next);
	CHECK_INT(next.state, TIMEPAGE_UNSYNCHRONISED);
	CHECK_INT(next.reason, TIMEPAGE_REASON_BOUND);
	CHECK(!publish_continues(NULL));
	memset(&next, 0, sizeof(next));
	CHECK(!publish_continues(&next));
}

/* A service that ends: what it still tells, and what the next one goes on from. */
static void test_end(void)
{
	struct local_time local = { ORIGIN_TICKS, UTC_NS, 1000000000 };
	struct publish_settings settings = publish_default_settings();
	struct estimate_line line = estimate(UTC_NS, 0, 0, 1000);
	struct publish_words withdrawn = { .state = TIMEPAGE_UNSYNCHRONISED, .reason = TIMEPAGE_REASON_COUNTER_JUMPED };
	struct publish_words ended = { .state = TIMEPAGE_ENDED, .reason = TIMEPAGE_REASON_ENDED };
	struct timepage_line last, between, next;

	publish_line(&settings, &local, &line, ORIGIN_TICKS, NULL, &synchronised, &last);
	settle(&last);
	publish_withdraw(&last, &ended, &next);
	CHECK_INT(next.state, TIMEPAGE_ENDED);
	CHECK_INT(next.usable_until_ticks, last.usable_until_ticks);

	publish_withdraw(&last, &withdrawn, &between);
	publish_withdraw(&between, &ended, &next);
	CHECK_INT(next.state, TIMEPAGE_ENDED);
	CHECK_INT(timepage_usable_ticks(&next), 0);
	CHECK_INT(timepage_line_check(&next), 0);
	CHECK(publish_continues(&next)); /* a step is counted by the next service too */

	line.low_ns = 2 * TIMEPAGE_BOUND_MAX_NS; /* figures that readers would refuse in a line with a time */
	publish_line(&settings, &local, &line, ORIGIN_TICKS, NULL, &synchronised, &between);
	settle(&between);
	CHECK_INT(between.state, TIMEPAGE_UNSYNCHRONISED);
	publish_withdraw(&between, &ended, &next);
	CHECK_INT(timepage_usable_ticks(&next), 0);
	CHECK_INT(timepage_line_check(&next), 0);

	memset(&between, 0, sizeof(between)); /* no server has ever answered */
	publish_withdraw(&between, &ended, &next);
	CHECK_INT(timepage_usable_ticks(&next), 0);
	CHECK_INT(timepage_line_check(&next), 0);
}

int main(void)
{
	test_local();
	for (size_t i = 0; i < sizeof(frequencies) / sizeof(frequencies[0]); i++) {
		test_slew(frequencies[i], 0);
		test_slew(frequencies[i], 3000);
		test_slew(frequencies[i], -3000);
		test_slew(frequencies[i], 9000000);
		test_slew(frequencies[i], -9000000);
	}
	test_step();
	test_pause();
	test_leap(1, (UTC_NS / (86400 * NS_PER_S) + 1) * 86400 * NS_PER_S);
	test_leap(2, (UTC_NS / (86400 * NS_PER_S) + 1) * 86400 * NS_PER_S - NS_PER_S);
	test_end_of_use();
	test_end();
	return check_result();
}
