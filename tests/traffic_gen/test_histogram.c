/* SPDX-License-Identifier: Apache-2.0 */
/** The histogram against sorting: random values of many magnitudes and both signs. */
#include "base/histogram.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "random.h"

#define VALUES 20000

static int compare_values(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* A value of random magnitude: as many small ones as large ones, a third of them negative. */
static int64_t random_value(struct random *random, int bits_max)
{
	int64_t magnitude = (int64_t)(random_bits(random) >> (64 - random_between(random, 1, bits_max)));

	return random_between(random, 0, 2) == 0 ? -magnitude : magnitude;
}

/* What a histogram says, against all values in ascending order. */
static void check_against_sorted(const struct histogram *histogram, const int64_t *sorted, size_t count)
{
	static const uint32_t PPM[] = { 0, 1, 1000, 100000, 250000, 500000, 900000, 990000, 999000, 999999, 1000000 };
	long double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < count; i++)
		sum += sorted[i];
	mean = sum / count;
	for (size_t i = 0; i < count; i++)
		squares += (sorted[i] - mean) * (sorted[i] - mean);
	CHECK_INT(histogram_count(histogram), count);
	CHECK_INT(histogram_min_ns(histogram), sorted[0]);
	CHECK_INT(histogram_max_ns(histogram), sorted[count - 1]);
	CHECK(fabsl(histogram_mean_ns(histogram) - mean) <= fabsl(mean) * 1e-14L);
	CHECK(fabsl(histogram_stddev_ns(histogram) - sqrtl(squares / (count - 1))) <= sqrtl(squares / (count - 1)) * 1e-9L);
	for (size_t i = 0; i < sizeof(PPM) / sizeof(PPM[0]); i++) {
		size_t rank = (size_t)ceill((long double)PPM[i] * count / 1000000);
		int64_t truth = sorted[rank ? rank - 1 : 0], found;

		CHECK_INT(histogram_percentile(histogram, PPM[i], &found), 0);
		CHECK_THAT(found >= truth && (long double)(found - truth) <= 0.001L * llabs(truth),
			   "p%u ppm is %" PRId64 ", truth %" PRId64, PPM[i], found, truth);
	}
}

/* Every value lies in exactly one bucket, in a narrow one, and buckets ascend without overlap. */
static void check_buckets(const struct histogram *histogram, const int64_t *sorted, size_t count)
{
	struct histogram_cursor cursor = { 0 };
	struct histogram_bucket bucket;
	int64_t above_ns = INT64_MIN;
	size_t seen = 0;

	while (histogram_next(histogram, &cursor, &bucket)) {
		CHECK(bucket.count > 0 && bucket.low_ns >= above_ns);
		above_ns = bucket.low_ns + bucket.width_ns;
		for (uint32_t i = 0; i < bucket.count && seen < count; i++, seen++)
			CHECK_THAT(sorted[seen] >= bucket.low_ns && sorted[seen] < above_ns &&
				   (bucket.width_ns == 1 || bucket.width_ns * 1000 < llabs(sorted[seen])),
				   "%" PRId64 " in a bucket at %" PRId64 " of width %" PRId64, sorted[seen], bucket.low_ns,
				   bucket.width_ns);
	}
	CHECK_INT(seen, count);
	CHECK(!histogram_next(histogram, &cursor, &bucket));
}

static void check_random(uint64_t seed)
{
	static int64_t values[VALUES];
	struct random random = { seed };
	struct histogram *whole = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	struct histogram *parts[2] = { histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS),
				       histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS) };
	size_t count = (size_t)random_between(&random, 2, VALUES);

	for (size_t i = 0; i < count; i++) {
		values[i] = random_value(&random, 30);
		CHECK(histogram_record(whole, values[i]));
		CHECK(histogram_record(parts[random_between(&random, 0, 1)], values[i]));
	}
	qsort(values, count, sizeof(*values), compare_values);
	check_against_sorted(whole, values, count);
	check_buckets(whole, values, count);
	CHECK_INT(histogram_overflow(whole), 0);
	CHECK_INT(histogram_merge(parts[0], parts[1]), 0);
	check_against_sorted(parts[0], values, count);
	check_buckets(parts[0], values, count);
	histogram_destroy(whole);
	histogram_destroy(parts[0]);
	histogram_destroy(parts[1]);
}

