/* SPDX-License-Identifier: Apache-2.0 */
/* The verb run: the software whose edges are judged. Its thread does nothing else (methods.c); this one reports. */
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
#include "edge/method/methods.h"
#include "port/port.h"

#define TOOL "bw-edge run"
#define TICK_NS INT64_C(50000000)
#define PERIOD_MIN_NS INT64_C(500000) /* awake before, a pulse after, and time for others between */

enum { FILTER_DEFAULT_PERCENT = 25, REASON_BYTES = 160 };

struct arguments {
	const char *method, *output, *reference, *latch, *phc, *clock;
	int64_t priority, cpu, tai_utc_s;
};

struct pins {
	struct edge_pin output, reference, latch;
};

/* ---- what is needed ---------------------------------------------------------------------------------------------- */

static int missing(const char *option, const char *why)
{
	fprintf(stderr, TOOL ": --%s is missing%s%s (see --help)\n", option, why[0] ? ": " : "", why);
	return EXIT_BAD_INPUT;
}

static int open_pin(struct edge_pin *pin, const char *option, const char *text, int tai_utc_s)
{
	char error[2 * EDGE_PIN_ERROR_BYTES];
	int err = edge_pin_open(pin, text, tai_utc_s, error, sizeof(error));

	if (!err)
		return 0;
	fprintf(stderr, TOOL ": --%s: %s\n", option, error);
	return edge_pin_exit_code(err);
}

static int cannot(const char *option, const char *text, const char *what)
{
	fprintf(stderr, TOOL ": --%s: pin \"%s\" %s\n", option, text, what);
	return EXIT_CAPABILITY;
}

static int open_pins(struct edge_run *run, struct pins *pins, const struct arguments *arguments)
{
	const struct edge_method *method = run->method;
	int code = open_pin(&pins->output, "output", arguments->output, run->tai.tai_utc_s);

	if (code)
		return code;
	run->output = &pins->output;
	if (method->software && !pins->output.kind->set)
		return cannot("output", arguments->output, "cannot be set by software");
	if (!method->software && (!pins->output.kind->fire_at || pins->output.axis != EDGE_AXIS_COUNTER))
		return cannot("output", arguments->output, "cannot be programmed in ticks of the processor's counter");
	if (method->latches) {
		code = open_pin(&pins->latch, "latch", arguments->latch, run->tai.tai_utc_s);
		if (code)
			return code;
		run->latch = &pins->latch;
		if (!pins->latch.kind->capture_next || pins->latch.axis != EDGE_AXIS_COUNTER)
			return cannot("latch", arguments->latch, "does not latch the processor's counter");
	}
	if (!arguments->reference)
		return 0;
	code = open_pin(&pins->reference, "reference", arguments->reference, run->tai.tai_utc_s);
	if (code)
		return code;
	run->reference = &pins->reference;
	return pins->reference.kind->periodic ? 0 : cannot("reference", arguments->reference, "makes no periodic edges");
}

static int open_phc(struct edge_run *run, const char *path)
{
	int64_t phc_ns;
	int err = port_phc_open(path, &run->clock.phc);

	if (!err)
		err = port_phc_now_ns(run->clock.phc, &phc_ns);
	if (!err)
		return 0;
	fprintf(stderr, TOOL ": --phc: %s: %s\n", path,
		err == -ENOTSUP ? "this system has no PTP hardware clocks" :
		err == -ENOTTY  ? "not a PTP hardware clock" :
				  strerror(-err));
	return EXIT_CAPABILITY;
}

static int open_clock(struct edge_run *run, const char *text, int tai_utc_s)
{
	char error[2 * SOURCE_ERROR_BYTES];
	int err = source_open(&run->source, text, tai_utc_s, error, sizeof(error));

	if (!err)
		err = source_begin(&run->source, error, sizeof(error));
	if (!err)
		return 0;
	fprintf(stderr, TOOL ": --clock: %s\n", error);
	return source_exit_code(err);
}

