/* SPDX-License-Identifier: Apache-2.0 */
/* The verb latency: what reading a clock costs, as the paper's Table I. It measures in a thread of its own. */
#include "clock/latency/latency.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/clock_verbs.h"
#include "base/json.h"
#include "base/time_units.h"
#include "clock/latency/latency_cost.h"
#include "config/options.h"
#include "port/port.h"
#include "clock/card/ticks.h"

static const char *const phc_names[] = {
	[PORT_PHC_PRECISE] = "precise", [PORT_PHC_EXTENDED] = "extended", [PORT_PHC_BASIC] = "basic", "gettime",
};
enum { PHC_NAMES = sizeof(phc_names) / sizeof(phc_names[0]), PHC_GETTIME = PHC_NAMES - 1 };

/* Choose how a PHC is read. Return 0 or an exit code. */
static int choose_phc_read(const struct latency *latency, struct source *source)
{
	int read = 0, err;

	while (read < PHC_NAMES && strcmp(phc_names[read], latency->phc_read) != 0)
		read++;
	if (read == PHC_NAMES) {
		fprintf(stderr, LATENCY_TOOL ": --phc-read: unknown \"%s\"; allowed: precise extended basic gettime\n",
			latency->phc_read);
		return EXIT_BAD_INPUT;
	}
	if (read == PHC_GETTIME)
		return 0;
	if (!source->phc) {
		fputs(LATENCY_TOOL ": --phc-read: only for phc:/dev/ptpN\n", stderr);
		return EXIT_BAD_INPUT;
	}
	err = source_phc_read(source, (enum port_phc_read)read);
	if (!err)
		return 0;
	fprintf(stderr, LATENCY_TOOL ": --phc-read: %s: %s\n", latency->phc_read,
		err == -ENOTSUP ? "this PHC or kernel does not offer it" : strerror(-err));
	return EXIT_CAPABILITY;
}

/* Open one clock. Return 0 or an exit code. */
static int add_clock(struct latency *latency, const char *text, size_t length, int tai_utc_s)
{
	struct latency_subject *subject = &latency->subjects[latency->count];
	char error[2 * SOURCE_ERROR_BYTES];
	int err, code;

	if (latency->count == LATENCY_CLOCKS_MAX || length >= sizeof(subject->text)) {
		fprintf(stderr, LATENCY_TOOL ": --clock: at most %d clocks, and names of %zu characters\n", LATENCY_CLOCKS_MAX,
			sizeof(subject->text) - 1);
		return EXIT_BAD_INPUT;
	}
	memcpy(subject->text, text, length);
	subject->text[length] = '\0';
	err = source_open(&subject->source, subject->text, tai_utc_s, error, sizeof(error));
	if (err) {
		fprintf(stderr, LATENCY_TOOL ": --clock: %s\n", error);
		return source_exit_code(err);
	}
	latency->count++;
	code = choose_phc_read(latency, &subject->source);
	if (code)
		return code;
	subject->latency = histogram_create(0, HISTOGRAM_HIGHEST_NS);
	subject->net = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	if (subject->latency && subject->net)
		return 0;
	fputs(LATENCY_TOOL ": out of memory\n", stderr);
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

static void measure(void *argument)
{
	latency_run(argument);
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
			fprintf(stderr, LATENCY_TOOL ": %s: %s\n", latency->subjects[i].text, error);
			return EXIT_INVALID;
		}
	}
	err = port_thread_start("latency", priority, cpu, measure, latency, &thread);
	if (err) {
		fprintf(stderr, LATENCY_TOOL ": %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	scheduling = *port_thread_scheduling(thread);
	port_thread_join(thread);
	json_init(&json, stdout);
	if (latency_report(&json, latency, &scheduling))
		return EXIT_CAPABILITY;
	return latency->complete ? EXIT_DONE : EXIT_INVALID;
}

int verb_latency(int argc, char **argv)
{
	struct latency *latency = calloc(1, sizeof(*latency));
	const char *lists[LATENCY_CLOCKS_MAX];
	struct option_texts clocks = { .texts = lists, .room = LATENCY_CLOCKS_MAX };
	int64_t reads = 1000000, duration_ms = 0, cpu = PORT_CPU_ANY, priority = 0, tai_utc_s = TAI_UTC_DEFAULT_S;
	bool cost = false;
	const struct option options[] = {
		{ .name = "clock", .kind = OPTION_TEXTS, .target = &clocks, .argument = "CLOCK[,...]",
		  .help = "clocks to read; may be repeated" },
		{ .name = "reads", .kind = OPTION_INT, .target = &reads, .min = 1, .max = INT64_C(10000000000),
		  .argument = "N", .help = "readings of each clock (default 1000000)" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &duration_ms, .min = 1, .max = INT64_C(604800000),
		  .argument = "N", .help = "time of each clock at most (default: as long as its readings take)" },
		{ .name = "phc-read", .kind = OPTION_TEXT, .target = latency ? &latency->phc_read : NULL, .argument = "HOW",
		  .help = "of phc: gettime (default), basic, extended, precise" },
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
		.name = LATENCY_TOOL,
		.usage = "--clock CLOCK[,CLOCK...] [--reads N] [options]",
		.about = "Measure what reading a clock costs: each reading between two of the processor's counter.\n",
		.options = options,
	};
	int parsed, code = 0;

	if (!latency) {
		fputs(LATENCY_TOOL ": out of memory\n", stderr);
		return EXIT_CAPABILITY;
	}
	latency->phc_read = phc_names[PHC_GETTIME];
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0) {
		free(latency);
		return options_exit_code(parsed);
	}
	latency->reads = reads;
	latency->duration_ns = duration_ms * NS_PER_MS;
	latency->hz = ticks_hz();
	if (!latency->hz) {
		fputs(LATENCY_TOOL ": this processor has no counter that a program can read\n", stderr);
		code = EXIT_CAPABILITY;
	} else if (clocks.count == 0) {
		fputs(LATENCY_TOOL ": --clock is missing (see --help)\n", stderr);
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
