/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb compare: one clock against another, sample by sample. offset = device - reference: positive, the device is
 * ahead. The measuring thread (compare_loop.c) does nothing else; this one prints progress and the result.
 */
#include "clock/compare/compare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/time_units.h"
#include "clock/clock_verbs.h"
#include "config/options.h"

#define TICK_NS INT64_C(50000000)
#define DEFAULT_DURATION_NS (10 * NS_PER_S)
#define WINDOW_HIGHEST_NS ((INT64_C(1) << 36) - 1)
#define OFFSET_HIGHEST_NS ((INT64_C(1) << 36) - 1) /* 68 s: the difference of TAI and UTC is inside */

enum { FILTER_DEFAULT_NS = 1000 };

static const char *const read_names[] = { "sequential", "bracketed", "filtered" };
static const char *const phc_names[] = { "precise", "extended", "basic", "auto", "gettime" };
enum { PHC_AUTO = 3, PHC_GETTIME = 4, PHC_NAMES = 5 };

struct arguments {
	const char *device, *reference, *read, *phc_read;
	int64_t pause_max_us, duration_ms, series_interval_ms, step_threshold_us, gap_ms, tai_utc_s, cpu, priority;
};

/* Find a word in a list. Return its index, or -EINVAL with a line on stderr. */
static int choose(const char *option, const char *word, const char *const *words, int count)
{
	for (int i = 0; i < count; i++) {
		if (strcmp(words[i], word) == 0)
			return i;
	}
	fprintf(stderr, COMPARE_TOOL ": --%s: unknown \"%s\"; allowed:", option, word);
	for (int i = 0; i < count; i++)
		fprintf(stderr, " %s", words[i]);
	fputc('\n', stderr);
	return -EINVAL;
}

static bool is_system_clock(const struct source *source)
{
	return strcmp(source->kind->name, "realtime") == 0 || strcmp(source->kind->name, "tai") == 0;
}

/* Choose how the pair is read. Return 0 or an exit code. */
static int choose_phc_read(struct compare *compare, int wanted)
{
	bool device_is_phc = compare->device.phc != NULL, reference_is_phc = compare->reference.phc != NULL;
	const struct source *other = device_is_phc ? &compare->reference : &compare->device;
	struct port_phc *phc = device_is_phc ? compare->device.phc : compare->reference.phc;
	struct port_phc_cross cross;
	int err = -ENOTSUP;

	compare->phc = device_is_phc || reference_is_phc ? COMPARE_PHC_GETTIME : COMPARE_PHC_NONE;
	if (wanted == PHC_GETTIME && compare->phc == COMPARE_PHC_GETTIME)
		return 0;
	if (device_is_phc == reference_is_phc || !is_system_clock(other) || compare->options.read == COMPARE_SEQUENTIAL) {
		if (wanted == PHC_AUTO)
			return 0;
		fputs(COMPARE_TOOL ": --phc-read: only for a pair of phc and realtime or tai, read bracketed or filtered\n", stderr);
		return EXIT_BAD_INPUT;
	}
	for (int read = wanted == PHC_AUTO ? PORT_PHC_PRECISE : wanted; read <= PORT_PHC_BASIC && err == -ENOTSUP; read++) {
		compare->phc_read = (enum port_phc_read)read;
		err = port_phc_cross(phc, compare->phc_read, &cross);
		if (wanted != PHC_AUTO)
			break;
	}
	if (err) {
		fprintf(stderr, COMPARE_TOOL ": --phc-read: %s: %s\n", phc_names[wanted],
			err == -ENOTSUP ? "this PHC or kernel does not offer it" : strerror(-err));
		return EXIT_CAPABILITY;
	}
	compare->phc = COMPARE_PHC_CROSS;
	compare->device_is_phc = device_is_phc;
	compare->realtime_add_ns = other->tai.tai_utc_s * NS_PER_S;
	return 0;
}

static int open_clock(struct source *source, const char *option, const char *text, int64_t tai_utc_s)
{
	char error[2 * SOURCE_ERROR_BYTES];
	int err;

	if (!text) {
		fprintf(stderr, COMPARE_TOOL ": --%s is missing (see --help)\n", option);
		return EXIT_BAD_INPUT;
	}
	err = source_open(source, text, (int)tai_utc_s, error, sizeof(error));
	if (!err)
		return 0;
	fprintf(stderr, COMPARE_TOOL ": --%s: %s\n", option, error);
	return source_exit_code(err);
}

