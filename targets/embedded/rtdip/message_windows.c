/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of messages, each acknowledged as a whole before the next begins, as in the paper: their source and their sink. */
#include "measure.h"

#include <errno.h>
#include <string.h>

#include "base/time_units.h"
#include "measurement.h"

/* A message of a window, and its acknowledgement. */
struct part {
	uint32_t window, number; /* of the window; of the message in it, counted from 0 */
	uint32_t count;          /* messages of the window */
};

enum { WINDOW_MAX_MESSAGES = 100000 };

struct source {
	struct run run;
	int64_t window, duration_ms, timeout_ms;
	uint64_t windows, lost, sent, blocked;
	int64_t took_ns;
};

static void send_window(struct source *source, uint32_t number)
{
	static uint8_t data[MESSAGE_MAX_BYTES];

	for (uint32_t i = 0; i < (uint32_t)source->window && !port_stop_requested() && !source->run.err; i++) {
		const struct part part = { number, i, (uint32_t)source->window };
		int64_t length;

		memcpy(data, &part, sizeof(part));
		while ((length = end_send(&source->run.end, &source->run.peer, source->run.packets, data,
					  (size_t)source->run.common.size_bytes)) == -EAGAIN && !port_stop_requested()) {
			source->blocked++;
			port_thread_yield();
		}
		source->sent += length >= 0;
		if (length < 0 && length != -EAGAIN)
			source->run.err = (int)length;
	}
}

static void wait_for_acknowledgement(struct source *source, uint32_t number)
{
	static uint8_t reply[MESSAGE_MAX_BYTES];
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + source->timeout_ms * NS_PER_MS;
	enum rtdip_priority priority;
	struct peer from;

	while (!port_stop_requested()) {
		int64_t length = measure_await_reply(&source->run, deadline_monotonic_ns, &from, &priority, reply, sizeof(reply));
		struct part part;

		memcpy(&part, reply, sizeof(part));
		if (length >= (int64_t)sizeof(part) && part.window == number &&
		    end_is_same_peer(&source->run.end, &from, &source->run.peer)) {
			source->windows++;
			return;
		}
		if (length == -EPIPE)
			source->run.err = -EPIPE;
		if (length < 0 && length != -EINTR) {
			source->lost++;
			return;
		}
	}
}

static void run_source(void *argument)
{
	struct source *source = argument;
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	/* A source that begins anew at the same place goes on with no window of the one before. */
	for (uint32_t number = (uint32_t)begin_monotonic_ns; !port_stop_requested() && !source->run.err; number++) {
		if (port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns >= source->duration_ms * NS_PER_MS)
			break;
		send_window(source, number);
		if (!source->run.err)
			wait_for_acknowledgement(source, number);
	}
	source->took_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns;
}

