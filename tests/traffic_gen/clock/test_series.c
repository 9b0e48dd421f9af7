/* SPDX-License-Identifier: Apache-2.0 */
/* The decimated series and the random pauses of bw-clock, against sums over all samples. */
#include "base/pause.h"
#include "check.h"
#include "random.h"
#include "clock/compare/series.h"

#define START_NS INT64_C(1800000000000000000)

static struct series series;

static uint64_t total(void)
{
	uint64_t count = 0;

	for (size_t i = 0; i < series.count; i++)
		count += series.rows[i].count;
	return count;
}

/* Each row says what the samples of its interval say, however often the table was halved. */
static void test_rows_are_exact(int64_t samples, int64_t spacing_ns)
{
	struct random random = { 7 };
	int64_t time_tai_ns = START_NS;

	series_init(&series, 1000);
	for (int64_t i = 0; i < samples; i++) {
		series_add(&series, time_tai_ns, i);
		time_tai_ns += random_between(&random, 1, 2 * spacing_ns);
	}
	CHECK(series.count <= SERIES_ROWS_MAX);
	CHECK_INT(total(), samples);
	CHECK_INT(series.start_tai_ns, START_NS);
	/* The values count up: rows hold runs of them. */
	int64_t next = 0;

	for (size_t i = 0; i < series.count; i++) {
		const struct series_row *row = &series.rows[i];

		CHECK_INT(row->min_ns, next);
		CHECK_INT(row->max_ns, next + (int64_t)row->count - 1);
		/* Half a nanosecond is rounded away from zero. */
		CHECK_INT(series_row_mean_ns(&series, row), (row->min_ns + row->max_ns + 1) / 2);
		CHECK(i == 0 || row->index > series.rows[i - 1].index);
		next += (int64_t)row->count;
	}
}

static void test_memory_is_used(void)
{
	series_init(&series, 10);
	for (int64_t i = 0; i < SERIES_ROWS_MAX; i++)
		series_add(&series, START_NS + 10 * i, 5);
	CHECK_INT(series.count, SERIES_ROWS_MAX);
	CHECK_INT(series.interval_ns, 10);
	series_add(&series, START_NS + INT64_C(10) * SERIES_ROWS_MAX, 5);
	CHECK_INT(series.interval_ns, 20);
	CHECK_INT(series.count, SERIES_ROWS_MAX / 2 + 1);
	CHECK_INT(total(), SERIES_ROWS_MAX + 1);
}

static void test_gap_has_no_row(void)
{
	series_init(&series, 100);
	series_add(&series, START_NS, -40);
	series_add(&series, START_NS + 99, -60);
	series_add(&series, START_NS + 1000, 7);
	CHECK_INT(series.count, 2);
	CHECK_INT(series_row_time_tai_ns(&series, &series.rows[0]), START_NS);
	CHECK_INT(series_row_mean_ns(&series, &series.rows[0]), -50);
	CHECK_INT(series_row_time_tai_ns(&series, &series.rows[1]), START_NS + 1000);
	CHECK_INT(series.rows[1].index, 10);
	/* A clock that went back: the sample is kept, in the last row. */
	series_add(&series, START_NS + 50, 9);
	CHECK_INT(series.count, 2);
	CHECK_INT(series.rows[1].count, 2);
	CHECK_INT(series.rows[1].max_ns, 9);
}

static void test_sparse_samples(void)
{
	series_init(&series, 1);
	for (int64_t i = 0; i < INT64_C(3) * SERIES_ROWS_MAX; i++)
		series_add(&series, START_NS + i * 1000000007, i);
	CHECK(series.count <= SERIES_ROWS_MAX);
	CHECK_INT(total(), 3 * SERIES_ROWS_MAX);
}

static void test_pauses(void)
{
	struct pause_lengths lengths = { 1 };
	const int64_t max_ns = 1000000;
	int64_t thirds[3] = { 0 }, low = max_ns, high = 0;
	enum { PAUSES = 30000 };

	for (int i = 0; i < PAUSES; i++) {
		int64_t length_ns = pause_next_ns(&lengths, max_ns);

		CHECK(length_ns >= 0 && length_ns <= max_ns);
		thirds[length_ns * 3 / (max_ns + 1)]++;
		low = length_ns < low ? length_ns : low;
		high = length_ns > high ? length_ns : high;
	}
	for (int i = 0; i < 3; i++)
		CHECK_THAT(thirds[i] > PAUSES * 31 / 100 && thirds[i] < PAUSES * 36 / 100, "third %d: %" PRId64, i, thirds[i]);
	CHECK(low < max_ns / 100 && high > max_ns * 99 / 100);
	CHECK_INT(pause_next_ns(&lengths, 0), 0);
}

int main(void)
{
	test_rows_are_exact(1000, 500);
	test_rows_are_exact(300000, 500);
	test_rows_are_exact(300000, 40);
	test_memory_is_used();
	test_gap_has_no_row();
	test_sparse_samples();
	test_pauses();
	return check_result();
}
