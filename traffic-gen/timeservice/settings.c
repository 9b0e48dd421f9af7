/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config/options.h"
#include "timeservice/keys.h"

enum { NUMBERS_AT = 3 }; /* among the options */
enum { NTP_PORT = 123, SERVER_TEXT_BYTES = 256, INTERVAL_MAX_MS = 86400000, WAY_MAX_NS = 1000000000 };

#define OF(member) offsetof(struct settings, member)

const char *const SETTINGS_FEEDS[] = { "none", "kernel", "chrony", NULL };

const struct settings_number SETTINGS_NUMBER[SETTINGS_NUMBERS] = {
	{ "interval-ms", OF(interval_ms), 100, INTERVAL_MAX_MS, "from batch to batch (30000)" },
	{ "batch", OF(batch), 1, ESTIMATE_BATCH_MAX, "exchanges of a batch (16)" },
	{ "gap-us", OF(gap_us), 0, 1000000, "from exchange to exchange (2000)" },
	{ "timeout-ms", OF(timeout_ms), 1, 60000, "for an answer (500)" },
	{ "quick-batches", OF(quick_batches), 0, 1000,
	  "batches at the start, and after a contradiction, that come soon; then the interval grows, twofold each time (8)" },
	{ "quick-interval-ms", OF(quick_interval_ms), 10, 3600000, "from one of them to the next (1000)" },
	{ "confirm-batches", OF(confirm_batches), 1, 64, "batches that must agree before a server is believed (3)" },
	{ "check-interval-ms", OF(check_interval_ms), 0, INTERVAL_MAX_MS,
	  "one exchange between batches, to notice that the counter stopped or the server's time jumped; 0: none (1000)" },
	{ "min-servers", OF(min_servers), 1, SELECT_MAX, "so many must agree (1)" },
	{ "drift-limit-ppb", OF(estimate.drift_limit_ppb), 0, 1000000,
	  "the counter's rate stays that near to its mean of the last minutes: what the interval rests on (15000)" },
	{ "asymmetry-percent", OF(estimate.asymmetry_percent), 0, 100,
	  "of the round trip, by which the ways may differ for good: a part of U alone (10)" },
	{ "rate-limit-ppb", OF(estimate.rate_limit_ppb), 1000, 10000000, "largest rate between them (500000)" },
	{ "step-ns", OF(publish.step_ns), 1000, 1000000000, "larger corrections are steps (10000000)" },
	{ "bound-max-ns", OF(publish.bound_max_ns), 1000, 10000000000, "a time that is less sure than that is none (100000000)" },
	{ "slew-ppm", OF(publish.slew_ppm), 1, 500, "fastest slew (500)" },
	{ "tai-utc-s", OF(tai_utc_s), 0, 255, "TAI - UTC; 0: what the kernel says at the start, if it says anything (0)" },
	{ "feed-unit", OF(feed_unit), 0, 255, "of chrony's SHM reference clock (0)" },
	{ "priority", OF(priority), 0, 99, "SCHED_FIFO; 0: none (0)" },
};

struct settings settings_default(void)
{
	return (struct settings){
		.interval_ms = 30000,
		.batch = 16,
		.gap_us = 2000,
		.timeout_ms = 500,
		.quick_batches = 8,
		.quick_interval_ms = 1000,
		.confirm_batches = 3,
		.check_interval_ms = 1000,
		.min_servers = 1,
		.estimate = estimate_default_settings(),
		.publish = publish_default_settings(),
	};
}

static int refuse_server(char error[SETTINGS_ERROR_BYTES], const char *text, const char *what)
{
	snprintf(error, SETTINGS_ERROR_BYTES, "\"%.128s\": %s", text, what);
	return -EINVAL;
}

/* One KEY=VALUE of a server. */
static int server_option(struct server_settings *server, const char *text, char error[SETTINGS_ERROR_BYTES])
{
	static const struct {
		const char *key;
		int64_t min, max;
	} keys[] = { { "min-delay-ns", 0, WAY_MAX_NS }, { "root-distance-ns", 0, WAY_MAX_NS }, { "interleaved", 0, 1 },
		     { "key", 1, KEYS_ID_MAX } };
	size_t length = strcspn(text, "=");
	int64_t value;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strlen(keys[i].key) != length || memcmp(keys[i].key, text, length) != 0)
			continue;
		if (text[length] != '=' || option_parse_int(text + length + 1, keys[i].min, keys[i].max, &value)) {
			snprintf(error, SETTINGS_ERROR_BYTES, "\"%.128s\": %s: allowed: %" PRId64 "..%" PRId64, text, keys[i].key,
				 keys[i].min, keys[i].max);
			return -EINVAL;
		}
		if (i == 0)
			server->min_way_ns = value;
		else if (i == 1)
			server->root_distance_ns = value;
		else if (i == 2)
			server->interleave = value != 0;
		else
			server->key = (uint32_t)value;
		return 0;
	}
	return refuse_server(error, text, "unknown; allowed: min-delay-ns=N, root-distance-ns=N, interleaved=0|1, key=N");
}