int verb_source(int argc, char **argv)
{
	struct source source = {
		.run = { .tool = "bw-rtdip source", .thread = "rtdip-source", .common = measure_defaults },
		.window = 32, .duration_ms = 1000, .timeout_ms = 100,
	};
	struct option options[OWN_OPTIONS + COMMON_OPTIONS + 1] = {
		{ .name = "window", .kind = OPTION_INT, .target = &source.window, .min = 1, .max = WINDOW_MAX_MESSAGES, .argument = "N",
		  .help = "messages before an acknowledgement, 1..100000 (default 32)" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &source.duration_ms, .min = 1, .max = 86400000,
		  .argument = "N", .help = "how long, 1..86400000 ms (default 1000)" },
		{ .name = "timeout-ms", .kind = OPTION_INT, .target = &source.timeout_ms, .min = 1, .max = 60000,
		  .argument = "N", .help = "a window without an acknowledgement is lost then, 1..60000 ms (default 100)" },
	};
	const struct command command = {
		.name = source.run.tool, .usage = "--peer PEER [options]",
		.about = "Send windows of messages, each of 12 bytes or more, to a sink, as fast as it acknowledges them.\n",
		.options = options,
	};
	struct json json;
	int parsed, code;

	measure_add_options(options + OWN_OPTIONS, &source.run.common);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	if (source.run.common.size_bytes < (int64_t)sizeof(struct part)) {
		fprintf(stderr, "%s: --size-bytes: %lld; allowed: %zu..%d\n", command.name,
			(long long)source.run.common.size_bytes, sizeof(struct part), MESSAGE_MAX_BYTES);
		return EXIT_BAD_INPUT;
	}
	code = measure_run(&source.run, true, run_source);
	if (code && code != EXIT_FAULT)
		return code;
	measure_open_line(&json, &source.run, "result");
	json_int(&json, "size_bytes", source.run.common.size_bytes);
	json_int(&json, "window", source.window);
	json_uint(&json, "messages", source.sent);
	json_uint(&json, "windows", source.windows);
	json_uint(&json, "windows_lost", source.lost);
	json_uint(&json, "blocked", source.blocked);
	json_int(&json, "duration_ns", source.took_ns);
	json_double(&json, "kbit_per_s", source.took_ns ? (double)source.windows * (double)source.window *
					 (double)source.run.common.size_bytes * 8e6 / (double)source.took_ns : 0);
	measure_close_result(&json, &source.run);
	return code ? code : source.windows ? EXIT_DONE : EXIT_INVALID;
}

/* What has come of a window. */
struct incoming_window {
	struct peer from;
	uint32_t number, count, heard; /* of the window; messages of it; of these have come */
	bool is_heard[WINDOW_MAX_MESSAGES];
};

struct sink {
	struct run run;
	uint64_t messages, acknowledged;
};

/* Take a message; true: it makes its window whole. One of another window, or of another source, begins that. */
static bool completes(struct incoming_window *window, const struct part *part, const struct peer *from,
		      const struct end *end)
{
	if (part->count > WINDOW_MAX_MESSAGES || part->number >= part->count)
		return false;
	if (part->count != window->count || part->window != window->number || !end_is_same_peer(end, &window->from, from)) {
		memset(window->is_heard, 0, part->count * sizeof(*window->is_heard));
		window->from = *from;
		window->number = part->window;
		window->count = part->count;
		window->heard = 0;
	}
	if (window->is_heard[part->number])
		return false;
	window->is_heard[part->number] = true;
	return ++window->heard == part->count;
}

static void run_sink(void *argument)
{
	static uint8_t data[MESSAGE_MAX_BYTES];
	static struct incoming_window window;
	struct sink *sink = argument;
	enum rtdip_priority priority;
	struct peer from;

	while (!port_stop_requested() && !sink->run.err) {
		int64_t length = measure_next_message(&sink->run, &from, &priority, data, sizeof(data));
		struct part part;

		if (length < (int64_t)sizeof(part))
			continue;
		sink->messages++;
		memcpy(&part, data, sizeof(part));
		if (completes(&window, &part, &from, &sink->run.end) &&
		    end_send(&sink->run.end, &from, priority, &part, sizeof(part)) >= 0)
			sink->acknowledged++;
	}
}

int verb_sink(int argc, char **argv)
{
	struct sink sink = { .run = { .tool = "bw-rtdip sink", .thread = "rtdip-sink", .common = measure_defaults } };
	struct option options[COMMON_OPTIONS + 1] = { { 0 } };
	const struct command command = {
		.name = sink.run.tool, .usage = "--local PORT|ADDRESS:PORT [options]",
		.about = "Acknowledge windows of messages of one source, until SIGTERM; not those that lack some.\n",
		.options = options,
	};
	struct json json;
	int parsed, code;

	measure_add_options(options, &sink.run.common);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	code = measure_run(&sink.run, false, run_sink);
	if (code && code != EXIT_FAULT)
		return code;
	measure_open_line(&json, &sink.run, "result");
	json_uint(&json, "messages", sink.messages);
	json_uint(&json, "acknowledged", sink.acknowledged);
	measure_close_result(&json, &sink.run);
	return code;
}
