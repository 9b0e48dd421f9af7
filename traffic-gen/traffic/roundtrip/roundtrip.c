/* SPDX-License-Identifier: Apache-2.0 */
/* The verb roundtrip: a STAMP Session-Sender. */
#include "traffic/roundtrip/roundtrip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/time_units.h"
#include "traffic/verbs.h"

#define TOOL "bw-traffic roundtrip"

enum { COUNT_DEFAULT = 1000 };

struct roundtrip_options {
	const char *peer, *series;
	int64_t size_bytes, interval_us, timeout_ms;
	int64_t count, duration_ms; /* 0: not given */
	int64_t first_tai_ns, turn_trips, turn_every_us; /* likewise */
	int64_t turn_run_up;
};

struct roundtrip {
	struct prober prober;
	struct json json;
	FILE *series_file; /* NULL: none is asked for */
};

static void print_ready(struct roundtrip *run)
{
	answer_begin(&run->json, "ready", run->prober.side.tool);
	json_bool(&run->json, "kernel_stamps", run->prober.side.kernel_stamps);
	json_int(&run->json, "tai_utc_s", run->prober.side.tai.tai_utc_s);
	answer_end(&run->json);
}

/* What it measures belongs to the thread that measures: only tallies are read meanwhile. */
static void print_progress(void *argument, int64_t elapsed_ns)
{
	struct roundtrip *run = argument;

	answer_begin(&run->json, "progress", run->prober.side.tool);
	json_int(&run->json, "elapsed_ms", elapsed_ns / NS_PER_MS);
	json_uint(&run->json, "sent", tally_get(&run->prober.sent));
	json_uint(&run->json, "received", tally_get(&run->prober.received));
	answer_end(&run->json);
}

/* Return whether the result is valid. */
static bool print_validity(struct roundtrip *run)
{
	const struct prober *prober = &run->prober;
	const char *reasons[3];
	size_t count = 0;

	if (!prober->complete)
		reasons[count++] = "stopped before its end";
	if (tally_get(&prober->received) == 0)
		reasons[count++] = prober->invalid ? "no answer of the peer was possible" : "the peer has not answered";
	if (prober->watch.count)
		reasons[count++] = "the local clock was stepped";
	return answer_validity(&run->json, prober->complete, reasons, count);
}

static int print_result(struct roundtrip *run, const struct roundtrip_options *options,
			const struct port_scheduling *scheduling)
{
	const struct prober *prober = &run->prober;
	struct json *json = &run->json;
	bool valid;

	answer_result(json, prober->side.tool);
	json_string(json, "peer", options->peer);
	json_int(json, "size_bytes", options->size_bytes);
	json_int(json, "interval_us", options->interval_us);
	json_uint(json, "sent", tally_get(&prober->sent));
	json_uint(json, "received", tally_get(&prober->received));
	json_uint(json, "lost", tally_get(&prober->sent) - tally_get(&prober->received) - prober->invalid);
	json_uint(json, "late", prober->late);
	json_uint(json, "duplicates", prober->duplicates);
	json_uint(json, "foreign", prober->foreign);
	json_uint(json, "invalid", prober->invalid);
	json_uint(json, "unsent", prober->unsent);
	valid = print_validity(run);
	side_write_delays(json, &prober->side);
	summary_histogram(json, "round_trip", prober->round_trip);
	summary_histogram(json, "residence", prober->residence);
	summary_histogram(json, "round_trip_without_residence", prober->round_trip_without_residence);
	summary_histogram(json, "own_send", prober->own_send);
	summary_histogram(json, "own_receive", prober->own_receive);
	summary_histogram(json, "below_stamps", prober->below_stamps);
	json_array_open(json, "clock_steps");
	summary_steps(json, &prober->watch);
	json_array_close(json);
	summary_scheduling(json, scheduling);
	answer_end(json);
	return valid ? EXIT_DONE : EXIT_INVALID;
}

/* Return 0 or -errno. */
static int create(struct prober *prober)
{
	struct histogram **const all[] = { &prober->round_trip, &prober->residence, &prober->round_trip_without_residence,
					   &prober->own_send, &prober->own_receive, &prober->below_stamps };

	prober->trips = trips_create(prober->count);
	if (!prober->trips)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i] = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
		if (!*all[i])
			return -errno;
	}
	return 0;
}