int settings_add_server(struct settings *settings, const char *text, char error[SETTINGS_ERROR_BYTES])
{
	struct server_settings server = { .root_distance_ns = SERVER_ROOT_AS_SAID, .interleave = true };
	char rest[SERVER_TEXT_BYTES], *at;

	if (strlen(text) >= sizeof(rest))
		return refuse_server(error, text, "too long");
	snprintf(rest, sizeof(rest), "%s", text);
	at = rest + strcspn(rest, ",");
	if (*at)
		*at++ = '\0';
	server.address.port = NTP_PORT;
	if ((address_parse(rest, &server.address) && address_parse_ipv4(rest, &server.address.ipv4)) || server.address.is_ipv6)
		return refuse_server(error, rest, "must be an IPv4 address, with :PORT perhaps");
	while (*at) {
		char *end = at + strcspn(at, ",");
		bool more = *end != '\0';
		int err;

		*end = '\0';
		err = server_option(&server, at, error);
		if (err)
			return err;
		at = more ? end + 1 : end;
	}
	for (int i = 0; i < settings->server_count; i++)
		if (settings->servers[i].address.ipv4 == server.address.ipv4 && settings->servers[i].address.port == server.address.port)
			return refuse_server(error, rest, "is given twice");
	if (settings->server_count == SELECT_MAX)
		return refuse_server(error, rest, "one server too many; allowed: 16");
	settings->servers[settings->server_count++] = server;
	return 0;
}

static int copy_path(char *to, const char *text, const char *name)
{
	if (!text)
		return 0;
	if (strlen(text) >= SETTINGS_PATH_BYTES) {
		fprintf(stderr, TIMED_TOOL ": --%s: too long; allowed: %d bytes\n", name, SETTINGS_PATH_BYTES - 1);
		return -EINVAL;
	}
	snprintf(to, SETTINGS_PATH_BYTES, "%s", text);
	return 0;
}

static int parse_feed(const char *text, int64_t *feed)
{
	for (int i = 0; text && SETTINGS_FEEDS[i]; i++) {
		if (strcmp(text, SETTINGS_FEEDS[i]) == 0) {
			*feed = i;
			return 0;
		}
	}
	if (!text)
		return 0;
	fprintf(stderr, TIMED_TOOL ": --feed: \"%s\" is unknown; allowed: none, kernel, chrony\n", text);
	return -EINVAL;
}

static int check_keys(const struct settings *settings)
{
	char text[ADDRESS_TEXT_BYTES];

	for (int i = 0; i < settings->server_count; i++) {
		const struct server_settings *server = &settings->servers[i];

		if (!server->key || settings->key_file[0])
			continue;
		fprintf(stderr, TIMED_TOOL ": server %s: key %" PRIu32 ", but no file of keys; give --key-file PATH, or key_file in --config\n",
			address_format(&server->address, text), server->key);
		return -EINVAL;
	}
	return 0;
}

/* What cannot be said of one option alone. */
static int check(const struct settings *settings)
{
	if (settings->server_count == 0)
		fprintf(stderr, TIMED_TOOL ": no server; give --server ADDRESS, or a [[server]] of --config\n");
	else if (settings->min_servers > settings->server_count)
		fprintf(stderr, TIMED_TOOL ": --min-servers: %" PRId64 " of %d servers\n", settings->min_servers, settings->server_count);
	else
		return check_keys(settings);
	return -EINVAL;
}

/* The file is read first, whatever the order, so that the command line is over it. */
static int read_config(struct settings *settings, int argc, char **argv)
{
	char error[SETTINGS_ERROR_BYTES];
	const char *path = NULL;
	int err;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
			path = argv[++i];
		else if (strncmp(argv[i], "--config=", 9) == 0)
			path = argv[i] + 9;
	}
	if (!path)
		return 0;
	err = settings_read_file(settings, path, error);
	if (err)
		fprintf(stderr, TIMED_TOOL ": %s\n", error);
	return err;
}

