/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/json.h"
#include "clock/compare/compare.h"

static void print_series(struct json *json, const struct series *series)
{
	static const char *const columns[] = { "time_tai_ns", "n", "mean_ns", "min_ns", "max_ns" };

	json_object_open(json, "series");
	json_int(json, "interval_ns", series->interval_ns);
	json_array_open(json, "columns");
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		json_string(json, NULL, columns[i]);
	json_array_close(json);
	json_array_open(json, "rows");
	for (size_t i = 0; i < series->count; i++) {
		const struct series_row *row = &series->rows[i];

		json_array_open(json, NULL);
		json_int(json, NULL, series_row_time_tai_ns(series, row));
		json_uint(json, NULL, row->count);
		json_int(json, NULL, series_row_mean_ns(series, row));
		json_int(json, NULL, row->min_ns);
		json_int(json, NULL, row->max_ns);
		json_array_close(json);
	}
	json_array_close(json);
	json_object_close(json);
}

static void print_jumps(struct json *json, const struct jumps *jumps)
{
	uint64_t steps_dropped = jumps_dropped(jumps->step_count, JUMPS_STEPS_MAX);
	uint64_t gaps_dropped = jumps_dropped(jumps->gap_count, JUMPS_GAPS_MAX);

	json_array_open(json, "steps");
	for (uint64_t i = 0; i < jumps->step_count - steps_dropped; i++) {
		json_object_open(json, NULL);
		json_int(json, "time_tai_ns", jumps->steps[i].time_tai_ns);
		json_int(json, "step_ns", jumps->steps[i].step_ns);
		json_object_close(json);
	}
	json_array_close(json);
	json_uint(json, "steps_dropped", steps_dropped);
	json_array_open(json, "gaps");
	for (uint64_t i = 0; i < jumps->gap_count - gaps_dropped; i++) {
		json_object_open(json, NULL);
		json_int(json, "from_tai_ns", jumps->gaps[i].from_tai_ns);
		json_int(json, "to_tai_ns", jumps->gaps[i].to_tai_ns);
		json_object_close(json);
	}
	json_array_close(json);
	json_uint(json, "gaps_dropped", gaps_dropped);
}

static void print_how(struct json *json, const struct compare *compare)
{
	static const char *const reads[] = {
		[COMPARE_SEQUENTIAL] = "sequential", [COMPARE_BRACKETED] = "bracketed", [COMPARE_FILTERED] = "filtered",
	};
	static const char *const phc_reads[] = {
		[PORT_PHC_PRECISE] = "precise", [PORT_PHC_EXTENDED] = "extended", [PORT_PHC_BASIC] = "basic",
	};
	const struct compare_options *options = &compare->options;

	json_string(json, "read", reads[options->read]);
	if (options->read == COMPARE_FILTERED)
		json_int(json, "filter_ns", options->filter_ns);
	else
		json_null(json, "filter_ns");
	if (compare->phc == COMPARE_PHC_NONE)
		json_null(json, "phc_read");
	else
		json_string(json, "phc_read", compare->phc == COMPARE_PHC_CROSS ? phc_reads[compare->phc_read] : "gettime");
	json_int(json, "pause_max_ns", options->pause_max_ns);
	json_int(json, "step_threshold_ns", options->step_threshold_ns);
	json_int(json, "gap_ns", options->gap_ns);
}

/* Of a device that tells an interval and U with each of its readings. */
static void print_bounds(struct json *json, const struct compare *compare)
{
	const struct compare_bounds *bounds = &compare->bounds;

	if (!compare->device.kind->reading_error) {
		json_null(json, "device_bound");
		return;
	}
	json_object_open(json, "device_bound");
	json_uint(json, "bound_checked", bounds->checked);
	json_uint(json, "bound_missed", bounds->interval.missed);
	json_uint(json, "bound_missed_beyond_window", bounds->interval.missed_beyond_window);
	json_uint(json, "u_missed", bounds->u.missed);
	json_uint(json, "u_missed_beyond_window", bounds->u.missed_beyond_window);
	json_uint(json, "without_bound", bounds->without);
	summary_histogram(json, "bound", bounds->interval.size);
	summary_histogram(json, "u", bounds->u.size);
	json_object_close(json);
}

static void print_memory(struct json *json, const struct compare *compare)
{
	json_object_open(json, "memory");
	json_uint(json, "rss_start_bytes", compare->rss_start_bytes);
	json_uint(json, "rss_end_bytes", port_rss_bytes());
	json_object_close(json);
}

int compare_report(struct json *json, struct compare *compare, const struct port_scheduling *scheduling)
{
	int64_t bound_ns = source_bound_ns(&compare->reference);
	const char *reasons[COMPARE_REASONS_MAX];

	for (int i = 0; i < compare->reason_count; i++)
		reasons[i] = compare->reasons[i];
	answer_result(json, COMPARE_TOOL);
	answer_validity(json, compare->complete, reasons, (size_t)compare->reason_count);
	source_report(&compare->device, json, "device");
	source_report(&compare->reference, json, "reference");
	print_how(json, compare);
	json_uint(json, "iterations", tally_get(&compare->iterations));
	json_uint(json, "discarded", compare->discarded);
	json_int(json, "elapsed_ns", compare->elapsed_ns);
	json_int(json, "start_tai_ns", compare->start_tai_ns);
	json_int(json, "start_monotonic_ns", compare->start_monotonic_ns);
	summary_histogram(json, "offset", compare->offset);
	summary_histogram(json, "window", compare->window);
	print_series(json, &compare->series);
	print_jumps(json, &compare->jumps);
	if (bound_ns >= 0)
		json_int(json, "reference_bound_ns", bound_ns);
	else
		json_null(json, "reference_bound_ns");
	print_bounds(json, compare);
	print_memory(json, compare);
	summary_scheduling(json, scheduling);
	return answer_end(json);
}
