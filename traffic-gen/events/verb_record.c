/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "config/options.h"
#include "events/binary.h"
#include "events/recording.h"
#include "events/streams_file.h"
#include "events/verbs.h"
#include "port/port.h"
#include "port/port_wait.h"

#define TOOL "bw-events record"

#define LOOK_NS (2 * NS_PER_MS)
#define IDLE_LOOK_NS (20 * NS_PER_MS)
#define CLOCKS_NS NS_PER_S
#define END_NS (5 * NS_PER_S)
#define STREAM_NAME "all"

enum { PATTERNS_MAX = 256, RING_KIB = 4096 };

struct arguments {
	const char *output, *streams;
	int64_t ring_kib, seconds;
	struct option_texts points;
	const char *texts[PATTERNS_MAX];
	char **program; /* NULL: none, those that are started with BW_EVENTS */
};

/* What comes behind "--" is the program's own. */
static int arguments_parse(struct arguments *arguments, int argc, char **argv)
{
	const struct option options[] = {
		{ "output", OPTION_TEXT, &arguments->output, 0, 0, "FOLDER", "where the streams' files go; is made", false },
		{ "points", OPTION_TEXTS, &arguments->points, 0, 0, "NAME", "GROUP or GROUP.NAME, with * and ?; -NAME: all but that; may be repeated (*)", false },
		{ "streams", OPTION_TEXT, &arguments->streams, 0, 0, "FILE", "several streams, histories with triggers, filters: instead of --points and --ring-kib", false },
		{ "ring-kib", OPTION_INT, &arguments->ring_kib, 8, INT64_C(1) * EVENTS_SLOTS_MAX * EVENTS_SLOT_BYTES / 1024, "N", "room for each processor and program (4096)", false },
		{ "seconds", OPTION_INT, &arguments->seconds, 1, 86400, "N", "end after so long", false },
		{ 0 },
	};
	const struct command command = {
		TOOL, "--output FOLDER [options] [-- PROGRAM [ARGUMENT...]]",
		"Record events of PROGRAM, and of all that it starts, until it ends; without it, of all programs that are started with the\n"
		"variable BW_EVENTS, whose value is printed, until Ctrl-C. `bw-events on` and `off` change what is recorded meanwhile.\n"
		"A file for each program and stream: FOLDER/NAME.PID.N." STREAM_NAME STREAM_FILE_SUFFIX ".\n"
		"A history keeps the newest events; SIGUSR1, and `bw-events trigger`, write it as its own triggers do.\n"
		"Rings lie in /dev/shm, or in the folder that the variable BW_EVENTS_MEMORY names; they outlive PROGRAM and recorder.\n"
		"Exit codes: 0 done; 2 bad input; 3 nothing can be recorded here; 4 events were lost, nothing was recorded, or no program\n"
		"had a point of a stream's names; 5 PROGRAM failed, or the files could not be written.\n",
		options, 0, 0,
	};
	const char *none[1];
	int own = 1;

	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	if (own < argc && argv[own + 1])
		arguments->program = argv + own + 1;
	own = options_parse(&command, own, argv, none);
	if (own < 0)
		return options_exit_code(own);
	if (!arguments->output) {
		fprintf(stderr, TOOL ": give --output FOLDER\n");
		return EXIT_BAD_INPUT;
	}
	if (arguments->streams && (arguments->points.count || arguments->ring_kib)) {
		fprintf(stderr, TOOL ": --streams says points and room itself: not together with --points or --ring-kib\n");
		return EXIT_BAD_INPUT;
	}
	return -1;
}

/* Names that fit no point in the program's file may be of a library, or of what it starts. A script, or a name in PATH, does not tell. */
static void tell_names(const struct arguments *arguments, const char *wanted)
{
	struct bw_point_description *points;
	int64_t count = arguments->program ? binary_points(arguments->program[0], &points) : 0;
	bool fits = count <= 0;

	for (int64_t i = 0; i < count && !fits; i++)
		fits = events_wanted(wanted, &points[i]);
	if (count > 0)
		free(points);
	if (!fits)
		fprintf(stderr, TOOL ": %s itself has %" PRId64 " points, none of these names; see: bw-events list %s\n",
			arguments->program[0], count, arguments->program[0]);
}

static int set_control(const struct arguments *arguments, struct events_control *control)
{
	static const char *const all[] = { "*" };
	struct schema_error error;
	int count = arguments->points.count;

	memset(control, 0, sizeof(*control));
	if (arguments->streams) {
		if (!streams_file_read(arguments->streams, control, &error))
			return EXIT_DONE;
		fprintf(stderr, TOOL ": %s\n", error.text);
		return EXIT_BAD_INPUT;
	}
	control->stream_count = 1;
	strcpy(control->streams[0].name, STREAM_NAME);
	control->streams[0].ring_slots = ring_slots_of(arguments->ring_kib ? arguments->ring_kib : RING_KIB);
	/* All but those: where the first name takes something away, the rest is wanted. */
	if ((!count || arguments->texts[0][0] == '-') && wanted_add(TOOL, control->streams[0].wanted, all, 1, '+'))
		return EXIT_BAD_INPUT;
	if (wanted_add(TOOL, control->streams[0].wanted, arguments->texts, count, '+'))
		return EXIT_BAD_INPUT;
	tell_names(arguments, control->streams[0].wanted);
	return EXIT_DONE;
}

struct run {
	int64_t pid;             /* 0: no program, or it has ended */
	int64_t end_monotonic_ns, kill_monotonic_ns; /* 0: never */
	int code;                /* of the program */
	bool over;
};

