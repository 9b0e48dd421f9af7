/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb work: short processes, so many at once, as a build has them; each reads small files, computes for some tens of ms, and
 * writes small files. Each is this program, started again with --step.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "base/time_units.h"
#include "config/options.h"
#include "port/port.h"
#include "port/port_program.h"
#include "time/heard_sleep.h"
#include "traffic/verbs.h"
#include "traffic/work/step.h"

#define TOOL "bw-traffic work"

/* The defaults are of a build of this project (docs/loads.md). */
enum { CPU_DEFAULT_MS = 22, READ_FILES_DEFAULT = 30, READ_DEFAULT_BYTES = 8192, WRITE_FILES_DEFAULT = 2,
       WRITE_DEFAULT_BYTES = 20480, DURATION_DEFAULT_MS = 10000, JOBS_MAX = 1024, NUMBER_BYTES = 24 };

#define FILE_MAX_BYTES (INT64_C(1) << 30)

struct work_options {
	struct step step;
	bool is_step;
	int64_t slot, jobs, rate_hz, duration_ms;
};

struct work;

/* One of those that run at once: starts a process, waits for its end, and starts the next. */
struct slot {
	struct work *work;
	struct port_thread *thread;
	int64_t number;
	uint64_t processes;
	int64_t cpu_ns;
	int failed_code; /* of a process: its exit code, or -errno; 0: none failed */
};

struct work {
	const struct work_options *options;
	int64_t begin_monotonic_ns, end_monotonic_ns;
	struct slot *slots;
	atomic_bool broken; /* a process has failed: no other is started */
};

/* Words of a process's command line. */
struct step_words {
	char numbers[6][NUMBER_BYTES];
	char *argv[20];
};

static void name_words(struct step_words *words, const struct slot *slot)
{
	static const char *const names[] = { "--slot", "--cpu-ms", "--read-files", "--read-bytes", "--write-files", "--write-bytes" };
	const struct step *step = &slot->work->options->step;
	const int64_t values[] = { slot->number, step->cpu_ms, step->read_files, step->read_bytes, step->write_files, step->write_bytes };
	char **at = words->argv;

	*at++ = (char *)"bw-traffic";
	*at++ = (char *)"work";
	*at++ = (char *)"--step";
	*at++ = (char *)"--folder";
	*at++ = (char *)step->folder;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(words->numbers[i], NUMBER_BYTES, "%lld", (long long)values[i]);
		*at++ = (char *)names[i];
		*at++ = words->numbers[i];
	}
	if (step->sync)
		*at++ = (char *)"--sync";
	*at = NULL;
}

/* Wait until the slot's next process is due. @return false: none is any more */
static bool wait_due(const struct slot *slot)
{
	const struct work *work = slot->work;
	const struct work_options *options = work->options;
	int64_t due_monotonic_ns = work->begin_monotonic_ns;

	if (options->rate_hz)
		due_monotonic_ns += (int64_t)(((double)slot->processes * (double)options->jobs + (double)slot->number) *
					      (double)NS_PER_S / (double)options->rate_hz);
	if (due_monotonic_ns > work->end_monotonic_ns)
		due_monotonic_ns = work->end_monotonic_ns;
	if (heard_sleep_until_monotonic_ns(due_monotonic_ns))
		return false;
	return port_clock_now_ns(PORT_CLOCK_MONOTONIC) < work->end_monotonic_ns && !atomic_load(&work->broken);
}

static void run_slot(void *argument)
{
	struct slot *slot = argument;
	struct step_words words;

	name_words(&words, slot);
	while (!slot->failed_code && wait_due(slot)) {
		int64_t cpu_ns = 0;

		slot->failed_code = port_program_run_self(words.argv, &cpu_ns);
		slot->cpu_ns += cpu_ns;
		slot->processes += !slot->failed_code;
	}
	if (slot->failed_code)
		atomic_store(&slot->work->broken, true);
}

/* Run until the end. Return 0 or -errno: what could not be started. */
static int run_slots(struct work *work)
{
	int64_t started = 0;
	int err = 0;

	work->begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	work->end_monotonic_ns = work->begin_monotonic_ns + work->options->duration_ms * NS_PER_MS;
	for (; started < work->options->jobs && !err; started++) {
		struct slot *slot = &work->slots[started];

		*slot = (struct slot){ .work = work, .number = started };
		err = port_thread_start("work", 0, PORT_CPU_ANY, run_slot, slot, &slot->thread);
		if (err) {
			atomic_store(&work->broken, true);
			break;
		}
	}
	for (int64_t i = 0; i < started; i++)
		port_thread_join(work->slots[i].thread);
	return err;
}

static int print_result(const struct work *work)
{
	int64_t took_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) - work->begin_monotonic_ns, cpu_ns = 0;
	const struct step *step = &work->options->step;
	const char *reason = NULL;
	uint64_t processes = 0;
	struct json json;
	char text[96];

	if (port_stop_requested())
		reason = "stopped before its end";
	for (int64_t i = 0; i < work->options->jobs; i++) {
		const struct slot *slot = &work->slots[i];

		processes += slot->processes;
		cpu_ns += slot->cpu_ns;
		if (!slot->failed_code)
			continue;
		if (slot->failed_code < 0)
			snprintf(text, sizeof(text), "a process could not be started: %s", strerror(-slot->failed_code));
		else
			snprintf(text, sizeof(text), "a process ended with exit code %d", slot->failed_code);
		reason = text;
	}
	json_init(&json, stdout);
	answer_result(&json, TOOL);
	json_int(&json, "jobs", work->options->jobs);
	json_uint(&json, "processes", processes);
	json_int(&json, "cpu_ns", cpu_ns);
	json_uint(&json, "read_bytes", processes * (uint64_t)(step->read_files * step->read_bytes));
	json_uint(&json, "written_bytes", processes * (uint64_t)(step->write_files * step->write_bytes));
	answer_valid_unless(&json, !reason, reason);
	json_int(&json, "duration_ns", took_ns);
	answer_end(&json);
	return reason ? EXIT_INVALID : EXIT_DONE;
}