/* Fill in the options and open the clocks. Return 0 or an exit code. */
static int prepare(struct compare *compare, const struct arguments *arguments)
{
	int read = choose("read", arguments->read, read_names, 3);
	int phc_read = choose("phc-read", arguments->phc_read, phc_names, PHC_NAMES);
	int code;

	if (read < 0 || phc_read < 0)
		return EXIT_BAD_INPUT;
	compare->options.read = (enum compare_read)read;
	compare->options.pause_max_ns = arguments->pause_max_us * 1000;
	compare->options.duration_ns = arguments->duration_ms * NS_PER_MS;
	if (!compare->options.iterations && !compare->options.duration_ns)
		compare->options.duration_ns = DEFAULT_DURATION_NS;
	compare->options.step_threshold_ns = arguments->step_threshold_us * 1000;
	compare->options.gap_ns = arguments->gap_ms * NS_PER_MS;
	compare->pauses.state = (uint64_t)port_clock_now_ns(PORT_CLOCK_REALTIME);
	series_init(&compare->series, arguments->series_interval_ms * NS_PER_MS);
	jumps_init(&compare->jumps, compare->options.step_threshold_ns, compare->options.gap_ns);
	code = open_clock(&compare->device, "device", arguments->device, arguments->tai_utc_s);
	if (!code)
		code = open_clock(&compare->reference, "reference", arguments->reference, arguments->tai_utc_s);
	if (!code)
		code = choose_phc_read(compare, phc_read);
	if (code)
		return code;
	compare->offset = histogram_create(-OFFSET_HIGHEST_NS, OFFSET_HIGHEST_NS);
	compare->window = histogram_create(HISTOGRAM_LOWEST_NS, WINDOW_HIGHEST_NS);
	compare->bounds.interval.size = histogram_create(0, OFFSET_HIGHEST_NS);
	compare->bounds.u.size = histogram_create(0, OFFSET_HIGHEST_NS);
	if (compare->offset && compare->window && compare->bounds.interval.size && compare->bounds.u.size)
		return 0;
	fputs(COMPARE_TOOL ": out of memory\n", stderr);
	return EXIT_CAPABILITY;
}

static void print_ready(struct json *json, const struct compare *compare)
{
	answer_begin(json, "ready", COMPARE_TOOL);
	json_string(json, "device", compare->device.text);
	json_string(json, "reference", compare->reference.text);
	json_int(json, "tai_utc_s", compare->device.tai.tai_utc_s);
	answer_end(json);
}

static void print_progress(struct json *json, const struct compare *compare, int64_t elapsed_ns)
{
	answer_begin(json, "progress", COMPARE_TOOL);
	json_int(json, "elapsed_ms", elapsed_ns / NS_PER_MS);
	json_uint(json, "iterations", tally_get(&compare->iterations));
	answer_end(json);
}

static void run_loop(void *argument)
{
	compare_run(argument);
}

/* Measure in a thread of its own. Return 0 or -errno. */
static int measure(struct json *json, struct compare *compare, const struct arguments *arguments,
		   struct port_scheduling *scheduling)
{
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	int64_t next_monotonic_ns = begin_monotonic_ns + NS_PER_S;
	struct port_thread *thread;
	int err = port_thread_start("compare", (int)arguments->priority, (int)arguments->cpu, run_loop, compare, &thread);

	if (err) {
		fprintf(stderr, COMPARE_TOOL ": %s\n", strerror(-err));
		return err;
	}
	while (!tally_get(&compare->finished)) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

		if (now_monotonic_ns >= next_monotonic_ns) {
			print_progress(json, compare, now_monotonic_ns - begin_monotonic_ns);
			next_monotonic_ns = now_monotonic_ns + NS_PER_S;
		}
		port_sleep_ns(TICK_NS);
	}
	*scheduling = *port_thread_scheduling(thread);
	port_thread_join(thread);
	return 0;
}

static void judge(struct compare *compare)
{
	char reason[SOURCE_ERROR_BYTES], why[SOURCE_ERROR_BYTES / 2];

	if (compare->read_error) {
		snprintf(reason, sizeof(reason), "the %s could not be read any more: %s",
			 compare->device_failed ? "device" : "reference",
			 compare->read_error == -ETIME ? "it is stale" : strerror(-compare->read_error));
		compare_invalid(compare, reason);
	}
	if (source_end(&compare->device, why, sizeof(why))) {
		snprintf(reason, sizeof(reason), "device: %s", why);
		compare_invalid(compare, reason);
	}
	if (source_end(&compare->reference, why, sizeof(why))) {
		snprintf(reason, sizeof(reason), "reference: %s", why);
		compare_invalid(compare, reason);
	}
	if (!compare->reason_count && histogram_count(compare->offset) == 0)
		compare_invalid(compare, compare->discarded ? "every sample was discarded: --filter-ns is too small" : "no sample");
}

