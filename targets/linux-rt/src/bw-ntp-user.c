/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-ntp-user - an NTP client that stamps in user space: the baseline that papers call standard NTP
 *
 * It reads the clock just before it sends and just after it has received, so that all that the kernel and the scheduler do
 * to a packet is an error of the measurement: that is its point. What it measures it gives to the kernel's own phase-locked
 * loop (ntp_adjtime), by the clock filter and the state machine of RFC 5905. One NDJSON object a poll goes to stdout.
 *
 * SIGUSR1: stop listening to the server, keep the frequency (holdover); SIGUSR2: listen again; SIGTERM: end.
 */
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/json.h"
#include "ntp_client.h"
#include "ntp_servo.h"
#include "config/options.h"
#include "port/port_frequency.h"
#include "port/port_wait.h"

#define TIME_STEP_NS INT64_C(128000000)
#define TIME_STEPOUT_MS INT64_C(300000)
#define TIME_PANIC_MS INT64_C(1000000)
#define LONG_MS INT64_C(1000000000)

enum {
	NTP_PORT = 123, INTERVAL_DEFAULT_MS = 1000, INIT_INTERVAL_DEFAULT_MS = 1000, INIT_POLLS_DEFAULT = 16,
	TIMEOUT_DEFAULT_MS = 1000
};

struct arguments {
	const char *server_text;
	int64_t port;
	struct ntp_client_settings settings;
};

/* Read the command line. Returns an exit code, or -1: go on. */
static int arguments_parse(struct arguments *arguments, int argc, char **argv)
{
	struct ntp_client_settings *settings = &arguments->settings;
	const struct option options[] = {
		{ "server", OPTION_TEXT, &arguments->server_text, 0, 0, "ADDRESS", "IPv4 address of the server", false },
		{ "port", OPTION_INT, &arguments->port, 1, 65535, "N", "its UDP port (123)", false },
		{ "interval-ms", OPTION_INT, &settings->interval_ms, 10, 3600000, "N", "from poll to poll (1000)", false },
		{ "timeout-ms", OPTION_INT, &settings->timeout_ms, 1, 60000, "N", "for an answer (1000)", false },
		{ "init-polls", OPTION_INT, &settings->init_polls, 2, NTP_INIT_POLLS_MAX, "N",
		  "polls of the first measurement of the frequency, the shorter half of which counts (16)", false },
		{ "init-interval-ms", OPTION_INT, &settings->init_interval_ms, 10, 3600000, "N",
		  "from poll to poll meanwhile, where --interval-ms is longer (1000)", false },
		{ "filter", OPTION_INT, &settings->filter, 1, NTP_FILTER_MAX, "N",
		  "of so many samples the one of the shortest round trip is used (8)", false },
		{ "time-constant", OPTION_INT, &settings->constant, 0, NTP_CONSTANT_MAX, "N",
		  "of the kernel's loop (log2 of the interval in s, less 4)", false },
		{ "step-ns", OPTION_INT, &settings->step_ns, 1000, 500000000, "N", "larger offsets are stepped (128000000)", false },
		{ "stepout-ms", OPTION_INT, &settings->stepout_ms, 0, LONG_MS, "N",
		  "but after the start only when they last; 0: never (300000)", false },
		{ "panic-ms", OPTION_INT, &settings->panic_ms, 0, LONG_MS, "N", "larger offsets end the client; 0: none (1000000)",
		  false },
		{ "polls", OPTION_INT, &settings->polls_max, 0, LONG_MS, "N", "end after N polls; 0: at SIGTERM (0)", false },
		{ "no-discipline", OPTION_FLAG, &settings->measure_only, 0, 0, NULL, "only measure; touch no clock", false },
		{ 0 },
	};
	const struct command command = {
		NTP_TOOL, "--server ADDRESS [options]",
		"An NTPv4 client that stamps in user space and disciplines CLOCK_REALTIME through the kernel's loop (RFC 5905).\n"
		"offset_ns positive: this clock is ahead; freq_ppb positive: it is made faster. SIGUSR1: keep the frequency and stop\n"
		"listening; SIGUSR2: listen again.\n"
		"Exit codes: 0 done, 2 bad input, 3 not permitted, 4 the server refuses, or is further off than --panic-ms.\n",
		options, 0, 0,
	};
	int parsed = options_parse(&command, argc, argv, NULL);

	if (parsed < 0)
		return options_exit_code(parsed);
	if (!arguments->server_text || address_parse_ipv4(arguments->server_text, &settings->server.ipv4)) {
		fprintf(stderr, NTP_TOOL ": --server: must be an IPv4 address, found \"%s\"\n",
			arguments->server_text ? arguments->server_text : "");
		return EXIT_BAD_INPUT;
	}
	settings->server.port = (uint16_t)arguments->port;
	return -1;
}

static int run(const struct ntp_client_settings *settings, struct ntp_client *client)
{
	struct frequency_clock clock = { .fd = -1 };
	struct waiter waiter;
	struct json json;
	int err = waiter_open(&waiter, true);

	if (!err)
		err = waiter_open_socket(&waiter);
	if (!err)
		err = frequency_open(&clock, NULL);
	if (!err) {
		json_init(&json, stdout);
		ntp_client_init(client, settings, &waiter, &clock, &json);
		err = ntp_client_run(client);
	}
	frequency_close(&clock);
	waiter_close(&waiter);
	return err;
}

/* Say why it has ended. Returns the exit code. */
static int end_tell(int end, const struct arguments *arguments, const char *detail)
{
	if (end == NTP_END_REFUSED)
		fprintf(stderr, NTP_TOOL ": %s: the server refuses service: kiss-of-death %s\n", arguments->server_text, detail);
	else if (end == NTP_END_PANIC)
		fprintf(stderr, NTP_TOOL ": the clocks differ by %s: more than --panic-ms %lld; the server is wrong, or this clock\n",
			detail, (long long)arguments->settings.panic_ms);
	else if (end < 0)
		fprintf(stderr, NTP_TOOL ": %s\n", strerror(-end));
	if (end > 0)
		return EXIT_INVALID;
	return end ? EXIT_CAPABILITY : EXIT_DONE;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.port = NTP_PORT,
		.settings = {
			.interval_ms = INTERVAL_DEFAULT_MS,
			.timeout_ms = TIMEOUT_DEFAULT_MS,
			.init_interval_ms = INIT_INTERVAL_DEFAULT_MS,
			.init_polls = INIT_POLLS_DEFAULT,
			.constant = NTP_CONSTANT_AUTO,
			.step_ns = TIME_STEP_NS,
			.stepout_ms = TIME_STEPOUT_MS,
			.panic_ms = TIME_PANIC_MS,
			.filter = NTP_FILTER_MAX,
		},
	};
	struct ntp_client client;
	int code = arguments_parse(&arguments, argc, argv);

	return code >= 0 ? code : end_tell(run(&arguments.settings, &client), &arguments, client.end_detail);
}
