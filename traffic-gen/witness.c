/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb witness: one pinned real-time thread a CPU wakes up at fixed intervals; where it wakes up late, that CPU stood
 * still, or something of a higher priority held it. What the hypervisor says that it stole stands beside it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "options.h"
#include "port.h"
#include "stall.h"
#include "summary.h"
#include "verbs.h"
#include "version.h"

#define TOOL "bw-traffic witness"
#define NS_PER_MS INT64_C(1000000)
#define TICK_NS INT64_C(50000000)

enum { PRIORITY_DEFAULT = 90, THRESHOLD_DEFAULT_US = 2000, PERIOD_DEFAULT_US = 500, TAI_UTC_DEFAULT_S = 37, WINDOWS_MAX = 65536 };

struct watcher {
	const struct witness *witness;
	struct stall_log log;
	struct port_thread *thread;
	bool steal_known;
	int64_t steal_before_ns, steal_ns;
};

struct witness {
	struct port_tai tai;
	int64_t priority;
	int64_t period_ns;
	int64_t begin_monotonic_ns;
	int64_t end_monotonic_ns;
	int64_t elapsed_ns;
	atomic_bool stop;
	bool complete;
	int lock_error; /* errno: memory is not locked; 0: it is */
	int watcher_count;
	struct watcher *watchers;
};

static void watch(void *argument)
{
	struct watcher *watcher = argument;
	const struct witness *witness = watcher->witness;
	int64_t deadline_ns = stall_next_deadline_ns(witness->begin_monotonic_ns, witness->period_ns,
						     port_clock_now_ns(PORT_CLOCK_MONOTONIC));

	while (deadline_ns < witness->end_monotonic_ns && !atomic_load(&witness->stop) && !port_stop_requested()) {
		int64_t now_ns;

		/* A signal may end the sleep: then there is no late wake-up to be told. */
		if (port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, deadline_ns))
			continue;
		now_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		stall_log_take(&watcher->log, now_ns - deadline_ns, port_tai_now_ns(&witness->tai));
		deadline_ns = stall_next_deadline_ns(deadline_ns, witness->period_ns, now_ns);
	}
}

static int create_watchers(struct witness *witness, const struct option_list *cpus, int64_t threshold_us)
{
	int count = cpus->count ? cpus->count : port_cpu_count();

	witness->watchers = calloc((size_t)count, sizeof(*witness->watchers));
	if (!witness->watchers)
		return -ENOMEM;
	for (int i = 0; i < count; i++) {
		struct watcher *watcher = &witness->watchers[i];
		int cpu = cpus->count ? cpus->values[i] : port_cpu_at(i);
		int err = stall_log_init(&watcher->log, cpu, threshold_us * 1000, (size_t)(WINDOWS_MAX / count));

		if (err)
			return err;
		watcher->witness = witness;
		witness->watcher_count++;
	}
	return 0;
}

/* Start a watcher on its CPU. Return 0, -ENODEV when it cannot be pinned there, or -errno. */
static int start_watcher(const struct witness *witness, struct watcher *watcher)
{
	char name[16];
	int err;

	snprintf(name, sizeof(name), "witness-%d", watcher->log.cpu);
	watcher->steal_known = port_cpu_steal_ns(watcher->log.cpu, &watcher->steal_before_ns) == 0;
	err = port_thread_start(name, (int)witness->priority, watcher->log.cpu, watch, watcher, &watcher->thread);
	if (!err && port_thread_scheduling(watcher->thread)->cpu != watcher->log.cpu)
		err = -ENODEV;
	if (err)
		fprintf(stderr, TOOL ": CPU %d cannot be watched: %s\n", watcher->log.cpu, strerror(-err));
	return err;
}

/* Start all threads and wait for the end of the time. Return 0 or -errno. */
static int run_watchers(struct witness *witness)
{
	int err = 0;

	for (int i = 0; i < witness->watcher_count && !err; i++)
		err = start_watcher(witness, &witness->watchers[i]);
	if (err)
		atomic_store(&witness->stop, true);
	while (!err && !port_stop_requested() && port_clock_now_ns(PORT_CLOCK_MONOTONIC) < witness->end_monotonic_ns)
		port_sleep_ns(TICK_NS);
	witness->complete = witness->end_monotonic_ns == INT64_MAX || !port_stop_requested();
	return err;
}

static void print_ready(struct json *json, const struct witness *witness)
{
	json_object_open(json, NULL);
	json_string(json, "type", "ready");
	json_string(json, "tool", TOOL);
	json_int(json, "cpus", witness->watcher_count);
	json_int(json, "tai_utc_s", witness->tai.tai_utc_s);
	json_object_close(json);
	json_line_end(json);
}

static void print_cpu(struct json *json, struct watcher *watcher)
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
	json_object_close(json);
}