static void destroy(struct prober *prober)
{
	free(prober->trips);
	histogram_destroy(prober->round_trip);
	histogram_destroy(prober->residence);
	histogram_destroy(prober->round_trip_without_residence);
	histogram_destroy(prober->own_send);
	histogram_destroy(prober->own_receive);
	histogram_destroy(prober->below_stamps);
}

/* Write and close the series, if there is one. Return 0 or -errno, with a line on stderr. */
static int write_series(struct roundtrip *run, const char *path)
{
	const struct prober *prober = &run->prober;
	int err;

	if (!run->series_file)
		return 0;
	err = trips_write(run->series_file, prober->trips, prober->next_sequence, port_tai_from_realtime_ns(&prober->side.tai, 0));
	if (fclose(run->series_file) && !err)
		err = -errno;
	if (err)
		fprintf(stderr, TOOL ": %s: %s\n", path, strerror(-err));
	return err;
}

static void run_prober(void *argument)
{
	struct roundtrip *run = argument;

	prober_run(&run->prober);
}

static int measure(struct roundtrip *run, const struct roundtrip_options *options)
{
	struct port_scheduling scheduling;
	int err, code;

	json_init(&run->json, stdout);
	print_ready(run);
	stepwatch_init(&run->prober.watch, &run->prober.side.tai);
	code = side_run(&run->prober.side, run_prober, run, print_progress, &scheduling);
	if (code)
		return code;
	err = write_series(run, options->series);
	code = print_result(run, options, &scheduling);
	return err ? EXIT_CAPABILITY : code;
}

static int run_roundtrip(struct roundtrip *run, const struct roundtrip_options *options)
{
	struct prober *prober = &run->prober;
	const struct address any = { .is_ipv6 = prober->peer.is_ipv6 };
	int64_t seed;
	int code, err = port_seed_draw(&seed);

	if (err)
		return side_fail(&prober->side, "cannot draw", "a session", err);
	prober->jitter.state = (uint64_t)seed;
	prober->ssid = (uint16_t)(1 + (uint64_t)seed % UINT16_MAX); /* 0: a session without */
	port_stop_install();
	port_tai_init(&prober->side.tai, (int)prober->side.options.tai_utc_s);
	err = create(prober);
	if (err) {
		code = side_fail(&prober->side, "cannot keep", "so many trips", err);
		goto out;
	}
	err = side_open(&prober->side, &any);
	if (err) {
		code = side_fail(&prober->side, "cannot open", "a socket", err);
		goto out;
	}
	code = measure(run, options);
	side_close(&prober->side);
out:
	destroy(prober);
	return code;
}

/* How many requests there may be: as many as the duration has room for, where only that is given. */
static int64_t count_of(const struct roundtrip_options *options)
{
	if (options->count)
		return options->count;
	return options->duration_ms ? options->duration_ms * 1000 / options->interval_us + 1 : COUNT_DEFAULT;
}

/* Check what a single option cannot, and open the series. Return 0 or -EINVAL, with a line on stderr. */
static int take_options(struct roundtrip *run, const struct roundtrip_options *options)
{
	struct prober *prober = &run->prober;

	if (!options->peer || address_parse(options->peer, &prober->peer)) {
		option_refuse(TOOL, "--peer", options->peer, ADDRESS_FORM);
		return -EINVAL;
	}
	if (count_of(options) > TRIPS_MAX) {
		fprintf(stderr, TOOL ": --duration-ms has room for %lld requests; allowed: %d, or a --count\n",
			(long long)count_of(options), TRIPS_MAX);
		return -EINVAL;
	}
	if (!options->turn_trips != !options->turn_every_us ||
	    options->turn_trips * options->interval_us > options->turn_every_us) {
		fprintf(stderr, TOOL ": --turn-every-us: %lld; needed with --turn-trips: at least %lld, its requests' time\n",
			(long long)options->turn_every_us, (long long)options->turn_trips * options->interval_us);
		return -EINVAL;
	}
	if (options->turn_run_up && options->turn_run_up >= options->turn_trips) {
		fprintf(stderr, TOOL ": --turn-run-up: %lld; allowed: fewer than --turn-trips, %lld\n",
			(long long)options->turn_run_up, (long long)options->turn_trips);
		return -EINVAL;
	}
	prober->turns = (struct turns){
		.first_tai_ns = options->first_tai_ns,
		.trips = (size_t)options->turn_trips,
		.run_up = (size_t)options->turn_run_up,
		.every_ns = options->turn_every_us * NS_PER_US,
	};
	prober->size_bytes = (size_t)options->size_bytes;
	prober->count = (size_t)count_of(options);
	prober->interval_ns = options->interval_us * NS_PER_US;
	prober->timeout_ns = options->timeout_ms * NS_PER_MS;
	prober->duration_ns = options->duration_ms ? options->duration_ms * NS_PER_MS : INT64_MAX;
	if (!options->series)
		return 0;
	run->series_file = fopen(options->series, "wb");
	if (!run->series_file) {
		fprintf(stderr, TOOL ": %s: %s\n", options->series, strerror(errno));
		return -EINVAL;
	}
	return 0;
}

