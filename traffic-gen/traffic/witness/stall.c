/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/witness/stall.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stall_log_init(struct stall_log *log, int cpu, int64_t threshold_ns, size_t window_capacity)
{
	*log = (struct stall_log){ .cpu = cpu, .threshold_ns = threshold_ns, .window_capacity = window_capacity };
	log->windows = malloc(window_capacity * sizeof(*log->windows));
	if (!log->windows)
		return -ENOMEM;
	/* A first touch of a page must not look like a stall. */
	memset(log->windows, 0xff, window_capacity * sizeof(*log->windows));
	return 0;
}

void stall_log_release(struct stall_log *log)
{
	free(log->windows);
	log->windows = NULL;
}

void stall_log_take(struct stall_log *log, int64_t late_ns, int64_t now_tai_ns, struct stall_shares shares)
{
	log->samples++;
	if (late_ns > log->max_ns)
		log->max_ns = late_ns;
	if (late_ns <= log->threshold_ns)
		return;
	log->stalls++;
	log->stalled_ns += late_ns;
	if (log->window_count == log->window_capacity) {
		log->dropped++;
		log->dropped_ns += late_ns;
		return;
	}
	log->windows[log->window_count++] = (struct stall_window){
		.start_tai_ns = now_tai_ns - late_ns,
		.end_tai_ns = now_tai_ns,
		.shares = shares,
		.cpu = log->cpu,
	};
}

int64_t stall_next_deadline_monotonic_ns(int64_t deadline_monotonic_ns, int64_t period_ns, int64_t now_monotonic_ns)
{
	int64_t passed = now_monotonic_ns > deadline_monotonic_ns ?
				 (now_monotonic_ns - deadline_monotonic_ns) / period_ns :
				 0;

	return deadline_monotonic_ns + (passed + 1) * period_ns;
}

static int compare_windows(const void *left, const void *right)
{
	const struct stall_window *a = left, *b = right;

	if (a->start_tai_ns != b->start_tai_ns)
		return a->start_tai_ns < b->start_tai_ns ? -1 : 1;
	return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

int64_t stall_union_ns(struct stall_window *windows, size_t count)
{
	int64_t open_ns = 0, covered_to_tai_ns = INT64_MIN;

	qsort(windows, count, sizeof(*windows), compare_windows);
	for (size_t i = 0; i < count; i++) {
		int64_t from_tai_ns = windows[i].start_tai_ns > covered_to_tai_ns ? windows[i].start_tai_ns :
										    covered_to_tai_ns;

		if (windows[i].end_tai_ns <= from_tai_ns)
			continue;
		open_ns += windows[i].end_tai_ns - from_tai_ns;
		covered_to_tai_ns = windows[i].end_tai_ns;
	}
	return open_ns;
}