/* Put the windows of all CPUs together, in order of time. Return how long any CPU stood still, or -ENOMEM. */
static int64_t merge_windows(const struct witness *witness, struct stall_window **windows, size_t *count)
{
	int64_t dropped_ns = 0;

	*count = 0;
	*windows = malloc(WINDOWS_MAX * sizeof(**windows));
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

static int print_result(struct json *json, const struct witness *witness, const struct port_scheduling *scheduling)
{
	struct stall_window *windows;
	uint64_t dropped = 0;
	size_t count;
	int64_t stalled_ns = merge_windows(witness, &windows, &count);

	if (stalled_ns < 0)
		return (int)stalled_ns;
	json_object_open(json, NULL);
	json_string(json, "type", "result");
	json_string(json, "tool", TOOL);
	json_string(json, "version", BW_VERSION);
	json_bool(json, "complete", witness->complete);
	json_int(json, "elapsed_ns", witness->elapsed_ns);
	json_array_open(json, "cpus");
	for (int i = 0; i < witness->watcher_count; i++) {
		print_cpu(json, &witness->watchers[i]);
		dropped += witness->watchers[i].log.dropped;
	}
	json_array_close(json);
	json_int(json, "stalled_ns", stalled_ns);
	json_double(json, "stalled_fraction", witness->elapsed_ns ? (double)stalled_ns / (double)witness->elapsed_ns : 0);
	print_windows(json, windows, count);
	json_uint(json, "windows_dropped", dropped);
	summary_scheduling(json, scheduling);
	json_object_close(json);
	free(windows);
	return json_line_end(json);
}

/* What the threads were given; the first one that was refused something speaks for all. */
static struct port_scheduling join_watchers(struct witness *witness)
{
	struct port_scheduling worst = { .cpu = PORT_CPU_ANY };

	for (int i = 0; i < witness->watcher_count; i++) {
		struct port_thread *thread = witness->watchers[i].thread;

		if (!thread)
			continue;
		if (i == 0 || (!worst.note[0] && port_thread_scheduling(thread)->note[0]))
			worst = *port_thread_scheduling(thread);
		port_thread_join(thread);
	}
	worst.cpu = PORT_CPU_ANY; /* each its own: see cpus */
	if (witness->lock_error)
		summary_add_note(&worst, "memory is not locked", witness->lock_error);
	return worst;
}

static int run_witness(struct witness *witness, const struct option_list *cpus, int64_t threshold_us, int64_t duration_ms)
{
	struct port_scheduling scheduling;
	struct json json;
	int err = create_watchers(witness, cpus, threshold_us);

	if (err) {
		fprintf(stderr, TOOL ": %s\n", strerror(-err));
		goto out;
	}
	witness->lock_error = -port_memory_lock();
	json_init(&json, stdout);
	print_ready(&json, witness);
	witness->begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	witness->end_monotonic_ns = duration_ms ? witness->begin_monotonic_ns + duration_ms * NS_PER_MS : INT64_MAX;
	err = run_watchers(witness);
	scheduling = join_watchers(witness);
	witness->elapsed_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) - witness->begin_monotonic_ns;
	if (!err)
		err = print_result(&json, witness, &scheduling);
out:
	for (int i = 0; i < witness->watcher_count; i++)
		stall_log_release(&witness->watchers[i].log);
	free(witness->watchers);
	if (err)
		return EXIT_CAPABILITY;
	return witness->complete ? EXIT_DONE : EXIT_INVALID;
}

int verb_witness(int argc, char **argv)
{
	struct witness witness = { .priority = PRIORITY_DEFAULT };
	struct option_list cpus = { .count = 0 };
	int64_t duration_ms = 0, threshold_us = THRESHOLD_DEFAULT_US, tai_utc_s = TAI_UTC_DEFAULT_S;
	int64_t period_us = PERIOD_DEFAULT_US;
	const struct option options[] = {
		{ .name = "cpu", .kind = OPTION_LIST, .target = &cpus, .min = 0, .max = 1023, .argument = "N[,N...]",
		  .help = "CPUs to watch (default: all)" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &duration_ms, .min = 0, .max = INT64_C(604800000),
		  .argument = "N", .help = "how long (default 0: until SIGTERM)" },
		{ .name = "threshold-us", .kind = OPTION_INT, .target = &threshold_us, .min = 1, .max = 10000000,
		  .argument = "N", .help = "a wake-up later than this is a stall (default 2000)" },
		{ .name = "period-us", .kind = OPTION_INT, .target = &period_us, .min = 50, .max = 1000000,
		  .argument = "N", .help = "time between wake-ups (default 500)" },
		{ .name = "priority", .kind = OPTION_INT, .target = &witness.priority, .min = 0, .max = 99,
		  .argument = "N", .help = "SCHED_FIFO priority (default 90); 0: do not ask" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &tai_utc_s, .min = 0, .max = 1000,
		  .argument = "N", .help = "TAI - UTC where the kernel does not know it (default 37)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "[--cpu N[,N...]] [--duration-ms N] [--threshold-us N] [options]",
		.about = "Record when this machine stood still: one real-time thread a CPU wakes up at fixed intervals.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL);

	if (parsed < 0)
		return options_exit_code(parsed);
	witness.period_ns = period_us * 1000;
	port_tai_init(&witness.tai, (int)tai_utc_s);
	port_stop_install();
	return run_witness(&witness, &cpus, threshold_us, duration_ms);
}