int verb_roundtrip(int argc, char **argv)
{
	static struct roundtrip run;
	struct roundtrip_options chosen = { .size_bytes = STAMP_PACKET_BYTES, .interval_us = 10000, .timeout_ms = 1000 };
	struct option options[11 + SIDE_OPTIONS + 1] = {
		{ .name = "peer", .kind = OPTION_TEXT, .target = &chosen.peer, .argument = "ADDRESS:PORT",
		  .help = "the reflector: bw-traffic echo, or another one" },
		{ .name = "size-bytes", .kind = OPTION_INT, .target = &chosen.size_bytes, .min = STAMP_PACKET_BYTES,
		  .max = STAMP_DATAGRAM_BYTES_MAX, .argument = "N", .help = "UDP payload each way, 44..65507 bytes (default 44)" },
		{ .name = "count", .kind = OPTION_INT, .target = &chosen.count, .min = 1, .max = TRIPS_MAX, .argument = "N",
		  .help = "requests at most, 1..1000000 (default: as --duration-ms has room for, or 1000)" },
		{ .name = "interval-us", .kind = OPTION_INT, .target = &chosen.interval_us, .min = 100, .max = 10000000,
		  .argument = "N", .help = "grid of the requests, each up to a tenth later, 100..10000000 us (default 10000)" },
		{ .name = "timeout-ms", .kind = OPTION_INT, .target = &chosen.timeout_ms, .min = 1, .max = 60000, .argument = "N",
		  .help = "a reply after that is late, 1..60000 ms (default 1000)" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &chosen.duration_ms, .min = 1, .max = INT64_C(604800000),
		  .argument = "N", .help = "how long at most, 1..604800000 ms (default: until --count)" },
		{ .name = "first-tai-ns", .kind = OPTION_INT, .target = &chosen.first_tai_ns, .min = 0, .max = INT64_MAX, .argument = "N",
		  .help = "local TAI of the first request (default: at once)" },
		{ .name = "turn-trips", .kind = OPTION_INT, .target = &chosen.turn_trips, .min = 0, .max = TRIPS_MAX, .argument = "N",
		  .help = "take turns with other senders: requests of a turn, 0..1000000 (default 0: no turns)" },
		{ .name = "turn-every-us", .kind = OPTION_INT, .target = &chosen.turn_every_us, .min = 0,
		  .max = INT64_C(3600000000), .argument = "N", .help = "from one turn's first request to the next's, 0..3600000000 us" },
		{ .name = "turn-run-up", .kind = OPTION_INT, .target = &chosen.turn_run_up, .min = 0, .max = TRIPS_MAX, .argument = "N",
		  .help = "requests at the beginning of each turn that do not count, 0..1000000 (default 0)" },
		{ .name = "series", .kind = OPTION_TEXT, .target = &chosen.series, .argument = "FILE",
		  .help = "write each round trip there at the end, as CSV" },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--peer ADDRESS:PORT [options]",
		.about = "Time round trips to a STAMP reflector (RFC 8762, unauthenticated), one request at a time.\n",
		.options = options,
	};
	int parsed;

	run.prober.side.tool = TOOL;
	run.prober.side.options = side_defaults;
	side_add_options(options + 11, &run.prober.side.options);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	return take_options(&run, &chosen) ? EXIT_BAD_INPUT : run_roundtrip(&run, &chosen);
}