int settings_parse(struct settings *settings, int argc, char **argv)
{
	const char *server_texts[SELECT_MAX], *page = NULL, *log = NULL, *feed = NULL, *config = NULL, *key_file = NULL;
	struct option_texts servers = { server_texts, SELECT_MAX, 0 };
	struct option options[] = {
		{ "config", OPTION_TEXT, &config, 0, 0, "FILE", "settings; what is given here is over them", false },
		{ "server", OPTION_TEXTS, &servers, 0, 0, "ADDRESS[:PORT][,KEY=N…]",
		  "IPv4 address of a server, once or more; keys: min-delay-ns (each way takes that at least), root-distance-ns "
		  "(from it to UTC, instead of what it says), interleaved (0: do not ask for it), key (id in --key-file: only what is authenticated by it is believed)", false },
		{ "key-file", OPTION_TEXT, &key_file, 0, 0, "PATH",
		  "keys of servers, as chrony has them: lines ID AES128|AES256 [HEX:]KEY; its owner alone may read it", false },
		[NUMBERS_AT + SETTINGS_NUMBERS] =
		{ "no-interleave", OPTION_FLAG, &settings->no_interleave, 0, 0, NULL, "ask no server for the interleaved mode", false },
		{ "user-stamps", OPTION_FLAG, &settings->user_stamps, 0, 0, NULL, "do not use the kernel's stamps", false },
		{ "any-counter", OPTION_FLAG, &settings->any_counter, 0, 0, NULL,
		  "use a counter that promises no constant rate, or that the kernel does not keep time with", false },
		{ "page", OPTION_TEXT, &page, 0, 0, "PATH", "the shared page (BWTIME_PAGE, or the system's place)", false },
		{ "log", OPTION_TEXT, &log, 0, 0, "PATH", "NDJSON goes there, at its end (stdout)", false },
		{ "log-exchanges", OPTION_FLAG, &settings->log_exchanges, 0, 0, NULL,
		  "log each exchange too, so that bw-timectl recompute can compute the time again", false },
		{ "feed", OPTION_TEXT, &feed, 0, 0, "none|kernel|chrony", "hand the time on (none)", false },
		{ "batches", OPTION_INT, &settings->batches_max, 0, INT64_C(1000000000), "N", "end after N batches; 0: at SIGTERM (0)",
		  false },
		{ 0 },
	};
	const struct command command = {
		TIMED_TOOL, "--server ADDRESS[:PORT][,KEY=N…] [options]",
		"The time service: asks NTP servers by the processor's counter, and tells readers (libbwtime) UTC and its bound in shared\n"
		"memory. Steers no clock. SIGUSR1: hold, ask nobody; SIGUSR2: ask again; SIGTERM: end. See bw-timectl.\n"
		"Exit codes: 0 done, 2 bad input, 3 this machine lacks something, its counter cannot serve for example; to be started again:\n"
		"4 the counter's rate has changed, 5 something failed while it ran.\n",
		options, 0, 0,
	};
	char error[SETTINGS_ERROR_BYTES];
	int parsed;

	for (int i = 0; i < SETTINGS_NUMBERS; i++) {
		const struct settings_number *number = &SETTINGS_NUMBER[i];

		options[NUMBERS_AT + i] = (struct option){ number->name, OPTION_INT, settings_number(settings, i), number->min,
							   number->max, "N", number->help, false };
	}
	if (read_config(settings, argc, argv))
		return EXIT_BAD_INPUT;
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	if (servers.count)
		settings->server_count = 0; /* those of the file are others */
	for (int i = 0; i < servers.count; i++) {
		if (settings_add_server(settings, server_texts[i], error)) {
			fprintf(stderr, TIMED_TOOL ": --server: %s\n", error);
			return EXIT_BAD_INPUT;
		}
	}
	if (copy_path(settings->page, page, "page") || copy_path(settings->log, log, "log") ||
	    copy_path(settings->key_file, key_file, "key-file") || parse_feed(feed, &settings->feed) ||
	    check(settings))
		return EXIT_BAD_INPUT;
	for (int i = 0; i < settings->server_count; i++) {
		settings->servers[i].interleave = settings->servers[i].interleave && !settings->no_interleave;
		settings->servers[i].user_stamps = settings->user_stamps;
	}
	return -1;
}