/* Wait and look: a signal, the time that was asked for, or the program's end. */
static void look(struct run *run, struct waiter *waiter, struct events_control *control, int64_t wait_ns)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	int event = waiter_wait(waiter, now_monotonic_ns + wait_ns, NULL);
	bool ends = event == WAIT_END || event < 0 || (run->end_monotonic_ns && now_monotonic_ns >= run->end_monotonic_ns);

	if (event == WAIT_HOLD)
		recording_trigger(control);
	if (run->pid && port_events_ended(run->pid, &run->code)) {
		run->pid = 0;
		run->over = true;
	}
	if (!run->pid) {
		run->over |= ends;
	} else if (run->kill_monotonic_ns) {
		run->over |= now_monotonic_ns >= run->kill_monotonic_ns; /* it does not end: its points are turned off */
	} else if (ends) {
		port_events_terminate(run->pid);
		run->kill_monotonic_ns = now_monotonic_ns + END_NS;
	}
}

static bool has_history(const struct events_control *control)
{
	for (uint32_t stream = 0; stream < control->stream_count; stream++)
		if (control->streams[stream].history)
			return true;
	return false;
}

static int record(struct recording *recording, struct run *run, struct waiter *waiter)
{
	int64_t clocks_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + CLOCKS_NS;
	int err = 0;

	while (!err && !run->over) {
		uint64_t moved;

		err = recording_collect(recording, false, &moved);
		if (!err && port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= clocks_monotonic_ns) {
			err = recording_clocks(recording);
			clocks_monotonic_ns += CLOCKS_NS;
		}
		if (!err)
			err = recording_histories(recording, port_clock_now_ns(PORT_CLOCK_MONOTONIC));
		look(run, waiter, recording->control, moved || has_history(recording->control) ? LOOK_NS : IDLE_LOOK_NS);
	}
	if (!err)
		err = recording_collect(recording, true, NULL);
	if (err)
		recording_abandon(recording);
	return err;
}

/* Say which streams want what no program had. Returns whether there is one; without a program that says enough. */
static bool tell_unwanted(const struct recording *recording)
{
	bool some = false;

	for (uint32_t stream = 0; recording->programs && stream < recording->control->stream_count; stream++) {
		if (recording->wanted[stream])
			continue;
		fprintf(stderr, TOOL ": stream %s: no program or library had a point of these names\n", recording->control->streams[stream].name);
		some = true;
	}
	return some;
}

static int tell(const struct recording *recording, const struct run *run, int err)
{
	uint32_t refused = recording->refused + __atomic_load_n(&recording->control->refused, __ATOMIC_ACQUIRE);

	fprintf(stderr, TOOL ": %d programs, %" PRIu64 " slots of 32 bytes, %" PRIu64 " events lost, %" PRIu64 " unfinished, in %s\n",
		recording->programs, recording->slots, recording->lost, recording->unfinished, recording->output);
	if (has_history(recording->control))
		fprintf(stderr, TOOL ": %" PRIu64 " histories written\n", recording->triggers);
	if (refused)
		fprintf(stderr, TOOL ": %" PRIu32 " programs could not record: %s\n", refused,
			strerror(recording->control->refused_errno ? recording->control->refused_errno : EBADMSG));
	if (err) {
		fprintf(stderr, TOOL ": %s: %s: %" PRIu64 " slots were not written\n", recording->output, strerror(-err), recording->uncollected);
		return EXIT_FAULT;
	}
	if (run->code) {
		fprintf(stderr, TOOL ": the program ended with %d\n", run->code);
		return EXIT_FAULT;
	}
	return tell_unwanted(recording) || refused || recording->lost || (!recording->slots && !has_history(recording->control)) ? EXIT_INVALID : EXIT_DONE;
}

/* The folder is there; whatever comes, it is removed. */
static int run_program(const struct arguments *arguments, struct recording *recording, struct waiter *waiter)
{
	struct run run = { .end_monotonic_ns = 0 };
	int err;

	if (arguments->seconds)
		run.end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + arguments->seconds * NS_PER_S;
	if (!arguments->program) {
		printf("BW_EVENTS=%s\n", recording->folder);
		fflush(stdout);
	} else {
		err = port_events_start(recording->folder, arguments->program, &run.pid);
		if (err) {
			fprintf(stderr, TOOL ": %s: %s\n", arguments->program[0], strerror(-err));
			return EXIT_BAD_INPUT;
		}
	}
	return tell(recording, &run, record(recording, &run, waiter));
}

int verb_record(int argc, char **argv)
{
	static struct events_control control;
	static struct arguments arguments;
	struct recording recording = { .programs = 0 };
	char output[PORT_EVENTS_PATH_BYTES];
	struct waiter waiter;
	int code, err;

	arguments.points = (struct option_texts){ arguments.texts, PATTERNS_MAX, 0 };
	code = arguments_parse(&arguments, argc, argv);
	if (code >= 0)
		return code;
	code = set_control(&arguments, &control);
	if (code != EXIT_DONE)
		return code;
	err = port_events_output(arguments.output, output);
	if (err) {
		fprintf(stderr, TOOL ": --output %s: %s\n", arguments.output, strerror(-err));
		return EXIT_BAD_INPUT;
	}
	recording_save_killed(stderr);
	err = waiter_open(&waiter, true);
	if (!err)
		err = recording_open(&recording, &control, output);
	if (err) {
		fprintf(stderr, TOOL ": %s\n", strerror(-err));
		waiter_close(&waiter);
		return EXIT_CAPABILITY;
	}
	code = run_program(&arguments, &recording, &waiter);
	recording_close(&recording);
	waiter_close(&waiter);
	return code;
}
