/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of single messages: an echo, and who times them. Half of one is the latency, as in the paper. */
#include "measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "answer/summary.h"
#include "base/histogram.h"
#include "base/time_units.h"
#include "events/bwevents.h"
#include "measurement.h"

/* Behind its number a message of an echo bears, as far as it has room, how long that took to receive it, from the driver on, and when it was there. */
enum {
	RECEIVING_AT = MESSAGE_MIN_BYTES,
	HEARD_AT = RECEIVING_AT + 8,
	MESSAGE_WITH_RECEIVING_BYTES = HEARD_AT,
	MESSAGE_WITH_HEARD_BYTES = HEARD_AT + 8,
};

/* In ns, least byte first. */
BW_EVENT_POINT(trip_sent, "rtdip", "sent", "a message of a round trip was sent; tag: its number");
BW_INTERVAL_POINT(whole_trip, "rtdip", "trip", "from before it was sent to its reply; tag: its number");
BW_EVENT_POINT(trip_lost, "rtdip", "lost", "no reply came in time; tag: its number");

static void put_ns(uint8_t *data, int64_t ns)
{
	for (size_t i = 0; i < sizeof(ns); i++)
		data[i] = (uint8_t)((uint64_t)ns >> 8 * i);
}

static int64_t get_ns(const uint8_t *data)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < sizeof(ns); i++)
		ns |= (uint64_t)data[i] << 8 * i;
	return (int64_t)ns;
}

struct echo {
	struct run run;
	uint64_t echoed, unsent;
};

static void run_echo(void *argument)
{
	static uint8_t data[MESSAGE_MAX_BYTES];
	struct echo *echo = argument;
	enum rtdip_priority priority;
	struct peer from;

	end_stamp_received(&echo->run.end);
	while (!port_stop_requested() && !echo->run.err) {
		int64_t length = measure_next_message(&echo->run, &from, &priority, data, sizeof(data));

		if (length < 0)
			continue;
		if (length >= MESSAGE_WITH_RECEIVING_BYTES)
			put_ns(data + RECEIVING_AT, echo->run.end.receiving_ns);
		if (length >= MESSAGE_WITH_HEARD_BYTES)
			put_ns(data + HEARD_AT, echo->run.end.heard_monotonic_ns);
		if (end_send(&echo->run.end, &from, priority, data, (size_t)length) < 0)
			echo->unsent++;
		else
			echo->echoed++;
	}
}

int verb_echo(int argc, char **argv)
{
	struct echo echo = { .run = { .tool = "bw-rtdip echo", .thread = "rtdip-echo", .common = measure_defaults } };
	struct option options[COMMON_OPTIONS + 1] = { { 0 } };
	const struct command command = {
		.name = echo.run.tool, .usage = "--local PORT|ADDRESS:PORT [options]",
		.about = "Send each message back to who sent it, until SIGTERM.\n", .options = options,
	};
	struct json json;
	int parsed, code;

	measure_add_options(options, &echo.run.common);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	code = measure_run(&echo.run, false, run_echo);
	if (code && code != EXIT_FAULT)
		return code;
	measure_open_line(&json, &echo.run, "result");
	json_uint(&json, "echoed", echo.echoed);
	json_uint(&json, "unsent", echo.unsent);
	measure_close_result(&json, &echo.run);
	return code;
}

/* A round trip by itself. */
struct trip {
	uint32_t number;
	int64_t round_trip_ns, receiving_ns, heard_monotonic_ns; /* the echo's clock; less than 0, and 0: it does not say */
};

struct latency {
	struct run run;
	int64_t count, interval_us, timeout_ms, run_up;
	bool each;
	struct trip *trips; /* room for count; NULL: not asked for */
	int64_t trip_count;
	uint32_t number; /* of the next trip, counted or not */
	uint64_t sent, lost, late;
	struct histogram *round_trip, *receiving;
};

static void record(struct latency *latency, int64_t round_trip_ns, uint32_t number, const uint8_t *reply, size_t size_bytes)
{
	const struct trip trip = {
		.number = number, .round_trip_ns = round_trip_ns,
		.receiving_ns = size_bytes < MESSAGE_WITH_RECEIVING_BYTES ? -1 : get_ns(reply + RECEIVING_AT),
		.heard_monotonic_ns = size_bytes < MESSAGE_WITH_HEARD_BYTES ? 0 : get_ns(reply + HEARD_AT),
	};

	histogram_record(latency->round_trip, round_trip_ns);
	if (trip.receiving_ns >= 0)
		histogram_record(latency->receiving, trip.receiving_ns);
	if (latency->trips)
		latency->trips[latency->trip_count++] = trip;
}

static void tell_trips(const struct latency *latency)
{
	struct json json;

	for (int64_t i = 0; i < latency->trip_count; i++) {
		const struct trip *trip = &latency->trips[i];

		measure_open_line(&json, &latency->run, "trip");
		json_uint(&json, "number", trip->number);
		json_int(&json, "round_trip_ns", trip->round_trip_ns);
		json_int(&json, "receiving_ns", trip->receiving_ns);
		json_int(&json, "heard_monotonic_ns", trip->heard_monotonic_ns);
		measure_close_line(&json);
	}
}

