/* SPDX-License-Identifier: Apache-2.0 */
/* The verb echo: a STAMP Session-Reflector. */
#include "traffic/roundtrip/roundtrip.h"

#include <errno.h>
#include <stdio.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/time_units.h"
#include "traffic/verbs.h"

#define TOOL "bw-traffic echo"

enum { OWN_OPTIONS = 5 };

struct echo_options {
	const char *listen;
	int64_t duration_ms; /* 0: until a stop is requested */
	int64_t hold_us;
	bool stateful, delays_in_residence;
};

static void print_ready(struct json *json, const struct side *side)
{
	struct address local = { 0 };
	char text[ADDRESS_TEXT_BYTES];

	port_socket_local(side->sock, &local);
	answer_begin(json, "ready", side->tool);
	json_string(json, "address", address_format(&local, text));
	json_bool(json, "kernel_stamps", side->kernel_stamps);
	answer_end(json);
}

static void print_result(struct json *json, const struct reflector *reflector, bool complete,
			 const struct port_scheduling *scheduling)
{
	answer_result(json, reflector->side.tool);
	answer_valid_unless(json, complete, complete ? NULL : "stopped before its end");
	json_uint(json, "received", reflector->received);
	json_uint(json, "reflected", reflector->reflected);
	json_uint(json, "malformed", reflector->malformed);
	json_uint(json, "unsent", reflector->unsent);
	json_int(json, "hold_us", reflector->hold_ns / NS_PER_US);
	side_write_delays(json, &reflector->side);
	summary_histogram(json, "residence", reflector->residence);
	summary_histogram(json, "receive_stack", reflector->receive_stack);
	summary_histogram(json, "transmit_stack", reflector->transmit_stack);
	summary_scheduling(json, scheduling);
	answer_end(json);
}

static int create_histograms(struct reflector *reflector)
{
	struct histogram **const all[] = { &reflector->residence, &reflector->receive_stack, &reflector->transmit_stack };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i] = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
		if (!*all[i])
			return -errno;
	}
	return 0;
}

static void destroy_histograms(struct reflector *reflector)
{
	histogram_destroy(reflector->residence);
	histogram_destroy(reflector->receive_stack);
	histogram_destroy(reflector->transmit_stack);
}

/* Without a duration it ends by a signal: that is its way to be complete. */
static int reflect_until_end(struct reflector *reflector, const struct echo_options *options)
{
	bool bounded = options->duration_ms > 0, complete;
	struct port_scheduling scheduling;
	struct json json;
	int code;

	json_init(&json, stdout);
	print_ready(&json, &reflector->side);
	reflector->end_monotonic_ns = bounded ? port_clock_now_ns(PORT_CLOCK_MONOTONIC) + options->duration_ms * NS_PER_MS :
						INT64_MAX;
	code = side_run(&reflector->side, reflector_run, reflector, NULL, &scheduling);
	if (code)
		return code;
	complete = !bounded || !port_stop_requested();
	print_result(&json, reflector, complete, &scheduling);
	return complete ? EXIT_DONE : EXIT_INVALID;
}

static int run_echo(struct reflector *reflector, const struct echo_options *options)
{
	struct address local;
	int err, code;

	if (!options->listen || address_parse(options->listen, &local))
		return option_refuse(TOOL, "--listen", options->listen, ADDRESS_FORM);
	port_stop_install();
	port_tai_init(&reflector->side.tai, (int)reflector->side.options.tai_utc_s);
	err = create_histograms(reflector);
	if (err) {
		code = side_fail(&reflector->side, "cannot make", "the histograms", err);
		goto out;
	}
	err = side_open(&reflector->side, &local);
	if (err) {
		code = side_fail(&reflector->side, "cannot listen at", options->listen, err);
		goto out;
	}
	code = reflect_until_end(reflector, options);
	side_close(&reflector->side);
out:
	destroy_histograms(reflector);
	return code;
}

int verb_echo(int argc, char **argv)
{
	static struct reflector reflector;
	struct echo_options chosen = { 0 };
	struct option options[OWN_OPTIONS + SIDE_OPTIONS + 1] = {
		{ .name = "listen", .kind = OPTION_TEXT, .target = &chosen.listen, .argument = "ADDRESS:PORT",
		  .help = "send back what comes there" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &chosen.duration_ms, .min = 0, .max = INT64_C(604800000),
		  .argument = "N", .help = "how long, 0..604800000 ms (default 0: until SIGTERM)" },
		{ .name = "hold-us", .kind = OPTION_INT, .target = &chosen.hold_us, .min = 0, .max = 1000000, .argument = "N",
		  .help = "sleep between receiving and sending, 0..1000000 us (default 0); it is part of the residence" },
		{ .name = "stateful", .kind = OPTION_FLAG, .target = &chosen.stateful,
		  .help = "number replies by their own count, not as the requests: shows on which way packets are lost" },
		{ .name = "delays-in-residence", .kind = OPTION_FLAG, .target = &chosen.delays_in_residence,
		  .help = "the known delays lie between the stamps: as long a wait, which the residence tells" },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--listen ADDRESS:PORT [options]",
		.about = "Send STAMP test packets back (RFC 8762, unauthenticated; RFC 8972 padding), stamped at receiving and sending.\n",
		.options = options,
	};
	int parsed;

	reflector.side.tool = TOOL;
	reflector.side.options = side_defaults;
	side_add_options(options + OWN_OPTIONS, &reflector.side.options);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	reflector.stateful = chosen.stateful;
	reflector.delays_in_residence = chosen.delays_in_residence;
	reflector.hold_ns = chosen.hold_us * NS_PER_US;
	return run_echo(&reflector, &chosen);
}