static int fail(const char *what, const char *which, int err)
{
	fprintf(stderr, TOOL ": %s %s: %s\n", what, which, strerror(-err));
	return EXIT_CAPABILITY;
}

static int run_in_folder(struct work *work)
{
	const struct step *step = &work->options->step;
	struct json json;
	int code, err = step_write_inputs(step);

	if (err)
		return fail("cannot write into", step->folder, err);
	json_init(&json, stdout);
	answer_begin(&json, "ready", TOOL);
	answer_end(&json);
	err = run_slots(work);
	code = err ? fail("cannot start", "a thread", err) : print_result(work);
	step_remove_files(step, work->options->jobs);
	return code;
}

static int run_work(struct work_options *options)
{
	struct work work = { .options = options };
	int code, err, cpus = port_cpu_count();

	if (!options->jobs)
		options->jobs = cpus;
	if (options->jobs > cpus) {
		fprintf(stderr, TOOL ": --jobs: %lld; this machine lets it have %d CPUs: 1..%d are allowed\n", (long long)options->jobs,
			cpus, cpus);
		return EXIT_CAPABILITY;
	}
	err = port_directory_create(options->step.folder);
	if (err)
		return fail("no folder", options->step.folder, err);
	work.slots = calloc((size_t)options->jobs, sizeof(*work.slots));
	if (!work.slots)
		return fail("no memory for", "processes", -ENOMEM);
	port_stop_install();
	code = run_in_folder(&work);
	free(work.slots);
	return code;
}

static int run_step(const struct work_options *options)
{
	int err = step_run(&options->step, options->slot);

	return err ? fail("a process failed in", options->step.folder, err) : EXIT_DONE;
}

int verb_work(int argc, char **argv)
{
	struct work_options chosen = {
		.step = { .cpu_ms = CPU_DEFAULT_MS, .read_files = READ_FILES_DEFAULT, .read_bytes = READ_DEFAULT_BYTES,
			  .write_files = WRITE_FILES_DEFAULT, .write_bytes = WRITE_DEFAULT_BYTES },
		.duration_ms = DURATION_DEFAULT_MS,
	};
	struct step *step = &chosen.step;
	struct option options[] = {
		{ .name = "folder", .kind = OPTION_TEXT, .target = &step->folder, .argument = "DIRECTORY",
		  .help = "where its files are; they are removed at the end, and so is it where nothing else is in it" },
		{ .name = "jobs", .kind = OPTION_INT, .target = &chosen.jobs, .min = 0, .max = JOBS_MAX, .argument = "N",
		  .help = "processes at once, at most the CPUs that it may use (default 0: as many)" },
		{ .name = "rate-hz", .kind = OPTION_INT, .target = &chosen.rate_hz, .min = 0, .max = 100000, .argument = "N",
		  .help = "processes a second, of all jobs together, 0..100000 (default 0: as fast as they end)" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &chosen.duration_ms, .min = 1, .max = 604800000,
		  .argument = "N", .help = "start no process after so long, 1..604800000 ms (default 10000)" },
		{ .name = "cpu-ms", .kind = OPTION_INT, .target = &step->cpu_ms, .min = 0, .max = 60000, .argument = "N",
		  .help = "CPU time of each process before it writes, 0..60000 ms (default 22)" },
		{ .name = "read-files", .kind = OPTION_INT, .target = &step->read_files, .min = 0, .max = 10000, .argument = "N",
		  .help = "files that each reads, 0..10000 (default 30)" },
		{ .name = "read-bytes", .kind = OPTION_INT, .target = &step->read_bytes, .min = 0, .max = FILE_MAX_BYTES,
		  .argument = "N", .help = "bytes of each of these, 0..2^30 (default 8192)" },
		{ .name = "write-files", .kind = OPTION_INT, .target = &step->write_files, .min = 0, .max = 10000, .argument = "N",
		  .help = "files that each writes, 0..10000 (default 2)" },
		{ .name = "write-bytes", .kind = OPTION_INT, .target = &step->write_bytes, .min = 0, .max = FILE_MAX_BYTES,
		  .argument = "N", .help = "bytes of each of these, 0..2^30 (default 20480)" },
		{ .name = "sync", .kind = OPTION_FLAG, .target = &step->sync, .help = "each written file is on the disk before the next" },
		{ .name = "step", .kind = OPTION_FLAG, .target = &chosen.is_step, .help = "be one of these processes" },
		{ .name = "slot", .kind = OPTION_INT, .target = &chosen.slot, .min = 0, .max = JOBS_MAX, .argument = "N",
		  .help = "which of those at once, of --step (default 0)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--folder DIRECTORY [options]",
		.about = "Load the machine as a build does: short processes that read small files, compute, and write small files.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL);

	if (parsed < 0)
		return options_exit_code(parsed);
	if (!step->folder) {
		fprintf(stderr, TOOL ": --folder: missing; needed: a folder for its files\n");
		return EXIT_BAD_INPUT;
	}
	return chosen.is_step ? run_step(&chosen) : run_work(&chosen);
}