/* Calibrate, measure, answer. Return an exit code. */
static int run(struct compare *compare, const struct arguments *arguments)
{
	struct port_scheduling scheduling = { .cpu = PORT_CPU_ANY };
	char why[SOURCE_ERROR_BYTES];
	struct json json;

	json_init(&json, stdout);
	compare->rss_start_bytes = port_rss_bytes();
	if (source_begin(&compare->device, why, sizeof(why)) || source_begin(&compare->reference, why, sizeof(why))) {
		compare_invalid(compare, why);
	} else {
		print_ready(&json, compare);
		if (measure(&json, compare, arguments, &scheduling))
			return EXIT_CAPABILITY;
		judge(compare);
	}
	if (compare_report(&json, compare, &scheduling))
		return EXIT_CAPABILITY;
	return compare->reason_count || !compare->complete ? EXIT_INVALID : EXIT_DONE;
}

int verb_compare(int argc, char **argv)
{
	struct arguments arguments = {
		.read = "bracketed", .phc_read = "auto", .pause_max_us = 1000, .series_interval_ms = 100,
		.step_threshold_us = 100, .gap_ms = 1000, .tai_utc_s = TAI_UTC_DEFAULT_S, .cpu = PORT_CPU_ANY,
	};
	struct compare *compare = calloc(1, sizeof(*compare));
	const struct option options[] = {
		{ .name = "device", .kind = OPTION_TEXT, .target = &arguments.device, .argument = "CLOCK",
		  .help = "the clock under test" },
		{ .name = "reference", .kind = OPTION_TEXT, .target = &arguments.reference, .argument = "CLOCK",
		  .help = "the clock that it is judged by" },
		{ .name = "read", .kind = OPTION_TEXT, .target = &arguments.read, .argument = "HOW",
		  .help = "sequential, bracketed (default) or filtered" },
		{ .name = "filter-ns", .kind = OPTION_INT, .target = compare ? &compare->options.filter_ns : NULL, .min = 1,
		  .max = NS_PER_S, .argument = "N", .help = "filtered: discard wider windows (default 1000)" },
		{ .name = "iterations", .kind = OPTION_INT, .target = compare ? &compare->options.iterations : NULL, .min = 1,
		  .max = INT64_C(100000000000), .argument = "N", .help = "attempts at most" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &arguments.duration_ms, .min = 1,
		  .max = INT64_C(604800000), .argument = "N", .help = "time at most (10000 when --iterations is not given either)" },
		{ .name = "pause-max-us", .kind = OPTION_INT, .target = &arguments.pause_max_us, .min = 0, .max = 4000000,
		  .argument = "N", .help = "longest random pause between attempts (default 1000)" },
		{ .name = "series-interval-ms", .kind = OPTION_INT, .target = &arguments.series_interval_ms, .min = 1,
		  .max = 3600000, .argument = "N", .help = "interval of the series at first (default 100)" },
		{ .name = "step-threshold-us", .kind = OPTION_INT, .target = &arguments.step_threshold_us, .min = 1,
		  .max = 1000000000, .argument = "N", .help = "smallest change of level that is a step (default 100)" },
		{ .name = "gap-ms", .kind = OPTION_INT, .target = &arguments.gap_ms, .min = 1, .max = 604800000,
		  .argument = "N", .help = "longer times without a sample are gaps (default 1000)" },
		{ .name = "phc-read", .kind = OPTION_TEXT, .target = &arguments.phc_read, .argument = "HOW",
		  .help = "auto (default), precise, extended, basic, gettime" },
		{ .name = "cpu", .kind = OPTION_INT, .target = &arguments.cpu, .min = 0, .max = 1023, .argument = "N",
		  .help = "CPU to measure on (default: any)" },
		{ .name = "priority", .kind = OPTION_INT, .target = &arguments.priority, .min = 0, .max = 99,
		  .argument = "N", .help = "SCHED_FIFO priority (default 0: do not ask)" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &arguments.tai_utc_s, .min = 0, .max = 1000,
		  .argument = "N", .help = "TAI - UTC where the kernel does not know it (default 37)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = COMPARE_TOOL,
		.usage = "--device CLOCK --reference CLOCK [--iterations N] [--duration-ms N] [options]",
		.about = "Measure one clock against another: offset = device - reference, positive: the device is ahead.\n"
			 "sequential reads the device, then the reference; bracketed the reference before and after the\n"
			 "device; filtered discards brackets that took too long. CLOCK: see bw-clock --help.\n",
		.options = options,
	};
	int parsed, code;

	if (!compare) {
		fputs(COMPARE_TOOL ": out of memory\n", stderr);
		return EXIT_CAPABILITY;
	}
	compare->options.filter_ns = FILTER_DEFAULT_NS;
	parsed = options_parse(&command, argc, argv, NULL);
	port_stop_install();
	code = parsed < 0 ? options_exit_code(parsed) : prepare(compare, &arguments);
	if (parsed >= 0 && !code)
		code = run(compare, &arguments);
	source_close(&compare->device);
	source_close(&compare->reference);
	histogram_destroy(compare->offset);
	histogram_destroy(compare->window);
	histogram_destroy(compare->bounds.interval.size);
	histogram_destroy(compare->bounds.u.size);
	free(compare);
	return code;
}