/* Make one round trip; its number tells its reply from a late one. One of the run-up does not count. */
static void make_trip(struct latency *latency, bool counts)
{
	static uint8_t data[MESSAGE_MAX_BYTES], reply[MESSAGE_MAX_BYTES];
	size_t size_bytes = (size_t)latency->run.common.size_bytes;
	int64_t begin_monotonic_ns, deadline_monotonic_ns, length;
	struct end *end = &latency->run.end;
	uint32_t number = latency->number++;
	uint64_t began_ticks;
	enum rtdip_priority priority;
	struct peer from;

	memcpy(data, &number, sizeof(number));
	began_ticks = BW_INTERVAL_BEGIN(whole_trip);
	begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	deadline_monotonic_ns = begin_monotonic_ns + latency->timeout_ms * NS_PER_MS;
	length = end_send(end, &latency->run.peer, latency->run.packets, data, size_bytes);
	if (length < 0) {
		latency->run.err = length == -EAGAIN ? 0 : (int)length;
		return;
	}
	BW_EVENT(trip_sent, number);
	latency->sent += counts;
	while (!port_stop_requested()) {
		length = measure_await_reply(&latency->run, deadline_monotonic_ns, &from, &priority, reply, sizeof(reply));
		if (length == (int64_t)size_bytes && memcmp(reply, &number, sizeof(number)) == 0 &&
		    end_is_same_peer(end, &from, &latency->run.peer)) {
			BW_INTERVAL_END(whole_trip, began_ticks, number);
			if (counts)
				record(latency, port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns, number, reply, size_bytes);
			return;
		}
		if (length >= 0)
			latency->late++;
		else if (length == -EPIPE)
			latency->run.err = -EPIPE;
		if (length == -EPIPE || length == -ETIMEDOUT) {
			BW_EVENT(trip_lost, number);
			latency->lost += counts;
			return;
		}
	}
	latency->sent -= counts; /* whether its reply would have come nobody knows */
}

static void run_latency(void *argument)
{
	struct latency *latency = argument;
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	for (int64_t number = 0; number < latency->count && !port_stop_requested() && !latency->run.err; number++) {
		int64_t due_monotonic_ns = begin_monotonic_ns + number * latency->interval_us * NS_PER_US;

		if (due_monotonic_ns > port_clock_now_ns(PORT_CLOCK_MONOTONIC))
			port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, due_monotonic_ns);
		for (int64_t i = 0; i < latency->run_up; i++)
			make_trip(latency, false);
		make_trip(latency, true);
	}
}

int verb_latency(int argc, char **argv)
{
	struct latency latency = {
		.run = { .tool = "bw-rtdip latency", .thread = "rtdip-latency", .common = measure_defaults },
		.count = 1000, .interval_us = 10000, .timeout_ms = 1000,
	};
	struct option options[OWN_OPTIONS + 2 + COMMON_OPTIONS + 1] = {
		{ .name = "each", .kind = OPTION_FLAG, .target = &latency.each,
		  .help = "tell of each round trip, at the end: with the echo's stamps where a message has 20 bytes or more" },
		{ .name = "run-up", .kind = OPTION_INT, .target = &latency.run_up, .min = 0, .max = 100, .argument = "N",
		  .help = "round trips right before each one that do not count: no way has lain idle, 0..100 (default 0)" },
		{ .name = "count", .kind = OPTION_INT, .target = &latency.count, .min = 1, .max = 100000000, .argument = "N",
		  .help = "round trips, 1..100000000 (default 1000)" },
		{ .name = "interval-us", .kind = OPTION_INT, .target = &latency.interval_us, .min = 0, .max = 10000000,
		  .argument = "N", .help = "from one to the next, 0..10000000 us (default 10000); 0: at once" },
		{ .name = "timeout-ms", .kind = OPTION_INT, .target = &latency.timeout_ms, .min = 1, .max = 60000,
		  .argument = "N", .help = "a reply after that is late, 1..60000 ms (default 1000)" },
	};
	const struct command command = {
		.name = latency.run.tool, .usage = "--peer PEER [options]",
		.about = "Time round trips to an echo, one at a time; half of one is a way.\n", .options = options,
	};
	struct json json;
	int parsed, code;

	measure_add_options(options + OWN_OPTIONS + 2, &latency.run.common);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	latency.round_trip = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	latency.receiving = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	if (latency.each)
		latency.trips = calloc((size_t)latency.count, sizeof(*latency.trips));
	code = latency.round_trip && latency.receiving && !latency.each == !latency.trips ? measure_run(&latency.run, true, run_latency) : EXIT_CAPABILITY;
	if (code == EXIT_DONE || code == EXIT_FAULT) {
		tell_trips(&latency);
		measure_open_line(&json, &latency.run, "result");
		json_int(&json, "size_bytes", latency.run.common.size_bytes);
		json_int(&json, "run_up", latency.run_up);
		json_uint(&json, "sent", latency.sent);
		json_uint(&json, "lost", latency.lost);
		json_uint(&json, "late", latency.late);
		summary_histogram(&json, "round_trip", latency.round_trip);
		summary_histogram(&json, "receiving", latency.receiving);
		measure_close_result(&json, &latency.run);
		if (code == EXIT_DONE && latency.sent == latency.lost)
			code = EXIT_INVALID;
	}
	histogram_destroy(latency.round_trip);
	histogram_destroy(latency.receiving);
	free(latency.trips);
	return code;
}
