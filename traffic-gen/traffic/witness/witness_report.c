/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/witness/witness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"

void witness_print_ready(struct json *json, const struct witness *witness)
{
	answer_begin(json, "ready", WITNESS_TOOL);
	json_int(json, "cpus", witness->watcher_count);
	json_int(json, "tai_utc_s", witness->tai.tai_utc_s);
	answer_end(json);
}

/* What nobody wanted of a CPU, and the share of the time that somebody wanted. */
static void print_utilisation(struct json *json, const struct watcher *watcher, int64_t elapsed_ns)
{
	double busy;

	if (!watcher->awake_known || elapsed_ns <= 0) {
		json_null(json, "idle_ns");
		json_null(json, "utilisation");
		return;
	}
	busy = 1 - (double)watcher->awake.idle_ns / (double)elapsed_ns;
	json_int(json, "idle_ns", watcher->awake.idle_ns);
	json_double(json, "utilisation", fmin(fmax(busy, 0), 1));
}

static void print_cpu(struct json *json, const struct watcher *watcher, int64_t elapsed_ns)
{
	int64_t steal_ns;

	json_object_open(json, NULL);
	json_int(json, "cpu", watcher->log.cpu);
	json_uint(json, "samples", watcher->log.samples);
	json_uint(json, "stalls", watcher->log.stalls);
	json_int(json, "stalled_ns", watcher->log.stalled_ns);
	json_int(json, "max_ns", watcher->log.max_ns);
	if (watcher->steal_known && port_cpu_steal_ns(watcher->log.cpu, &steal_ns) == 0)
		json_int(json, "steal_ns", steal_ns - watcher->steal_before_ns);
	else
		json_null(json, "steal_ns");
	print_utilisation(json, watcher, elapsed_ns);
	json_object_close(json);
}

static void print_threads(struct json *json, const struct thread_times *times)
{
	json_array_open(json, "threads");
	for (int i = 0; i < times->count; i++) {
		json_object_open(json, NULL);
		json_int(json, "tid", times->tids[i]);
		json_int(json, "ran_ns", times->ran_ns[i]);
		json_bool(json, "lost", times->lost[i]);
		json_object_close(json);
	}
	json_array_close(json);
}

/* Put the windows of all CPUs together, in order of time. Return how long any CPU stalled, or -ENOMEM. */
static int64_t merge_windows(const struct witness *witness, struct stall_window **windows, size_t *count)
{
	int64_t dropped_ns = 0;

	*count = 0;
	*windows = malloc(WITNESS_WINDOWS_MAX * sizeof(**windows));
	if (!*windows)
		return -ENOMEM;
	for (int i = 0; i < witness->watcher_count; i++) {
		const struct stall_log *log = &witness->watchers[i].log;

		memcpy(*windows + *count, log->windows, log->window_count * sizeof(**windows));
		*count += log->window_count;
		dropped_ns += log->dropped_ns;
	}
	/* Windows without a place in time count in full. */
	return stall_union_ns(*windows, *count) + dropped_ns;
}

static void print_windows(struct json *json, const struct stall_window *windows, size_t count)
{
	json_array_open(json, "windows");
	for (size_t i = 0; i < count; i++) {
		json_array_open(json, NULL);
		json_int(json, NULL, windows[i].start_tai_ns);
		json_int(json, NULL, windows[i].end_tai_ns);
		json_int(json, NULL, windows[i].cpu);
		json_array_close(json);
	}
	json_array_close(json);
}

/* Who had the CPU, window by window: what the target's processes ran, and what nobody claims; null where a reading failed. */
static void print_shares(struct json *json, const struct witness *witness, const struct stall_window *windows, size_t count)
{
	bool target_lost = false, unclaimed_lost = false;

	for (int i = 0; i < witness->watcher_count; i++) {
		target_lost = target_lost || witness->watchers[i].shares.target_lost;
		unclaimed_lost = unclaimed_lost || witness->watchers[i].shares.unclaimed_lost || !witness->watchers[i].awake_known;
	}
	if (witness->target && target_lost) {
		json_null(json, "target_ran_ns");
	} else if (witness->target) {
		json_array_open(json, "target_ran_ns");
		for (size_t i = 0; i < count; i++)
			json_int(json, NULL, windows[i].shares.target_ran_ns);
		json_array_close(json);
	}
	if (witness->options->awake && unclaimed_lost) {
		json_null(json, "unclaimed_ns");
	} else if (witness->options->awake) {
		json_array_open(json, "unclaimed_ns");
		for (size_t i = 0; i < count; i++)
			json_int(json, NULL, windows[i].shares.unclaimed_ns);
		json_array_close(json);
	}
}

int witness_print_result(struct json *json, const struct witness *witness, const struct port_scheduling *scheduling)
{
	struct stall_window *windows;
	uint64_t dropped = 0, series_dropped = 0;
	size_t count;
	int64_t stalled_ns = merge_windows(witness, &windows, &count);

	if (stalled_ns < 0)
		return (int)stalled_ns;
	answer_result(json, WITNESS_TOOL);
	json_bool(json, "complete", witness->complete);
	json_int(json, "elapsed_ns", witness->elapsed_ns);
	json_int(json, "period_ns", witness->period_ns);
	json_int(json, "threshold_ns", witness->options->threshold_us * 1000);
	json_array_open(json, "cpus");
	for (int i = 0; i < witness->watcher_count; i++) {
		print_cpu(json, &witness->watchers[i], witness->elapsed_ns);
		dropped += witness->watchers[i].log.dropped;
		series_dropped += witness->series ? witness->series[i].dropped : 0;
	}
	json_array_close(json);
	print_threads(json, &witness->times);
	json_int(json, "stalled_ns", stalled_ns);
	json_double(json, "stalled_fraction", witness->elapsed_ns ? (double)stalled_ns / (double)witness->elapsed_ns : 0);
	print_windows(json, windows, count);
	print_shares(json, witness, windows, count);
	json_uint(json, "windows_dropped", dropped);
	if (witness->series)
		json_uint(json, "series_dropped", series_dropped);
	else
		json_null(json, "series_dropped");
	summary_scheduling(json, scheduling);
	json_object_close(json);
	free(windows);
	return json_line_end(json);
}
