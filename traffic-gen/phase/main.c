/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "config/options.h"
#include "config/verb_table.h"
#include "phase/supervisor.h"
#include "port/port.h"
#include "port/port_supervise.h"

#define TOOL "bw-phase run"
#define MIB (INT64_C(1) << 20)

enum { CODES_MAX = 16 };

struct arguments {
	const char *folder, *ready, *mark;
	int64_t output_mib, grace_ms;
	struct option_list ok;
};

static int ready_port(const char *text, const char *kind, int *port)
{
	int64_t number;

	if (option_parse_int(text, 1, 65535, &number)) {
		fprintf(stderr, TOOL ": --ready %s:PORT: must be in 1..65535, found %s\n", kind, text);
		return -EINVAL;
	}
	*port = (int)number;
	return 0;
}

static int ready_read(const char *text, struct component *component)
{
	if (!strcmp(text, "at-once")) {
		component->ready = READY_AT_ONCE;
	} else if (!strcmp(text, "json")) {
		component->ready = READY_JSON;
	} else if (!strncmp(text, "line:", 5) && text[5]) {
		component->ready = READY_LINE;
		component->ready_text = text + 5;
	} else if (!strncmp(text, "file:", 5) && text[5]) {
		component->ready = READY_FILE;
		component->ready_text = text + 5;
	} else if (!strncmp(text, "tcp:", 4)) {
		component->ready = READY_TCP;
		return ready_port(text + 4, "tcp", &component->ready_port);
	} else if (!strncmp(text, "udp:", 4)) {
		component->ready = READY_UDP;
		return ready_port(text + 4, "udp", &component->ready_port);
	} else {
		fprintf(stderr, TOOL ": --ready: must be at-once, json, phases, line:TEXT, file:PATH, tcp:PORT or udp:PORT, found %s\n", text);
		return -EINVAL;
	}
	return 0;
}

static int serve(const struct arguments *arguments, char **program)
{
	struct component component = {
		.program = program, .has_phases = !strcmp(arguments->ready, "phases"),
		.output_max_bytes = arguments->output_mib * MIB, .grace_ns = arguments->grace_ms * NS_PER_MS,
		.ok_codes = arguments->ok.values, .ok_code_count = arguments->ok.count,
	};
	int err = ready_read(component.has_phases ? "json" : arguments->ready, &component);

	if (err)
		return EXIT_BAD_INPUT;
	err = port_supervise_enter(arguments->folder);
	if (!err && arguments->mark)
		err = port_supervise_set("BENCHWRIGHT_EXPERIMENT", arguments->mark);
	if (err) {
		fprintf(stderr, TOOL ": --folder %s: %s\n", arguments->folder, strerror(-err));
		return EXIT_BAD_INPUT;
	}
	return supervise(&component);
}

static int verb_run(int argc, char **argv)
{
	struct arguments arguments = { .ready = "at-once", .output_mib = 64, .grace_ms = 2000 };
	const struct option options[] = {
		{ "folder", OPTION_TEXT, &arguments.folder, 0, 0, "FOLDER", "where the program works; gets its `out` and `err`; is there", false },
		{ "ready", OPTION_TEXT, &arguments.ready, 0, 0, "HOW",
		  "at-once (*), json (a line of type ready), line:TEXT, file:PATH, tcp:PORT, udp:PORT, or phases: it has phases of its own", false },
		{ "ok", OPTION_LIST, &arguments.ok, 0, 255, "N[,N...]", "exit codes besides 0 that are no failure", false },
		{ "output-mib", OPTION_INT, &arguments.output_mib, 1, 65536, "N", "that it may write to stdout and stderr (64)", false },
		{ "grace-ms", OPTION_INT, &arguments.grace_ms, 0, 600000, "N", "from SIGTERM to SIGKILL (2000)", false },
		{ "mark", OPTION_TEXT, &arguments.mark, 0, 0, "TEXT", "value of BENCHWRIGHT_EXPERIMENT in its environment", false },
		{ 0 },
	};
	const struct command command = {
		TOOL, "--folder FOLDER [options] -- PROGRAM [ARGUMENT...]",
		"Run PROGRAM as a component of an experiment, whose controller says on stdin what is to be done, a line a phase:\n"
		"start, wait (for its end), stop, or a phase of the program's own. Each is answered by a line on stdout: done, or failed and why.\n"
		"When stdin ends, or this process does, PROGRAM is ended with all that it has started.\n"
		"Exit codes: 0 stdin has ended; 2 bad input; 3 processes cannot be watched here; 5 FOLDER cannot be written.\n",
		options, 0, 0,
	};
	const char *none[1];
	int own = 1, parsed;

	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	parsed = options_parse(&command, own, argv, none);
	if (parsed < 0)
		return options_exit_code(parsed);
	if (own + 1 >= argc || !arguments.folder) {
		fprintf(stderr, TOOL ": give --folder FOLDER, and -- PROGRAM\n");
		return EXIT_BAD_INPUT;
	}
	return serve(&arguments, argv + own + 1);
}

static const struct verb verbs[] = {
	{ "run", verb_run, "run a program as a component of an experiment" },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct verb_table table = { .name = "bw-phase", .verbs = verbs, .begin = port_init };

	return verb_table_run(&table, argc, argv);
}
