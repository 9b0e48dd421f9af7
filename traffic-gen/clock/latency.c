/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb latency: what reading a clock costs, as the paper's Table I. Each reading stands between two of the processor's
 * counter. Where the machine counts retired instructions, readings that were interrupted are told apart: more were
 * retired, the kernel's included, than the reading itself takes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock_verbs.h"
#include "histogram.h"
#include "json.h"
#include "latency_cost.h"
#include "options.h"
#include "source.h"
#include "summary.h"
#include "ticks.h"
#include "verbs.h"

#define TOOL "bw-clock latency"

enum {
	CLOCKS_MAX = 16, BATCH = 256, WARM_UP = 2000, TAI_UTC_DEFAULT_S = 37,
	INSTRUCTIONS_MARGIN = 32, /* a second that rolls over takes some more; an interrupt takes thousands */
};

struct subject {
	char text[1024];
	struct source source;
	struct histogram *latency, *net, *kept;
	uint64_t interrupted;
};

struct latency {
	int64_t reads;
	size_t count;
	struct subject subjects[CLOCKS_MAX];
	uint64_t hz;
	int64_t pair_ticks; /* what two readings of the counter cost, one right after the other: the median */
	struct port_instructions *instructions; /* NULL: not counted */
	char no_instructions[160];
	int read_error;
	bool complete;
	int batched;
	int64_t ticks[BATCH], kept_ticks[BATCH];
	int64_t values_ns[BATCH];
	int kept_batched;
};

static void record_ticks(struct latency *latency, struct histogram *histogram, const int64_t *ticks, int count, int64_t less)
{
	double ns_per_tick = 1e9 / (double)latency->hz;

	for (int i = 0; i < count; i++)
		latency->values_ns[i] = (int64_t)((double)(ticks[i] - less) * ns_per_tick + (ticks[i] < less ? -0.5 : 0.5));
	histogram_record_all(histogram, latency->values_ns, count);
}

static void flush(struct latency *latency, struct subject *subject)
{
	record_ticks(latency, subject->latency, latency->ticks, latency->batched, 0);
	record_ticks(latency, subject->net, latency->ticks, latency->batched, latency->pair_ticks);
	if (subject->kept)
		record_ticks(latency, subject->kept, latency->kept_ticks, latency->kept_batched, 0);
	latency->batched = latency->kept_batched = 0;
}

