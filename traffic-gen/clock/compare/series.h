/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A series of unlimited length in fixed memory: samples are gathered into intervals (number, mean, extremes); when the
 * table is full each two neighbours become one and the interval doubles. An interval without a sample has no row. Pure.
 */
#ifndef BW_CLOCK_SERIES_H
#define BW_CLOCK_SERIES_H

#include <stddef.h>
#include <stdint.h>

enum { SERIES_ROWS_MAX = 8192 };

struct series_row {
	int64_t index;      /* the interval begins at start_tai_ns + index * interval_ns */
	uint64_t count;
	double sum_ns;      /* of the values less base_ns */
	int64_t min_ns, max_ns;
};

struct series {
	int64_t start_tai_ns;
	int64_t interval_ns;
	int64_t base_ns;  /* the first value: sums stay small and exact */
	int64_t row_end_tai_ns; /* end of the last row's interval */
	size_t count;
	struct series_row rows[SERIES_ROWS_MAX];
};

/** Begin anew; interval_ns > 0. */
void series_init(struct series *series, int64_t interval_ns);
/** Add a sample; the first one sets the start. One from before the last row (a clock went back) is added to that row. */
void series_add(struct series *series, int64_t time_tai_ns, int64_t value_ns);
/** Begin of a row's interval. */
int64_t series_row_time_tai_ns(const struct series *series, const struct series_row *row);
int64_t series_row_mean_ns(const struct series *series, const struct series_row *row);

#endif