/* Check the options and open all. Return 0 or an exit code. */
static int prepare(struct edge_run *run, struct pins *pins, const struct arguments *arguments)
{
	const struct edge_pin *counted = &pins->output;
	int code;

	if (!arguments->method)
		return missing("method", "");
	run->method = edge_method_find(arguments->method);
	if (!run->method) {
		fprintf(stderr, TOOL ": --method: unknown \"%s\"; allowed:", arguments->method);
		for (int i = 0; edge_method_at(i); i++)
			fprintf(stderr, " %s", edge_method_at(i)->name);
		fputc('\n', stderr);
		return EXIT_BAD_INPUT;
	}
	if (!arguments->output)
		return missing("output", "");
	if (run->method->reads_phc && !arguments->phc)
		return missing("phc", "this method reads a PTP hardware clock");
	if (run->method->latches && !arguments->latch)
		return missing("latch", "this method needs the instants of the reference edges");
	if (arguments->clock && !run->method->reads_clock) {
		fprintf(stderr, TOOL ": --clock: %s reads no clock by name; clock-edge does\n", run->method->name);
		return EXIT_BAD_INPUT;
	}
	port_tai_init(&run->tai, (int)arguments->tai_utc_s);
	code = run->method->reads_clock ?
		       open_clock(run, arguments->clock ? arguments->clock : "realtime", (int)arguments->tai_utc_s) : 0;
	if (!code)
		code = open_pins(run, pins, arguments);
	if (!code && run->method->reads_phc)
		code = open_phc(run, arguments->phc);
	if (code)
		return code;
	run->clock.source = &run->source;
	run->clock.hz = counted->axis == EDGE_AXIS_COUNTER && counted->counter_hz ? counted->counter_hz : ticks_hz();
	run->clock.bracket = histogram_create(0, HISTOGRAM_HIGHEST_NS);
	if (run->clock.hz && run->clock.bracket)
		return 0;
	fprintf(stderr, TOOL ": %s\n",
		run->clock.hz ? "out of memory" : "this processor has no counter that a program can read");
	return EXIT_CAPABILITY;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void print_ready(struct json *json, const struct edge_run *run)
{
	answer_begin(json, "ready", TOOL);
	json_string(json, "method", run->method->name);
	json_int(json, "start_phc_ns", run->start_clock_ns);
	json_int(json, "period_ns", run->period_ns);
	answer_end(json);
}

static void print_progress(struct json *json, const struct edge_run *run)
{
	answer_begin(json, "progress", TOOL);
	json_uint(json, "programmed", tally_get(&run->programmed));
	json_uint(json, "late", tally_get(&run->late));
	answer_end(json);
}

static const char *reason_of(const struct edge_run *run)
{
	if (run->error != -ENODATA)
		return strerror(-run->error);
	return run->method->latches ? "no edge of the reference was latched" : "the clock gives no time";
}

static bool print_validity(struct json *json, const struct edge_run *run)
{
	char reason[REASON_BYTES];
	const char *reasons[2];
	size_t count = 0;

	if (run->unfit[0])
		reasons[count++] = run->unfit;
	if (run->error) {
		snprintf(reason, sizeof(reason), "%s: %s", run->failed, reason_of(run));
		reasons[count++] = reason;
	} else if (tally_get(&run->programmed) == 0) {
		reasons[count++] = tally_get(&run->late) ? "all edges were late" : "no edge was made";
	}
	return answer_validity(json, run->complete, reasons, count);
}

static double threshold_ns(const struct edge_run *run)
{
	return (double)run->clock.threshold * 1e9 / (double)run->clock.hz;
}

/* Return the tool's exit code. */
static int print_result(struct json *json, const struct edge_run *run, const struct port_scheduling *scheduling)
{
	bool reads = run->method->reads_phc || run->method->reads_clock, valid;

	answer_result(json, TOOL);
	valid = print_validity(json, run);
	json_string(json, "method", run->method->name);
	json_string(json, "output", run->output->text);
	json_int(json, "count", run->count);
	json_int(json, "start_phc_ns", run->start_clock_ns);
	json_int(json, "period_ns", run->period_ns);
	json_int(json, "correlation_error_ns", run->correlation_error_ns);
	json_uint(json, "programmed", tally_get(&run->programmed));
	json_uint(json, "late", tally_get(&run->late));
	if (run->counted) {
		json_uint(json, "fired", run->counts.fired);
		json_uint(json, "not_fired", run->counts.not_fired);
	} else {
		json_null(json, "fired");
		json_null(json, "not_fired");
	}
	json_uint(json, "reads", run->clock.reads);
	json_uint(json, "reads_discarded", run->clock.discarded);
	json_uint(json, "reads_unfiltered", run->clock.unfiltered);
	if (reads)
		json_double(json, "threshold_ns", threshold_ns(run));
	else
		json_null(json, "threshold_ns");
	summary_histogram(json, "bracket_ns", run->clock.bracket);
	json_uint(json, "correlation_restarts", run->correlation.restarts);
	json_uint(json, "latches", run->latches);
	json_uint(json, "latches_stray", run->predictor.strays);
	json_uint(json, "counter_hz", run->clock.hz);
	json_int(json, "tai_utc_s", run->tai.tai_utc_s);
	if (run->method->reads_clock)
		source_report(&run->source, json, "clock");
	else
		json_null(json, "clock");
	summary_scheduling(json, scheduling);
	if (answer_end(json))
		return EXIT_CAPABILITY;
	return run->complete && valid ? EXIT_DONE : EXIT_INVALID;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static int start_reference(const struct edge_run *run)
{
	int err;

	if (!run->reference)
		return 0;
	err = run->reference->kind->periodic(run->reference, run->grid_clock_ns ? run->grid_clock_ns : run->period_ns,
					     run->period_ns);
	if (err)
		fprintf(stderr, TOOL ": --reference: %s\n", err == -ENOTSUP ? "this pin makes no periodic edges" : strerror(-err));
	return err;
}

static int measure(struct edge_run *run, const struct arguments *arguments)
{
	struct port_scheduling scheduling;
	struct port_thread *thread;
	int64_t next_monotonic_ns = 0;
	struct json json;
	int err = start_reference(run);

	if (err)
		return EXIT_CAPABILITY;
	json_init(&json, stdout);
	err = port_thread_start("edges", (int)arguments->priority, (int)arguments->cpu, edge_run_thread, run, &thread);
	if (err) {
		fprintf(stderr, TOOL ": %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	while (!atomic_load(&run->finished)) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

		if (atomic_load(&run->prepared) && now_monotonic_ns >= next_monotonic_ns) {
			if (next_monotonic_ns)
				print_progress(&json, run);
			else
				print_ready(&json, run);
			next_monotonic_ns = now_monotonic_ns + NS_PER_S;
		}
		port_sleep_ns(TICK_NS);
	}
	scheduling = *port_thread_scheduling(thread);
	port_thread_join(thread);
	if (run->method->reads_clock)
		source_end(&run->source, run->unfit, sizeof(run->unfit));
	if (run->error == -ENOTSUP || run->error == -ENXIO) {
		fprintf(stderr, TOOL ": %s: a pin or its driver cannot do that\n", run->failed);
		return EXIT_CAPABILITY;
	}
	return print_result(&json, run, &scheduling);
}

int verb_run(int argc, char **argv)
{
	struct edge_run *run = calloc(1, sizeof(*run));
	struct pins *pins = calloc(1, sizeof(*pins));
	struct arguments arguments = { .cpu = PORT_CPU_ANY, .tai_utc_s = TAI_UTC_DEFAULT_S };
	struct edge_run defaults = { .count = 1000, .period_ns = 2 * NS_PER_MS, .filter_percent = FILTER_DEFAULT_PERCENT };
	struct edge_run *options_of = run ? run : &defaults;
	const struct option options[] = {
		{ .name = "method", .kind = OPTION_TEXT, .target = &arguments.method, .argument = "METHOD",
		  .help = "gettime-software, rdtsc-software, tgpio-filtered-read, tgpio-latch or clock-edge" },
		{ .name = "output", .kind = OPTION_TEXT, .target = &arguments.output, .argument = "PIN", .help = "where the edges come" },
		{ .name = "reference", .kind = OPTION_TEXT, .target = &arguments.reference, .argument = "PIN",
		  .help = "make the reference edges too (default: somebody else does)" },
		{ .name = "latch", .kind = OPTION_TEXT, .target = &arguments.latch, .argument = "PIN",
		  .help = "tgpio-latch: where the reference edges are latched" },
		{ .name = "phc", .kind = OPTION_TEXT, .target = &arguments.phc, .argument = "DEVICE",
		  .help = "the PTP hardware clock whose time the edges have, /dev/ptpN" },
		{ .name = "clock", .kind = OPTION_TEXT, .target = &arguments.clock, .argument = "CLOCK",
		  .help = "clock-edge: as bw-clock names it, such as timeservice (default realtime)" },
		{ .name = "count", .kind = OPTION_INT, .target = &options_of->count, .min = 0, .max = INT64_C(1000000000),
		  .argument = "N", .help = "edges (default 1000; 0: until SIGTERM)" },
		{ .name = "period-ns", .kind = OPTION_INT, .target = &options_of->period_ns, .min = PERIOD_MIN_NS,
		  .max = 10 * NS_PER_S, .argument = "N", .help = "from edge to edge (default 2000000)" },
		{ .name = "start-phc-ns", .kind = OPTION_INT, .target = &options_of->grid_clock_ns, .min = 0,
		  .max = INT64_MAX / 2, .argument = "N",
		  .help = "instant of some reference edge, of now or of the past (default 0: full periods)" },
		{ .name = "read-filter-percent", .kind = OPTION_INT, .target = &options_of->filter_percent, .min = 1, .max = 100,
		  .argument = "N", .help = "share of the readings that are short enough (default 25)" },
		{ .name = "correlation-error-ns", .kind = OPTION_INT, .target = &options_of->correlation_error_ns,
		  .min = -NS_PER_MS, .max = NS_PER_MS, .argument = "N", .help = "deliberate mistake: edges come so much later" },
		{ .name = "priority", .kind = OPTION_INT, .target = &arguments.priority, .min = 0, .max = 99, .argument = "N",
		  .help = "SCHED_FIFO priority (default 0: do not ask)" },
		{ .name = "cpu", .kind = OPTION_INT, .target = &arguments.cpu, .min = 0, .max = 1023, .argument = "N",
		  .help = "CPU to run on (default: any)" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &arguments.tai_utc_s, .min = 0, .max = 1000, .argument = "N",
		  .help = "TAI - UTC where the kernel does not know it (default 37)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--method METHOD --output PIN --phc DEVICE [options]",
		.about = "Make edge k when a clock shows start + k * period: the four methods of the paper, and the edges of a clock\n"
			 "itself. Instants that had passed when the software got there are counted as late and left out.\n",
		.options = options,
	};
	int parsed, code = EXIT_CAPABILITY;

	if (!run || !pins) {
		fputs(TOOL ": out of memory\n", stderr);
		goto release;
	}
	run->count = defaults.count;
	run->period_ns = defaults.period_ns;
	run->filter_percent = defaults.filter_percent;
	parsed = options_parse(&command, argc, argv, NULL);
	port_stop_install();
	code = parsed < 0 ? options_exit_code(parsed) : prepare(run, pins, &arguments);
	if (parsed >= 0 && !code)
		code = measure(run, &arguments);
	edge_pin_close(&pins->output);
	edge_pin_close(&pins->latch);
	edge_pin_close(&pins->reference);
	if (run->clock.phc)
		port_phc_close(run->clock.phc);
	source_close(&run->source);
	histogram_destroy(run->clock.bracket);
release:
	free(run);
	free(pins);
	return code;
}