static void check_range(void)
{
	struct histogram *histogram = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	int64_t value;

	CHECK(histogram_size_bytes(histogram) <= 200000);
	CHECK_INT(histogram_percentile(histogram, 500000, &value), -ENODATA);
	CHECK(histogram_record(histogram, HISTOGRAM_LOWEST_NS));
	CHECK(histogram_record(histogram, HISTOGRAM_HIGHEST_NS));
	CHECK_INT(histogram_percentile(histogram, 1000001, &value), -EINVAL);
	CHECK(!histogram_record(histogram, HISTOGRAM_LOWEST_NS - 1));
	CHECK(!histogram_record(histogram, HISTOGRAM_HIGHEST_NS + 1));
	CHECK(!histogram_record(histogram, INT64_MIN));
	CHECK(!histogram_record(histogram, INT64_MAX));
	CHECK_INT(histogram_count(histogram), 6);
	CHECK_INT(histogram_overflow(histogram), 4);
	CHECK_INT(histogram_min_ns(histogram), INT64_MIN);
	CHECK_INT(histogram_max_ns(histogram), INT64_MAX);
	/* INT64_MIN, lowest - 1, lowest, highest, highest + 1, INT64_MAX: ranks 1 and 2 are below the range. */
	histogram_percentile(histogram, 333000, &value);
	CHECK_INT(value, HISTOGRAM_LOWEST_NS - 1);
	histogram_percentile(histogram, 500000, &value);
	CHECK(value >= HISTOGRAM_LOWEST_NS && (value - HISTOGRAM_LOWEST_NS) * 1000 < -HISTOGRAM_LOWEST_NS);
	histogram_percentile(histogram, 700000, &value);
	CHECK_INT(value, INT64_MAX);
	CHECK(fabs(histogram_mean_ns(histogram) - ((double)HISTOGRAM_HIGHEST_NS + HISTOGRAM_LOWEST_NS) / 3) < 1);
	histogram_reset(histogram);
	CHECK_INT(histogram_count(histogram), 0);
	CHECK_INT(histogram_overflow(histogram), 0);
	CHECK(histogram_mean_ns(histogram) == 0 && histogram_stddev_ns(histogram) == 0);
	histogram_destroy(histogram);
}

/* An int64 sum would have overflowed, and a sum of squares would have lost every digit of the deviation. */
static void check_far_values(void)
{
	struct histogram *histogram = histogram_create(-1000, 1000), *wider = histogram_create(-1000, 4000);

	for (int i = 0; i < 1000; i++)
		histogram_record(histogram, INT64_C(1790000000000000000) + i % 2);
	CHECK(histogram_mean_ns(histogram) == 1790000000000000000.0);
	CHECK(histogram_stddev_ns(histogram) < 200);
	histogram_reset(histogram);
	for (int i = 0; i < 1000; i++)
		histogram_record(histogram, -INT64_C(9000000000000000000));
	CHECK(histogram_mean_ns(histogram) == -9000000000000000000.0);
	CHECK(histogram_stddev_ns(histogram) == 0);
	CHECK_INT(histogram_merge(wider, histogram), -EINVAL);
	CHECK_INT(histogram_count(wider), 0);
	histogram_destroy(histogram);
	histogram_destroy(wider);
	CHECK(!histogram_create(1, 2) && errno == EINVAL);
	CHECK(!histogram_create(-1, -1) && errno == EINVAL);
	CHECK(!histogram_create(0, INT64_MAX) && errno == EINVAL);
	/* The least range still holds 0. */
	histogram = histogram_create(0, 0);
	CHECK(histogram_record(histogram, 0));
	CHECK(!histogram_record(histogram, -1));
	histogram_destroy(histogram);
}

