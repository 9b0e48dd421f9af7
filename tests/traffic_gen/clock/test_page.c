/* SPDX-License-Identifier: Apache-2.0 */
/* The timecard's page: posting, checks of hostile content, calibration, and the bound of the line that is published. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "clock/card/calibration.h"
#include "check.h"
#include "clock/card/page.h"
#include "random.h"
#include "clock/card/sampler.h"

#define TAI_NS INT64_C(1800000000000000000)

static struct card_page page;

static struct card_line example(void)
{
	return (struct card_line){
		.unit = CARD_UNIT_TSC, .counter = 1000000, .tai_ns = TAI_NS, .ns_per_unit = 0.5, .bound_ns = 100,
		.bound_growth_ppb = 2000, .wander_ppb_per_s = 10000, .published = 1, .steps = 2, .tai_utc_s = 37, .source = "gm",
	};
}

static void test_posting(void)
{
	struct card_line line = example(), read = { .counter = 1 };

	memset(&page, 0, sizeof(page));
	CHECK_INT(card_posting_read(&page.host_line, &read), -ENODATA);
	CHECK_INT(read.counter, 1);
	card_posting_write(&page.host_line, &line);
	CHECK_INT(card_posting_read(&page.host_line, &read), 0);
	CHECK_INT(read.counter, line.counter);
	CHECK_INT(read.tai_ns, line.tai_ns);
	CHECK(read.ns_per_unit == line.ns_per_unit);
	CHECK_INT(read.bound_growth_ppb, line.bound_growth_ppb);
	CHECK_INT(read.wander_ppb_per_s, line.wander_ppb_per_s);
	CHECK_INT(read.steps, 2);
	CHECK_INT(read.tai_utc_s, 37);
	CHECK_TEXT(read.source, "gm");
	/* A writer that was killed while it wrote one copy: the other one is read, and the next writer fixes it. */
	line.counter++;
	atomic_store(&page.host_line.sequence, atomic_load(&page.host_line.sequence) + 1);
	memset(page.host_line.copies[0], 0xff, sizeof(page.host_line.copies[0]));
	CHECK_INT(card_posting_read(&page.host_line, &read), 0);
	CHECK_INT(read.counter, 1000000);
	card_posting_write(&page.host_line, &line);
	CHECK_INT(card_posting_read(&page.host_line, &read), 0);
	CHECK_INT(read.counter, 1000001);
	CHECK_INT(atomic_load(&page.host_line.sequence) & 1, 0);
}

/* Write one figure that cannot be, and read. */
static void check_refused(struct card_line line)
{
	struct card_line read;

	memset(&page, 0, sizeof(page));
	card_posting_write(&page.host_line, &line);
	CHECK_INT(card_posting_read(&page.host_line, &read), -EBADMSG);
}

static void test_hostile_figures(void)
{
	const double bad_rates[] = { 0, -1, 1e300, INFINITY, NAN, 0.01, 1001 };
	const int64_t bad_figures[] = { -1, INT64_MIN, INT64_MAX, 1000000001 };
	struct card_line line;

	for (size_t i = 0; i < sizeof(bad_rates) / sizeof(bad_rates[0]); i++) {
		line = example();
		line.ns_per_unit = bad_rates[i];
		check_refused(line);
	}
	for (size_t i = 0; i < sizeof(bad_figures) / sizeof(bad_figures[0]); i++) {
		line = example();
		line.bound_ns = bad_figures[i];
		check_refused(line);
		line = example();
		line.bound_growth_ppb = bad_figures[i];
		check_refused(line);
		line = example();
		line.wander_ppb_per_s = bad_figures[i];
		check_refused(line);
	}
	line = example();
	line.tai_ns = -5;
	check_refused(line);
	line.tai_ns = INT64_MAX;
	check_refused(line);
	line = example();
	line.unit = CARD_UNIT_NONE;
	check_refused(line);
	line = example();
	line.tai_utc_s = 1001;
	check_refused(line);
	line = example();
	memset(line.source, 'x', sizeof(line.source)); /* without an end */
	check_refused(line);
	memcpy(line.source, "a\"\n\x1b", 5);
	check_refused(line);
	memset(line.source, 0, sizeof(line.source));
	check_refused(line);
}

