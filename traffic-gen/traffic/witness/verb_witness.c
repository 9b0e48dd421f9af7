/* SPDX-License-Identifier: Apache-2.0 */
/* The verb witness: record when this machine stalled. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "traffic/verbs.h"
#include "traffic/witness/witness.h"

enum { PRIORITY_DEFAULT = 90, THRESHOLD_DEFAULT_US = 2000, PERIOD_DEFAULT_US = 500 };

/* Write what all watchers saw. Return 0 or -errno, with a line on stderr. */
static int write_series(const struct witness *witness)
{
	int err = capacity_series_write(witness->series_file, witness->period_ns, witness->series, witness->watcher_count,
					witness->options->threads.values);

	if (err)
		fprintf(stderr, WITNESS_TOOL ": %s: %s\n", witness->options->series, strerror(-err));
	return err;
}

static int run_witness(struct witness *witness)
{
	struct port_scheduling scheduling;
	struct json json;
	int err = witness_prepare(witness);

	if (err)
		goto out;
	json_init(&json, stdout);
	witness_print_ready(&json, witness);
	err = witness_start(witness, witness->options->duration_ms);
	if (!err)
		witness_wait(witness);
	scheduling = witness_stop(witness);
	if (!err && witness->series)
		err = write_series(witness);
	if (!err)
		err = witness_print_result(&json, witness, &scheduling);
out:
	witness_release(witness);
	if (err)
		return EXIT_CAPABILITY;
	return witness->complete ? EXIT_DONE : EXIT_INVALID;
}

/* Check what a single option cannot, and open the series. Return 0 or -EINVAL, with a line on stderr. */
static int check_options(struct witness *witness)
{
	const struct witness_options *options = witness->options;

	if (options->threads.count > THREAD_TIMES_MAX) {
		fprintf(stderr, WITNESS_TOOL ": --thread: %d threads; allowed: %d at most\n", options->threads.count,
			THREAD_TIMES_MAX);
		return -EINVAL;
	}
	if (!options->series)
		return 0;
	if (!options->duration_ms) {
		fprintf(stderr, WITNESS_TOOL ": --series needs --duration-ms: its room is taken before the measurement\n");
		return -EINVAL;
	}
	witness->series_file = fopen(options->series, "wb");
	if (!witness->series_file) {
		fprintf(stderr, WITNESS_TOOL ": %s: %s\n", options->series, strerror(errno));
		return -EINVAL;
	}
	return 0;
}

int verb_witness(int argc, char **argv)
{
	struct witness_options chosen = { .priority = PRIORITY_DEFAULT, .period_us = PERIOD_DEFAULT_US,
					  .threshold_us = THRESHOLD_DEFAULT_US, .tai_utc_s = TAI_UTC_DEFAULT_S };
	struct witness witness = { .options = &chosen };
	const struct option options[] = {
		{ .name = "cpu", .kind = OPTION_LIST, .target = &chosen.cpus, .min = 0, .max = 1023, .argument = "N[,N...]",
		  .help = "CPUs to watch (default: all)" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &chosen.duration_ms, .min = 0, .max = INT64_C(604800000),
		  .argument = "N", .help = "how long (default 0: until SIGTERM)" },
		{ .name = "threshold-us", .kind = OPTION_INT, .target = &chosen.threshold_us, .min = 1, .max = 10000000,
		  .argument = "N", .help = "a wake-up later than this is a stall (default 2000)" },
		{ .name = "period-us", .kind = OPTION_INT, .target = &chosen.period_us, .min = 50, .max = 1000000,
		  .argument = "N", .help = "time between wake-ups (default 500)" },
		{ .name = "priority", .kind = OPTION_INT, .target = &chosen.priority, .min = 0, .max = 99,
		  .argument = "N", .help = "SCHED_FIFO priority (default 90); 0: do not ask" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &chosen.tai_utc_s, .min = 0, .max = 1000,
		  .argument = "N", .help = "TAI - UTC where the kernel does not know it (default 37)" },
		{ .name = "awake", .kind = OPTION_FLAG, .target = &chosen.awake,
		  .help = "keep the CPUs from halting: idle threads spin there" },
		{ .name = "thread", .kind = OPTION_LIST, .target = &chosen.threads, .min = 1, .max = INT32_MAX,
		  .argument = "TID[,TID...]", .help = "threads of other processes whose CPU time is read, 16 at most" },
		{ .name = "series", .kind = OPTION_TEXT, .target = &chosen.series, .argument = "FILE",
		  .help = "write each wake-up there at the end; needs --duration-ms" },
		{ .name = "target", .kind = OPTION_TEXT, .target = &chosen.target, .argument = "FILE",
		  .help = "cpuacct.usage_percpu of the control group of a target that shares the CPUs" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = WITNESS_TOOL,
		.usage = "[--cpu N[,N...]] [--duration-ms N] [--threshold-us N] [options]",
		.about = "Record when this machine stalled: one real-time thread a CPU wakes up at fixed intervals.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL);

	if (parsed < 0)
		return options_exit_code(parsed);
	witness.period_ns = chosen.period_us * 1000;
	if (check_options(&witness) != 0)
		return EXIT_BAD_INPUT;
	port_tai_init(&witness.tai, (int)chosen.tai_utc_s);
	port_stop_install();
	return run_witness(&witness);
}
