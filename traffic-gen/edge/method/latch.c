/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb latch, Listing 1 of the paper: software reads its clock, makes an edge, reads its clock again; the middle (virtual
 * now) less the time at which the network card captured the edge.
 */
#include "edge/method/latch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/json.h"
#include "base/time_units.h"
#include "clock/card/ticks.h"
#include "config/options.h"
#include "edge/edge_verbs.h"
#include "port/port_clock.h"

#define TOOL "bw-edge latch"
#define TICK_NS INT64_C(50000000)

enum { FILTER_DEFAULT_PERCENT = 25, REASON_BYTES = 160 };

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void print_line(struct json *json, const struct latch *latch, const char *type)
{
	answer_begin(json, type, TOOL);
	json_uint(json, "count", tally_get(&latch->pairs));
	answer_end(json);
}

static bool print_validity(struct json *json, const struct latch *latch)
{
	const char *why = latch->error == -ENODATA ? "most batches came back incomplete" : strerror(-latch->error);
	char reason[REASON_BYTES] = "";

	if (latch->error)
		snprintf(reason, sizeof(reason), "%s: %s", latch->failed, why);
	else if (tally_get(&latch->pairs) == 0)
		snprintf(reason, sizeof(reason), "no edge was captured");
	return answer_valid_unless(json, latch->complete, reason[0] ? reason : NULL);
}

/* Return the tool's exit code. */
static int print_result(struct json *json, const struct latch *latch, const struct port_scheduling *scheduling)
{
	char key[24];
	bool valid;

	answer_result(json, TOOL);
	valid = print_validity(json, latch);
	json_string(json, "clock", latch->by_counter ? "rdtsc" : "gettime");
	json_string(json, "output", latch->output.text);
	json_string(json, "capture", latch->capture.text);
	json_int(json, "wanted", latch->count);
	json_uint(json, "count", tally_get(&latch->pairs));
	json_uint(json, "batches_lost", latch->batches_lost);
	summary_histogram(json, "delay", latch->delay);
	blocks_json(json, "blocks", &latch->blocks);
	json_object_open(json, "peak_to_peak_ns");
	for (size_t i = 0; i < latch->peak_count; i++) {
		snprintf(key, sizeof(key), "%llu", (unsigned long long)latch->peaks[i].count);
		json_int(json, key, latch->peaks[i].peak_to_peak_ns);
	}
	json_object_close(json);
	json_int(json, "window_max_ns", latch->window_max_ns);
	json_uint(json, "reads", latch->clock.reads);
	json_uint(json, "reads_discarded", latch->clock.discarded);
	if (latch->by_counter)
		json_double(json, "threshold_ns", (double)latch->clock.threshold * 1e9 / (double)latch->clock.hz);
	else
		json_null(json, "threshold_ns");
	json_uint(json, "correlation_restarts", latch->correlation.restarts);
	json_int(json, "tai_utc_s", latch->tai.tai_utc_s);
	summary_scheduling(json, scheduling);
	if (answer_end(json))
		return EXIT_CAPABILITY;
	return latch->complete && valid ? EXIT_DONE : EXIT_INVALID;
}