/* Pages of garbage: whatever is read is refused or lies in its limits. */
static void test_garbage(void)
{
	struct random random = { 11 };
	struct card_line read;
	int64_t tai_ns, bound_ns;

	for (int i = 0; i < 20000; i++) {
		for (int copy = 0; copy < 2; copy++) {
			for (int word = 0; word < CARD_LINE_WORDS; word++) {
				if (i % 4 == 0 || random_bits(&random) % 3 == 0)
					atomic_store(&page.host_line.copies[copy][word], random_bits(&random));
			}
		}
		atomic_store(&page.host_line.sequence, (uint32_t)random_bits(&random));
		if (card_posting_read(&page.host_line, &read))
			continue;
		CHECK(read.ns_per_unit > 0 && strlen(read.source) < CARD_SOURCE_BYTES);
		if (card_line_at(&read, random_bits(&random), &tai_ns, &bound_ns) == 0)
			CHECK(tai_ns > 0 && bound_ns > 0);
	}
}

static void test_age(void)
{
	struct card_line line = example();
	int64_t tai_ns = 0, bound_ns = 0;

	CHECK_INT(card_line_at(&line, line.counter + 2000, &tai_ns, &bound_ns), 0);
	CHECK_INT(tai_ns, TAI_NS + 1000);
	CHECK_INT(card_line_at(&line, line.counter + 2000000000, &tai_ns, &bound_ns), 0);
	CHECK_INT(tai_ns, TAI_NS + 1000000000);
	/* 100 + 1 of rounding + 2000 ppb and half of 10000 ppb/s over a second */
	CHECK_INT(bound_ns, 100 + 1 + 2000 + 5000);
	CHECK_INT(card_line_at(&line, line.counter + 2000000002, NULL, NULL), -ETIME);
	CHECK_INT(card_line_at(&line, line.counter - 100, &tai_ns, NULL), 0);
	CHECK_INT(tai_ns, TAI_NS - 50);
	CHECK_INT(card_line_at(&line, line.counter - 4000000, NULL, NULL), -EBADMSG);
	CHECK_INT(card_line_at(&line, line.counter + (UINT64_C(1) << 63), NULL, NULL), -EBADMSG);
	CHECK_INT(card_line_at(&line, line.counter + (UINT64_C(1) << 62), NULL, NULL), -ETIME);
}

/* Exchanges over paths of random length: the true offset is always within the bound. */
static void test_calibration(uint64_t true_offset, const struct counter_scale *scale)
{
	struct random random = { 5 };

	for (int trial = 0; trial < 2000; trial++) {
		struct calibration calibration = { 0 };
		/* True instants in units of the host, and readings that may be a resolution early. */
		int64_t distance;

		for (int i = 0; i < 5; i++) {
			uint64_t t1 = random_bits(&random) >> 8;
			uint64_t t2 = t1 + (uint64_t)random_exponential(&random, 300);
			uint64_t t3 = t2 + (uint64_t)random_exponential(&random, 300);
			uint64_t step = scale->resolution ? scale->resolution : 1;

			CHECK_INT(calibration_take(&calibration, t1 / step * step, t2 + true_offset, t3 / step * step,
						   scale->resolution), 0);
		}
		distance = (int64_t)(calibration.offset - true_offset);
		CHECK_THAT(llabs(distance) <= (int64_t)calibration.bound, "off by %" PRId64 ", bound %" PRIu64, distance,
			   calibration.bound);
		CHECK_INT(calibration.exchanges, 5);
	}
}

static void test_calibration_rules(void)
{
	struct calibration a = { 0 }, b = { 0 };

	CHECK_INT(calibration_take(&a, 1000, 5500, 2000, 0), 0);
	CHECK_INT(a.offset, 4000);
	CHECK_INT(a.bound, 500);
	CHECK_INT(calibration_take(&a, 2000, 9999, 4000, 0), 0); /* longer: not kept */
	CHECK_INT(a.offset, 4000);
	CHECK_INT(calibration_take(&a, 5000, 9000, 4999, 0), -EINVAL); /* backwards */
	CHECK_INT(a.refused, 1);
	CHECK_INT(a.exchanges, 2);
	b = a;
	b.offset += 1000;
	CHECK(!calibration_differs(&a, &b));
	b.offset++;
	CHECK(calibration_differs(&a, &b));
	CHECK(calibration_differs(&b, &a));
	b.offset = a.offset + (UINT64_C(1) << 63);
	CHECK(calibration_differs(&a, &b));
}

