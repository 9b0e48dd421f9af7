/* SPDX-License-Identifier: Apache-2.0 */
#include "clock/compare/series.h"

#include <math.h>

void series_init(struct series *series, int64_t interval_ns)
{
	series->interval_ns = interval_ns;
	series->start_tai_ns = 0;
	series->base_ns = 0;
	series->row_end_tai_ns = 0;
	series->count = 0;
}

static void merge(struct series_row *into, const struct series_row *from)
{
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	if (from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
}

static void set_row_end(struct series *series)
{
	const struct series_row *last = &series->rows[series->count - 1];

	series->row_end_tai_ns = series->start_tai_ns + (last->index + 1) * series->interval_ns;
}

static void halve(struct series *series)
{
	size_t kept = 0;

	for (size_t i = 0; i < series->count; i++) {
		struct series_row row = series->rows[i];

		row.index >>= 1;
		if (kept && series->rows[kept - 1].index == row.index)
			merge(&series->rows[kept - 1], &row);
		else
			series->rows[kept++] = row;
	}
	series->count = kept;
	series->interval_ns *= 2;
	set_row_end(series);
}

static void append(struct series *series, int64_t time_tai_ns, int64_t value_ns)
{
	if (series->count == 0) {
		series->start_tai_ns = time_tai_ns;
		series->base_ns = value_ns;
	}
	/* Rows without a gap between are halved to one half; with gaps it may take several times. */
	while (series->count == SERIES_ROWS_MAX)
		halve(series);
	series->rows[series->count++] = (struct series_row){
		.index = (time_tai_ns - series->start_tai_ns) / series->interval_ns,
		.count = 1,
		.sum_ns = (double)(value_ns - series->base_ns),
		.min_ns = value_ns,
		.max_ns = value_ns,
	};
	set_row_end(series);
}

void series_add(struct series *series, int64_t time_tai_ns, int64_t value_ns)
{
	struct series_row *last;

	if (series->count && time_tai_ns >= series->row_end_tai_ns && series->count == SERIES_ROWS_MAX)
		halve(series); /* then it may belong to the last row */
	if (series->count == 0 || time_tai_ns >= series->row_end_tai_ns) {
		append(series, time_tai_ns, value_ns);
		return;
	}
	last = &series->rows[series->count - 1];
	last->count++;
	last->sum_ns += (double)(value_ns - series->base_ns);
	if (value_ns < last->min_ns)
		last->min_ns = value_ns;
	if (value_ns > last->max_ns)
		last->max_ns = value_ns;
}

int64_t series_row_time_tai_ns(const struct series *series, const struct series_row *row)
{
	return series->start_tai_ns + row->index * series->interval_ns;
}

int64_t series_row_mean_ns(const struct series *series, const struct series_row *row)
{
	return series->base_ns + llround(row->sum_ns / (double)row->count);
}