/* A bucket that is full says so instead of wrapping: a histogram merged into itself doubles. */
static void check_crowded(void)
{
	struct histogram *histogram = histogram_create(0, 1000);
	struct histogram_cursor cursor = { 0 };
	struct histogram_bucket bucket;

	histogram_record(histogram, 7);
	for (int i = 0; i < 33; i++)
		CHECK_INT(histogram_merge(histogram, histogram), 0);
	CHECK(histogram_next(histogram, &cursor, &bucket) && bucket.count == UINT32_MAX);
	CHECK_INT(histogram_count(histogram), INT64_C(1) << 33);
	CHECK_INT(histogram_overflow(histogram), (INT64_C(1) << 33) - UINT32_MAX);
	CHECK(!histogram_record(histogram, 7));
	CHECK(histogram_mean_ns(histogram) == 7);
	histogram_destroy(histogram);
}

/* Batches far from 0: sums of whole numbers, multiplied out. */
static void test_record_all_far(int64_t around)
{
	struct histogram *one = histogram_create(0, 1000), *all = histogram_create(0, 1000);
	struct random random = { 4 };
	int64_t values[512];

	for (int batch = 0; batch < 20; batch++) {
		for (int i = 0; i < 512; i++) {
			values[i] = around + random_between(&random, -1000000, 1000000);
			histogram_record(one, values[i]);
		}
		histogram_record_all(all, values, 512);
	}
	CHECK(histogram_mean_ns(all) == histogram_mean_ns(one));
	CHECK_INT(histogram_min_ns(all), histogram_min_ns(one));
	CHECK_INT(histogram_max_ns(all), histogram_max_ns(one));
	CHECK_INT(histogram_overflow(all), histogram_overflow(one));
	histogram_destroy(one);
	histogram_destroy(all);
}

/* Many at once are the same as one after the other, whatever the lengths of the batches. */
static void test_record_all(void)
{
	struct histogram *one = histogram_create(-100000, 100000), *all = histogram_create(-100000, 100000);
	struct histogram_cursor one_cursor = { 0 }, all_cursor = { 0 };
	struct histogram_bucket one_bucket, all_bucket;
	struct random random = { 21 };
	int64_t values[300];

	histogram_record_all(all, values, 0);
	CHECK_INT(histogram_count(all), 0);
	for (int batch = 0; batch < 200; batch++) {
		int count = (int)random_between(&random, 1, 300);

		for (int i = 0; i < count; i++) {
			values[i] = random_between(&random, -30000, 120000);
			if (random_bits(&random) % 1000 == 0)
				values[i] = random_between(&random, -INT64_C(1000000000000), INT64_C(1000000000000));
			histogram_record(one, values[i]);
		}
		histogram_record_all(all, values, count);
	}
	CHECK_INT(histogram_count(all), histogram_count(one));
	CHECK_INT(histogram_overflow(all), histogram_overflow(one));
	CHECK_INT(histogram_min_ns(all), histogram_min_ns(one));
	CHECK_INT(histogram_max_ns(all), histogram_max_ns(one));
	CHECK(histogram_mean_ns(all) == histogram_mean_ns(one));
	CHECK(fabs(histogram_stddev_ns(all) / histogram_stddev_ns(one) - 1) < 1e-9);
	while (histogram_next(one, &one_cursor, &one_bucket)) {
		CHECK(histogram_next(all, &all_cursor, &all_bucket));
		CHECK_INT(all_bucket.low_ns, one_bucket.low_ns);
		CHECK_INT(all_bucket.count, one_bucket.count);
	}
	CHECK(!histogram_next(all, &all_cursor, &all_bucket));
	/* Around the ends of the numbers nothing overflows. */
	values[0] = INT64_MAX;
	values[1] = INT64_MIN;
	histogram_record_all(all, values, 2);
	CHECK_INT(histogram_min_ns(all), INT64_MIN);
	CHECK_INT(histogram_max_ns(all), INT64_MAX);
	histogram_destroy(one);
	histogram_destroy(all);
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 30; seed++)
		check_random(seed);
	check_range();
	check_far_values();
	check_crowded();
	test_record_all();
	test_record_all_far(INT64_C(1800000000000000123));
	test_record_all_far(-INT64_C(1800000000000000123));
	test_record_all_far(INT64_C(5000000000));
	return check_result();
}