static int compare_values(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static int64_t median(int64_t *values, size_t count)
{
	qsort(values, count, sizeof(values[0]), compare_values);
	return values[count / 2];
}

/* Find what the two readings of the counter cost by themselves. */
static void measure_pair(struct latency *latency)
{
	static const int rounds = WARM_UP;
	int64_t *ticks = calloc((size_t)rounds, sizeof(*ticks));

	if (!ticks)
		return;
	for (int i = 0; i < rounds; i++) {
		uint64_t before = port_counter_before();

		ticks[i] = (int64_t)(port_counter_after() - before);
	}
	latency->pair_ticks = median(ticks, (size_t)rounds);
	free(ticks);
}

/* One reading with the instructions that it took. */
static int read_counted(struct latency *latency, struct source *source, int64_t *ticks, int64_t *instructions)
{
	uint64_t first = port_instructions_read(latency->instructions), before, after;
	int64_t now_ns;
	int err;

	before = port_counter_before();
	err = source_read(source, &now_ns);
	after = port_counter_after();
	*instructions = (int64_t)(port_instructions_read(latency->instructions) - first);
	*ticks = (int64_t)(after - before);
	return err;
}

/* Instructions that an undisturbed reading takes. Return them, or -errno. */
static int64_t expected_instructions(struct latency *latency, struct source *source)
{
	int64_t *counts = calloc(WARM_UP, sizeof(*counts)), ticks;
	int64_t expected = 0;

	if (!counts)
		return -ENOMEM;
	for (int i = 0; i < WARM_UP && expected >= 0; i++)
		expected = read_counted(latency, source, &ticks, &counts[i]);
	if (expected >= 0)
		expected = median(counts, WARM_UP);
	free(counts);
	return expected;
}

static int measure_counted(struct latency *latency, struct subject *subject)
{
	int64_t expected = expected_instructions(latency, &subject->source);

	if (expected < 0)
		return (int)expected;
	for (int64_t i = 0; i < latency->reads && !port_stop_requested(); i++) {
		int64_t ticks, instructions;
		int err = read_counted(latency, &subject->source, &ticks, &instructions);

		if (err)
			return err;
		latency->ticks[latency->batched++] = ticks;
		if (instructions > expected + INSTRUCTIONS_MARGIN)
			subject->interrupted++;
		else
			latency->kept_ticks[latency->kept_batched++] = ticks;
		if (latency->batched == BATCH)
			flush(latency, subject);
	}
	return 0;
}

static int measure_plain(struct latency *latency, struct subject *subject)
{
	for (int64_t i = 0; i < latency->reads && !port_stop_requested(); i++) {
		uint64_t before, after;
		int64_t now_ns;
		int err;

		before = port_counter_before();
		err = source_read(&subject->source, &now_ns);
		after = port_counter_after();
		if (err)
			return err;
		latency->ticks[latency->batched++] = (int64_t)(after - before);
		if (latency->batched == BATCH)
			flush(latency, subject);
	}
	return 0;
}

static void measure(void *argument)
{
	struct latency *latency = argument;
	int err = port_instructions_open(&latency->instructions);

	/* Opened here: what this thread retires is counted. */
	if (!err && port_instructions_read(latency->instructions) == 0)
		err = -ENOTSUP;
	if (err) {
		port_instructions_close(latency->instructions);
		latency->instructions = NULL;
		snprintf(latency->no_instructions, sizeof(latency->no_instructions),
			 "retired instructions are not counted on this machine: %s",
			 err == -ENOENT || err == -ENOTSUP ? "no hardware counter" : strerror(-err));
	}
	measure_pair(latency);
	for (size_t i = 0; i < latency->count && !latency->read_error; i++) {
		struct subject *subject = &latency->subjects[i];

		if (latency->instructions) {
			subject->kept = histogram_create(0, HISTOGRAM_HIGHEST_NS);
			latency->read_error = subject->kept ? measure_counted(latency, subject) : -ENOMEM;
		} else {
			latency->read_error = measure_plain(latency, subject);
		}
		flush(latency, subject);
	}
	port_instructions_close(latency->instructions);
	latency->complete = !port_stop_requested() && !latency->read_error;
}

static void print_subject(struct json *json, const struct subject *subject, bool counted)
{
	json_object_open(json, NULL);
	json_string(json, "name", subject->text);
	json_uint(json, "n", histogram_count(subject->latency));
	summary_histogram(json, "latency", subject->latency);
	summary_histogram(json, "net", subject->net);
	if (counted && subject->kept) {
		summary_histogram(json, "kept", subject->kept);
		json_uint(json, "interrupted", subject->interrupted);
	} else {
		json_null(json, "kept");
		json_null(json, "interrupted");
	}
	json_object_close(json);
}

static int print_result(struct json *json, const struct latency *latency, const struct port_scheduling *scheduling)
{
	bool counted = latency->no_instructions[0] == '\0';

	json_object_open(json, NULL);
	json_string(json, "type", "result");
	json_string(json, "tool", TOOL);
	json_string(json, "version", BW_VERSION);
	json_bool(json, "complete", latency->complete);
	json_bool(json, "valid", latency->read_error == 0);
	json_array_open(json, "invalid_reasons");
	if (latency->read_error)
		json_string(json, NULL, strerror(-latency->read_error));
	json_array_close(json);
	json_array_open(json, "clocks");
	for (size_t i = 0; i < latency->count; i++)
		print_subject(json, &latency->subjects[i], counted);
	json_array_close(json);
	if (counted)
		json_null(json, "interrupted_reason");
	else
		json_string(json, "interrupted_reason", latency->no_instructions);
	json_uint(json, "tsc_hz", latency->hz);
	json_double(json, "pair_cost_ns", (double)latency->pair_ticks * 1e9 / (double)latency->hz);
	summary_scheduling(json, scheduling);
	json_object_close(json);
	return json_line_end(json);
}

/* Open one clock. Return 0 or an exit code. */
static int add_clock(struct latency *latency, const char *text, size_t length, int tai_utc_s)
{
	struct subject *subject = &latency->subjects[latency->count];
	char error[2 * SOURCE_ERROR_BYTES];
	int err;

	if (latency->count == CLOCKS_MAX || length >= sizeof(subject->text)) {
		fprintf(stderr, TOOL ": --clock: at most %d clocks, and names of %zu characters\n", CLOCKS_MAX,
			sizeof(subject->text) - 1);
		return EXIT_BAD_INPUT;
	}
	memcpy(subject->text, text, length);
	subject->text[length] = '\0';
	err = source_open(&subject->source, subject->text, tai_utc_s, error, sizeof(error));
	if (err) {
		fprintf(stderr, TOOL ": --clock: %s\n", error);
		return source_exit_code(err);
	}
	latency->count++;
	subject->latency = histogram_create(0, HISTOGRAM_HIGHEST_NS);
	subject->net = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	if (subject->latency && subject->net)
		return 0;
	fputs(TOOL ": out of memory\n", stderr);
	return EXIT_CAPABILITY;
}

/* A list of names; a plug-in takes the commas behind it for its arguments. */
static int add_clocks(struct latency *latency, const char *list, int tai_utc_s)
{
	for (;;) {
		size_t length = strncmp(list, "plugin:", 7) == 0 ? strlen(list) : strcspn(list, ",");
		int code = add_clock(latency, list, length, tai_utc_s);

		if (code || list[length] == '\0')
			return code;
		list += length + 1;
	}
}

static int run(struct latency *latency, int priority, int cpu)
{
	struct port_scheduling scheduling;
	struct port_thread *thread;
	struct json json;
	int err = 0;

	for (size_t i = 0; i < latency->count; i++) {
		char error[SOURCE_ERROR_BYTES];

		if (source_begin(&latency->subjects[i].source, error, sizeof(error))) {
			fprintf(stderr, TOOL ": %s: %s\n", latency->subjects[i].text, error);
			return EXIT_INVALID;
		}
	}
	err = port_thread_start("latency", priority, cpu, measure, latency, &thread);
	if (err) {
		fprintf(stderr, TOOL ": %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	scheduling = *port_thread_scheduling(thread);
	port_thread_join(thread);
	json_init(&json, stdout);
	if (print_result(&json, latency, &scheduling))
		return EXIT_CAPABILITY;
	return latency->complete ? EXIT_DONE : EXIT_INVALID;
}

int verb_latency(int argc, char **argv)
{
	struct latency *latency = calloc(1, sizeof(*latency));
	const char *lists[CLOCKS_MAX];
	struct option_texts clocks = { .texts = lists, .room = CLOCKS_MAX };
	int64_t reads = 1000000, cpu = PORT_CPU_ANY, priority = 0, tai_utc_s = TAI_UTC_DEFAULT_S;
	bool cost = false;
	const struct option options[] = {
		{ .name = "clock", .kind = OPTION_TEXTS, .target = &clocks, .argument = "CLOCK[,...]",
		  .help = "clocks to read; may be repeated" },
		{ .name = "reads", .kind = OPTION_INT, .target = &reads, .min = 1, .max = INT64_C(10000000000),
		  .argument = "N", .help = "readings of each clock (default 1000000)" },
		{ .name = "cost", .kind = OPTION_FLAG, .target = &cost,
		  .help = "instead: what a recorded reading costs, against three bare ones" },
		{ .name = "cpu", .kind = OPTION_INT, .target = &cpu, .min = 0, .max = 1023, .argument = "N",
		  .help = "CPU to measure on (default: any)" },
		{ .name = "priority", .kind = OPTION_INT, .target = &priority, .min = 0, .max = 99, .argument = "N",
		  .help = "SCHED_FIFO priority (default 0: do not ask)" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &tai_utc_s, .min = 0, .max = 1000,
		  .argument = "N", .help = "TAI - UTC where the kernel does not know it (default 37)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--clock CLOCK[,CLOCK...] [--reads N] [options]",
		.about = "Measure what reading a clock costs: each reading between two of the processor's counter.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL), code = 0;

	if (!latency || parsed < 0) {
		free(latency);
		return parsed < 0 ? options_exit_code(parsed) : EXIT_CAPABILITY;
	}
	latency->reads = reads;
	latency->hz = ticks_hz();
	if (!latency->hz) {
		fputs(TOOL ": this processor has no counter that a program can read\n", stderr);
		code = EXIT_CAPABILITY;
	} else if (clocks.count == 0) {
		fputs(TOOL ": --clock is missing (see --help)\n", stderr);
		code = EXIT_BAD_INPUT;
	}
	for (int i = 0; i < clocks.count && !code; i++)
		code = add_clocks(latency, lists[i], (int)tai_utc_s);
	port_stop_install();
	if (!code)
		code = cost ? latency_cost(&latency->subjects[0].source, latency->hz, reads) : run(latency, (int)priority, (int)cpu);
	for (size_t i = 0; i < latency->count; i++) {
		source_close(&latency->subjects[i].source);
		histogram_destroy(latency->subjects[i].latency);
		histogram_destroy(latency->subjects[i].net);
		histogram_destroy(latency->subjects[i].kept);
	}
	free(latency);
	return code;
}
