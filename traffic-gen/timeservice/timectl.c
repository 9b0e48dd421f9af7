/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-timectl - what the time service says of itself, in the words of chronyc; waitsync; hold and resume; and recompute
 *
 * It reads the service's page, which everybody may. Hold and resume are signals: for who may send them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "config/options.h"
#include "port/port.h"
#include "port/port_wait.h"
#include "timeservice/recompute.h"
#include "timeservice/timectl_show.h"

#define TOOL "bw-timectl"

#define WAITSYNC_LOOK_NS INT64_C(100000000)

enum verb { TRACKING, SOURCES, SOURCESTATS, HISTORY, WAITSYNC, HOLD, RESUME, RECOMPUTE, VERBS };
enum waitsync_code { WAITSYNC_TIMED_OUT = 1, WAITSYNC_NEVER = 2, WAITSYNC_LONGEST_S = 86400 };

static const char *const verb_names[VERBS] = { "tracking", "sources", "sourcestats", "history", "waitsync", "hold", "resume", "recompute" };

struct arguments {
	enum verb verb;
	const char *page, *log; /* log: of recompute */
	int64_t last, timeout_s;
	bool json;
};

/* Recompute needs a log, and nothing else takes one. Returns an exit code, or -1: go on. */
static int check_log(const struct arguments *arguments)
{
	if ((arguments->verb == RECOMPUTE) == (arguments->log != NULL))
		return -1;
	fprintf(stderr, TOOL ": %s: %s\n", verb_names[arguments->verb],
		arguments->log ? "takes no file" : "give the log of bw-timed --log-exchanges");
	return EXIT_BAD_INPUT;
}

/* Compute a log's batches again. Returns an exit code. */
static int recompute_log(const struct arguments *arguments)
{
	char error[RECOMPUTE_ERROR_BYTES] = "";
	int code = recompute(arguments->log, arguments->json, stdout, error);

	if (code != EXIT_DONE)
		fprintf(stderr, TOOL ": %s\n", error);
	return code;
}

/* Read the command line. Returns an exit code, or -1: go on. */
static int arguments_parse(struct arguments *arguments, int argc, char **argv)
{
	const struct option options[] = {
		{ "page", OPTION_TEXT, &arguments->page, 0, 0, "PATH", "of the service (BWTIME_PAGE, or the system's place)", false },
		{ "last", OPTION_INT, &arguments->last, 1, TIMEPAGE_HISTORY, "N", "history: batches that are shown (32)", false },
		{ "timeout-s", OPTION_INT, &arguments->timeout_s, 0, WAITSYNC_LONGEST_S, "N", "waitsync: it waits so long (60)", false },
		{ "json", OPTION_FLAG, &arguments->json, 0, 0, NULL, "one JSON object instead of text; recompute: one for each batch", false },
		{ 0 },
	};
	const struct command command = {
		TOOL, "tracking|sources|sourcestats|history|waitsync|hold|resume|recompute LOG [options]",
		"What the time service knows: tracking: the clock; sources: its servers; sourcestats: what was refused of them;\n"
		"history: of the offsets. waitsync: wait until a service gives a time. hold: ask no server any more; resume: ask them again.\n"
		"recompute: compute each batch of a log of bw-timed --log-exchanges again, and compare.\n"
		"Marks of sources: ^* the best server, ^+ combined with it, ^- answers, but is not used, ^x outside the majority,\n"
		"^? not heard, ^! denies. Reach: the last eight batches, octal, the newest in the lowest bit. LastRx: seconds since its last\n"
		"good answer. Offset: of this clock against the server, positive: ahead; +/-: the bound of that. Delay: of the round trip.\n"
		"Exit codes: 0 done, 2 bad input, 3 no service, or not permitted, 4 tracking: not synchronised;\n"
		"recompute: a batch differs. Of waitsync: 0 there is a time,\n"
		"1 time-out, 2 never: the counter is refused, the service has ended, or there is none, and no other one has come; or bad input.\n",
		options, 1, 2,
	};
	const char *words[2] = { NULL, NULL };
	int parsed = options_parse(&command, argc, argv, words);

	if (parsed < 0)
		return options_exit_code(parsed);
	for (int i = 0; i < VERBS; i++) {
		if (strcmp(words[0], verb_names[i]) == 0) {
			arguments->verb = (enum verb)i;
			arguments->log = words[1];
			return check_log(arguments);
		}
	}
	fprintf(stderr, TOOL ": \"%s\" is unknown; allowed: tracking, sources, sourcestats, history, waitsync, hold, resume, recompute\n", words[0]);
	return EXIT_BAD_INPUT;
}

/* Hold or resume. Returns an exit code. */
static int tell(const struct timectl *ctl, enum verb verb)
{
	int err = ctl->line.state == TIMEPAGE_ENDED || !ctl->status.pid ?
			  -ESRCH :
			  waiter_tell((int64_t)ctl->status.pid, verb == HOLD ? WAIT_HOLD : WAIT_LISTEN);

	if (!err)
		return EXIT_DONE;
	fprintf(stderr, TOOL ": %s: %s\n", verb_names[verb],
		err == -ESRCH ? "no service runs" :
		err == -EPERM ? "not permitted: the service's own user and administrators may" : strerror(-err));
	return EXIT_CAPABILITY;
}

/* Wait until a service that runs gives a time. Returns an exit code. */
static int wait_sync(struct timectl *ctl, const struct arguments *arguments)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + arguments->timeout_s * NS_PER_S;

	for (;;) {
		int err = timectl_read(ctl, arguments->page);
		bool refused = !err && ctl->line.state == TIMEPAGE_REFUSED;
		bool ended = !err && ctl->line.state == TIMEPAGE_ENDED;

		if (!err && ctl->synchronised && !ended)
			return EXIT_DONE;
		if (refused || port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= deadline_monotonic_ns) {
			fprintf(stderr, TOOL ": waitsync: %s\n", err ? ctl->why : timepage_reason_name(ctl->line.reason));
			return err || refused || ended ? WAITSYNC_NEVER : WAITSYNC_TIMED_OUT;
		}
		port_sleep_ns(WAITSYNC_LOOK_NS);
	}
}

/* Do what the command line says. Returns an exit code. */
static int run(struct timectl *ctl, const struct arguments *arguments)
{
	port_init();
	if (arguments->verb == RECOMPUTE)
		return recompute_log(arguments);
	if (arguments->verb == WAITSYNC)
		return wait_sync(ctl, arguments);
	if (timectl_read(ctl, arguments->page)) {
		fprintf(stderr, TOOL ": %s\n", ctl->why);
		return EXIT_CAPABILITY;
	}
	switch (arguments->verb) {
	case TRACKING:
		timectl_tracking(ctl, arguments->json);
		return ctl->synchronised ? EXIT_DONE : EXIT_INVALID;
	case SOURCES:
		timectl_sources(ctl, arguments->json);
		return EXIT_DONE;
	case SOURCESTATS:
		timectl_sourcestats(ctl, arguments->json);
		return EXIT_DONE;
	case HISTORY:
		timectl_history(ctl, arguments->json, (int)arguments->last);
		return EXIT_DONE;
	default:
		return tell(ctl, arguments->verb);
	}
}

int main(int argc, char **argv)
{
	struct arguments arguments = { .last = 32, .timeout_s = 60 };
	struct timectl *ctl = calloc(1, sizeof(*ctl));
	int code = ctl ? arguments_parse(&arguments, argc, argv) : EXIT_CAPABILITY;

	if (code < 0)
		code = exit_code_if_written(TOOL, run(ctl, &arguments));
	free(ctl);
	return code;
}