static int measure(struct latch *latch, int priority, int cpu)
{
	struct port_scheduling scheduling;
	int64_t next_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + NS_PER_S;
	struct port_thread *thread;
	struct json json;
	int err;

	json_init(&json, stdout);
	print_line(&json, latch, "ready");
	err = port_thread_start("latch", priority, cpu, latch_thread, latch, &thread);
	if (err) {
		fprintf(stderr, TOOL ": %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	while (!atomic_load(&latch->finished)) {
		if (port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= next_monotonic_ns) {
			print_line(&json, latch, "progress");
			next_monotonic_ns += NS_PER_S;
		}
		port_sleep_ns(TICK_NS);
	}
	scheduling = *port_thread_scheduling(thread);
	port_thread_join(thread);
	if (latch->error == -ENOTSUP) {
		fprintf(stderr, TOOL ": %s: the pin or its driver cannot do that\n", latch->failed);
		return EXIT_CAPABILITY;
	}
	return print_result(&json, latch, &scheduling);
}

/* ---- what is needed ---------------------------------------------------------------------------------------------- */

static int open_pin(struct edge_pin *pin, const char *option, const char *text, int tai_utc_s)
{
	char error[2 * EDGE_PIN_ERROR_BYTES];
	int err;

	if (!text) {
		fprintf(stderr, TOOL ": --%s is missing (see --help)\n", option);
		return EXIT_BAD_INPUT;
	}
	err = edge_pin_open(pin, text, tai_utc_s, error, sizeof(error));
	if (!err)
		return 0;
	fprintf(stderr, TOOL ": --%s: %s\n", option, error);
	return edge_pin_exit_code(err);
}

static int open_all(struct latch *latch, const char *output, const char *capture, const char *phc)
{
	int code = open_pin(&latch->output, "output", output, latch->tai.tai_utc_s), err;

	if (!code)
		code = open_pin(&latch->capture, "capture", capture, latch->tai.tai_utc_s);
	if (code)
		return code;
	if (!latch->output.kind->set || !latch->capture.kind->capture_next || latch->capture.axis != EDGE_AXIS_CLOCK_NS) {
		fputs(TOOL ": --output has to be a line that software sets, --capture an input of a clock in ns\n", stderr);
		return EXIT_CAPABILITY;
	}
	latch->clock.hz = latch->output.counter_hz ? latch->output.counter_hz : ticks_hz();
	latch->clock.bracket = histogram_create(0, HISTOGRAM_HIGHEST_NS);
	latch->delay = histogram_create(-HISTOGRAM_HIGHEST_NS, HISTOGRAM_HIGHEST_NS);
	if (!latch->clock.hz || !latch->clock.bracket || !latch->delay) {
		fputs(TOOL ": out of memory, or no counter that a program can read\n", stderr);
		return EXIT_CAPABILITY;
	}
	if (!latch->by_counter)
		return 0;
	err = phc ? port_phc_open(phc, &latch->clock.phc) : -EINVAL;
	if (!err)
		return 0;
	fprintf(stderr, TOOL ": --phc: %s\n", phc ? strerror(-err) : "is missing: rdtsc is correlated to it (see --help)");
	return phc ? EXIT_CAPABILITY : EXIT_BAD_INPUT;
}

int verb_latch(int argc, char **argv)
{
	struct latch *latch = calloc(1, sizeof(*latch));
	const char *clock = "gettime", *output = NULL, *capture = NULL, *phc = NULL;
	int64_t count = 1000, filter_percent = FILTER_DEFAULT_PERCENT, priority = 0, cpu = PORT_CPU_ANY;
	int64_t tai_utc_s = TAI_UTC_DEFAULT_S;
	const struct option options[] = {
		{ .name = "clock", .kind = OPTION_TEXT, .target = &clock, .argument = "CLOCK", .help = "gettime (default) or rdtsc" },
		{ .name = "output", .kind = OPTION_TEXT, .target = &output, .argument = "PIN", .help = "a line that software sets" },
		{ .name = "capture", .kind = OPTION_TEXT, .target = &capture, .argument = "PIN", .help = "the input that it is wired to" },
		{ .name = "phc", .kind = OPTION_TEXT, .target = &phc, .argument = "DEVICE",
		  .help = "rdtsc: the capturing clock, /dev/ptpN" },
		{ .name = "count", .kind = OPTION_INT, .target = &count, .min = 1, .max = INT64_C(1000000000), .argument = "N",
		  .help = "edges that are captured (default 1000)" },
		{ .name = "read-filter-percent", .kind = OPTION_INT, .target = &filter_percent, .min = 1, .max = 100, .argument = "N",
		  .help = "share of the PHC's readings that are short enough (default 25)" },
		{ .name = "priority", .kind = OPTION_INT, .target = &priority, .min = 0, .max = 99, .argument = "N",
		  .help = "SCHED_FIFO priority (default 0: do not ask)" },
		{ .name = "cpu", .kind = OPTION_INT, .target = &cpu, .min = 0, .max = 1023, .argument = "N",
		  .help = "CPU to run on (default: any)" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &tai_utc_s, .min = 0, .max = 1000, .argument = "N",
		  .help = "TAI - UTC where the kernel does not know it (default 37)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--clock gettime|rdtsc --output PIN --capture PIN [--phc DEVICE] [--count N]",
		.about = "Listing 1 of the paper: virtual now of the software less the captured time of its edge. Positive: the\n"
			 "software's clock is ahead.\n",
		.options = options,
	};
	int parsed, code = EXIT_BAD_INPUT;

	if (!latch) {
		fputs(TOOL ": out of memory\n", stderr);
		return EXIT_CAPABILITY;
	}
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0) {
		free(latch);
		return options_exit_code(parsed);
	}
	port_stop_install();
	latch->count = count;
	latch->filter_percent = filter_percent;
	latch->by_counter = strcmp(clock, "rdtsc") == 0;
	port_tai_init(&latch->tai, (int)tai_utc_s);
	if (!latch->by_counter && strcmp(clock, "gettime") != 0)
		fprintf(stderr, TOOL ": --clock: unknown \"%s\"; allowed: gettime rdtsc\n", clock);
	else
		code = open_all(latch, output, capture, phc);
	if (!code)
		code = measure(latch, (int)priority, (int)cpu);
	edge_pin_close(&latch->output);
	edge_pin_close(&latch->capture);
	if (latch->clock.phc)
		port_phc_close(latch->clock.phc);
	histogram_destroy(latch->clock.bracket);
	histogram_destroy(latch->delay);
	free(latch);
	return code;
}