static void test_scales(void)
{
	struct counter_scale tsc = counter_scale_ticks(2300000000), arm = counter_scale_ns(62500000);
	struct counter_scale odd = counter_scale_ns(19200000);

	CHECK_INT(counter_scale_units(&tsc, 12345), 12345);
	CHECK_INT(counter_scale_units(&arm, 3), 48);
	CHECK_INT(arm.resolution, 16);
	CHECK_INT(counter_scale_units(&odd, 19200000), 1000000000);
	CHECK_INT(counter_scale_units(&odd, UINT64_C(19200000) * 86400 + 96), INT64_C(86400000005000));
	CHECK_INT(odd.resolution, 53);
	test_calibration(UINT64_C(0) - 123456, &tsc);
	test_calibration(UINT64_C(987654321987), &arm);
}

/* A clock of 37 ppm whose rate wanders by less than the allowance, read in noisy brackets: the line's bound holds. */
static void test_sampler(void)
{
	struct random random = { 9 };
	struct sampler sampler;
	double true_ns = (double)1e9, rate = 1 + 37e-6; /* of the clock, from an arbitrary origin */
	uint64_t counter = UINT64_C(1) << 40;
	const double units_per_ns = 2.3;
	int64_t widest_ns = 0;

	CHECK_INT(sampler_init(&sampler, 1 / units_per_ns * (1 + 3e-6)), 0); /* the nominal rate is measured, not exact */
	for (int burst = 0; burst < 500; burst++) {
		struct card_line line = { .unit = CARD_UNIT_TSC };

		for (int i = 0; i < 5; i++) {
			double before_ns = random_exponential(&random, 40) + 10, after_ns = random_exponential(&random, 40) + 10;
			uint64_t before = counter;

			counter += (uint64_t)((before_ns + after_ns) * units_per_ns);
			true_ns += (double)(counter - before) / units_per_ns * rate;
			CHECK_INT(sampler_take(&sampler, before, TAI_NS + (int64_t)(true_ns - after_ns * rate), counter, 0), 0);
		}
		CHECK_INT(sampler_line(&sampler, &line), 0);
		CHECK_INT(line.published, (uint64_t)burst + 1);
		/* On to the next burst, 20 ms later; there the old line is at its worst. */
		uint64_t pause = (uint64_t)(20e6 * units_per_ns);
		int64_t tai_ns, bound_ns, error_ns;

		counter += pause;
		true_ns += (double)pause / units_per_ns * rate;
		rate += (random_unit(&random) - 0.5) * 2 * 0.02 * 5e-6; /* up to 5 ppm a second */
		CHECK_INT(card_line_at(&line, counter, &tai_ns, &bound_ns), 0);
		error_ns = llabs(tai_ns - TAI_NS - (int64_t)true_ns);
		CHECK_THAT(error_ns <= bound_ns, "burst %d: off by %" PRId64 ", bound %" PRId64, burst, error_ns, bound_ns);
		if (burst > 50 && bound_ns > widest_ns)
			widest_ns = bound_ns;
	}
	CHECK_INT(sampler.steps, 0);
	CHECK_THAT(widest_ns < 500, "widest bound %" PRId64, widest_ns);
	sampler_release(&sampler);
}

static void test_sampler_step(void)
{
	struct sampler sampler;
	struct card_line line;
	uint64_t counter = 1000;

	CHECK_INT(sampler_init(&sampler, 1), 0);
	CHECK_INT(sampler_line(&sampler, &line), -ENODATA);
	CHECK_INT(sampler_take(&sampler, counter, TAI_NS, counter + 10, -1), -EINVAL);
	for (int i = 0; i < 20; i++, counter += 20000000) {
		sampler_take(&sampler, counter, TAI_NS + (int64_t)counter + (i < 10 ? 0 : 5000), counter + 100, 0);
		CHECK_INT(sampler_line(&sampler, &line), 0);
		CHECK_INT(line.steps, i < 10 ? 0 : 1);
	}
	sampler_release(&sampler);
}

int main(void)
{
	test_posting();
	test_hostile_figures();
	test_garbage();
	test_age();
	test_calibration_rules();
	test_scales();
	test_sampler();
	test_sampler_step();
	return check_result();
}
