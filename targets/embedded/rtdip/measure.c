/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency and throughput as in the paper: half of a round trip to an echo, and windows of messages, each of which is
 * acknowledged as a whole before the next begins.
 */
#include "measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "base/json.h"
#include "base/summary.h"
#include "config/options.h"
#include "ends.h"
#include "port/port.h"
#include "service.h"

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define LOOK_NS (100 * NS_PER_MS) /* how soon a stop is seen */

enum { MESSAGE_MIN_BYTES = 4, MESSAGE_WITH_RECEIVING_BYTES = 12, MESSAGE_MAX_BYTES = RTDIP_DATA_MAX_BYTES, OWN_OPTIONS = 3, COMMON_OPTIONS = 10 };

/* What every verb takes. */
struct common {
	const char *local, *peer, *socket_path, *packets;
	int64_t size_bytes, priority, cpu, busy_poll_us;
	bool busy, bypass;
};

static const struct common defaults = {
	.local = "0", .socket_path = RTDIP_SOCKET, .packets = "high", .size_bytes = 64, .priority = 0, .cpu = -1,
};

/* A measurement: opened, run by a thread of the priority that is asked for, and told. */
struct run {
	const char *tool;
	struct common common;
	struct end end;
	struct peer peer;
	enum rtdip_priority packets;
	struct port_scheduling scheduling;
	int err; /* that ended it; 0: none */
};

static void add_common(struct option *options, struct common *common)
{
	const struct option rows[COMMON_OPTIONS] = {
		{ .name = "local", .kind = OPTION_TEXT, .target = &common->local, .argument = "PORT|ADDRESS:PORT",
		  .help = "own port of RTDiP (default 0: any), or of UDP" },
		{ .name = "peer", .kind = OPTION_TEXT, .target = &common->peer, .argument = "MAC/PORT|ADDRESS:PORT",
		  .help = "who is sent to, by RTDiP or UDP as --local says" },
		{ .name = "socket", .kind = OPTION_TEXT, .target = &common->socket_path, .argument = "PATH",
		  .help = "of the service of RTDiP (default " RTDIP_SOCKET ")" },
		{ .name = "packets", .kind = OPTION_TEXT, .target = &common->packets, .argument = "high|medium|low",
		  .help = "priority of frames of RTDiP (default high)" },
		{ .name = "size-bytes", .kind = OPTION_INT, .target = &common->size_bytes, .min = MESSAGE_MIN_BYTES,
		  .max = MESSAGE_MAX_BYTES, .argument = "N", .help = "data of a message, 4..8988 bytes, as the MTU has room (default 64)" },
		{ .name = "priority", .kind = OPTION_INT, .target = &common->priority, .min = 0, .max = 99, .argument = "N",
		  .help = "SCHED_FIFO priority, 0..99 (default 0: ordinary scheduling)" },
		{ .name = "cpu", .kind = OPTION_INT, .target = &common->cpu, .min = 0, .max = 1023, .argument = "N",
		  .help = "CPU that it is pinned to, 0..1023 (default: any)" },
		{ .name = "busy", .kind = OPTION_FLAG, .target = &common->busy, .help = "poll instead of sleeping" },
		{ .name = "busy-poll-us", .kind = OPTION_INT, .target = &common->busy_poll_us, .min = 0, .max = 10000,
		  .argument = "N", .help = "UDP: poll the card so long before sleeping, 0..10000 us (default 0)" },
		{ .name = "bypass-qdisc", .kind = OPTION_FLAG, .target = &common->bypass,
		  .help = "send frames of RTDiP past the queueing discipline" },
	};

	memcpy(options, rows, sizeof(rows));
}

static int priority_of(const char *name, enum rtdip_priority *priority)
{
	for (int i = 0; i < RTDIP_PRIORITIES; i++) {
		if (!strcmp(name, rtdip_priority_name((enum rtdip_priority)i))) {
			*priority = (enum rtdip_priority)i;
			return 0;
		}
	}
	return -EINVAL;
}

static void say_ready(const struct run *run);

/* Open the end, read the peer, and let a thread do the rest. Return an exit code, with a line on stderr. */
static int measure(struct run *run, bool has_peer, void (*body)(void *))
{
	const struct common *common = &run->common;
	struct port_thread *thread;
	int err;

	if (priority_of(common->packets, &run->packets)) {
		fprintf(stderr, "%s: --packets: \"%s\"; allowed: high, medium, low\n", run->tool, common->packets);
		return EXIT_BAD_INPUT;
	}
	port_stop_install();
	err = end_open(&run->end, common->local, common->socket_path, common->bypass ? RTDIP_BYPASS_QDISC : 0);
	if (err) {
		fprintf(stderr, "%s: --local %s: %s\n", run->tool, common->local, strerror(-err));
		return err == -EINVAL ? EXIT_BAD_INPUT : EXIT_CAPABILITY;
	}
	run->end.busy = common->busy;
	if (common->busy_poll_us && end_set_busy_poll(&run->end, (int)common->busy_poll_us)) {
		fprintf(stderr, "%s: --busy-poll-us: of UDP alone, where the kernel has it, and with CAP_NET_ADMIN\n", run->tool);
		end_close(&run->end);
		return EXIT_CAPABILITY;
	}
	if (has_peer && (!common->peer || end_parse_peer(&run->end, common->peer, &run->peer))) {
		fprintf(stderr, "%s: --peer: \"%s\"; needed: %s\n", run->tool, common->peer ? common->peer : "",
			run->end.handle ? "MAC/PORT, as 02:00:00:00:00:01/7000" : "ADDRESS:PORT");
		end_close(&run->end);
		return EXIT_BAD_INPUT;
	}
	say_ready(run);
	err = port_thread_start("measure", (int)common->priority, common->cpu < 0 ? PORT_CPU_ANY : (int)common->cpu, body, run,
				&thread);
	if (err) {
		fprintf(stderr, "%s: the thread cannot be started: %s\n", run->tool, strerror(-err));
		end_close(&run->end);
		return EXIT_CAPABILITY;
	}
	run->scheduling = *port_thread_scheduling(thread);
	port_thread_join(thread);
	if (run->err)
		fprintf(stderr, "%s: %s\n", run->tool, strerror(-run->err));
	return run->err ? EXIT_FAULT : EXIT_DONE;
}

static void open_line(struct json *json, const struct run *run, const char *type)
{
	json_init(json, stdout);
	json_object_open(json, NULL);
	json_string(json, "type", type);
	json_string(json, "tool", run->tool);
	json_string(json, "over", run->end.handle ? "rtdip" : "udp");
	if (run->end.handle)
		json_int(json, "port", run->end.port);
	if (run->common.busy_poll_us)
		json_int(json, "busy_poll_us", run->common.busy_poll_us);
}

static void close_line(struct json *json)
{
	json_object_close(json);
	json_line_end(json);
}

static void say_ready(const struct run *run)
{
	struct json json;

	open_line(&json, run, "ready");
	close_line(&json);
}

/* What every result ends with. */
static void close_result(struct json *json, struct run *run)
{
	if (run->end.handle) {
		struct rtdip_counts counts;

		rtdip_counts(run->end.handle, &counts);
		json_uint(json, "frames_received", counts.received);
		json_uint(json, "frames_sent", counts.sent);
		json_uint(json, "frames_unheard", counts.unheard);
		json_uint(json, "frames_missing", counts.missing);
	}
	summary_scheduling(json, &run->scheduling);
	close_line(json);
	end_close(&run->end);
}

/* The next message; -EAGAIN: none within a time after which a stop is looked for. */
static int64_t next_message(struct run *run, struct peer *from, enum rtdip_priority *priority, void *data, size_t room_bytes)
{
	int64_t length = end_receive(&run->end, from, priority, data, room_bytes, LOOK_NS);

	if (length == -EPIPE)
		run->err = -EPIPE;
	return length < 0 ? -EAGAIN : length;
}

/* Behind its number a message of an echo bears how long that took to receive it, from the driver on, in ns, least byte first. */
static void put_receiving(uint8_t *data, int64_t receiving_ns)
{
	for (size_t i = 0; i < sizeof(receiving_ns); i++)
		data[MESSAGE_MIN_BYTES + i] = (uint8_t)((uint64_t)receiving_ns >> 8 * i);
}

static int64_t get_receiving(const uint8_t *data)
{
	uint64_t receiving_ns = 0;

	for (size_t i = 0; i < sizeof(receiving_ns); i++)
		receiving_ns |= (uint64_t)data[MESSAGE_MIN_BYTES + i] << 8 * i;
	return (int64_t)receiving_ns;
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
		int64_t length = next_message(&echo->run, &from, &priority, data, sizeof(data));

		if (length < 0)
			continue;
		if (length >= MESSAGE_WITH_RECEIVING_BYTES)
			put_receiving(data, echo->run.end.receiving_ns);
		if (end_send(&echo->run.end, &from, priority, data, (size_t)length) < 0)
			echo->unsent++;
		else
			echo->echoed++;
	}
}

int verb_echo(int argc, char **argv)
{
	struct echo echo = { .run = { .tool = "bw-rtdip echo", .common = defaults } };
	struct option options[COMMON_OPTIONS + 1] = { { 0 } };
	const struct command command = {
		.name = echo.run.tool, .usage = "--local PORT|ADDRESS:PORT [options]",
		.about = "Send each message back to who sent it, until SIGTERM.\n", .options = options,
	};
	struct json json;
	int parsed, code;

	add_common(options, &echo.run.common);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	code = measure(&echo.run, false, run_echo);
	if (code && code != EXIT_FAULT)
		return code;
	open_line(&json, &echo.run, "result");
	json_uint(&json, "echoed", echo.echoed);
	json_uint(&json, "unsent", echo.unsent);
	close_result(&json, &echo.run);
	return code;
}

struct latency {
	struct run run;
	int64_t count, interval_us, timeout_ms, run_up;
	uint32_t number; /* of the next trip, counted or not */
	uint64_t sent, lost, late;
	struct histogram *round_trip, *receiving;
};

static void record_receiving(struct latency *latency, const uint8_t *reply, size_t size_bytes)
{
	int64_t receiving_ns = size_bytes < MESSAGE_WITH_RECEIVING_BYTES ? -1 : get_receiving(reply);

	if (receiving_ns >= 0)
		histogram_record(latency->receiving, receiving_ns);
}

/* Make one round trip; its number tells its reply from a late one. One of the run-up does not count. */
static void make_trip(struct latency *latency, bool counts)
{
	static uint8_t data[MESSAGE_MAX_BYTES], reply[MESSAGE_MAX_BYTES];
	size_t size_bytes = (size_t)latency->run.common.size_bytes;
	int64_t begin_monotonic_ns, deadline_monotonic_ns, length;
	struct end *end = &latency->run.end;
	uint32_t number = latency->number++;
	enum rtdip_priority priority;
	struct peer from;

	memcpy(data, &number, sizeof(number));
	begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	deadline_monotonic_ns = begin_monotonic_ns + latency->timeout_ms * NS_PER_MS;
	length = end_send(end, &latency->run.peer, latency->run.packets, data, size_bytes);
	if (length < 0) {
		latency->run.err = length == -EAGAIN ? 0 : (int)length;
		return;
	}
	latency->sent += counts;
	while (!port_stop_requested()) {
		int64_t left_ns = deadline_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);

		length = end_receive(end, &from, &priority, reply, sizeof(reply), left_ns > 0 ? left_ns : 0);
		if (length == (int64_t)size_bytes && memcmp(reply, &number, sizeof(number)) == 0) {
			if (counts) {
				histogram_record(latency->round_trip, port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns);
				record_receiving(latency, reply, size_bytes);
			}
			return;
		}
		if (length >= 0)
			latency->late++;
		else if (length == -EPIPE)
			latency->run.err = -EPIPE;
		if (length == -EPIPE || length == -ETIMEDOUT)
			break;
	}
	latency->lost += counts;
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
		.run = { .tool = "bw-rtdip latency", .common = defaults },
		.count = 1000, .interval_us = 10000, .timeout_ms = 1000,
	};
	struct option options[OWN_OPTIONS + 1 + COMMON_OPTIONS + 1] = {
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

	add_common(options + OWN_OPTIONS + 1, &latency.run.common);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	latency.round_trip = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	latency.receiving = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	code = latency.round_trip && latency.receiving ? measure(&latency.run, true, run_latency) : EXIT_CAPABILITY;
	if (code == EXIT_DONE || code == EXIT_FAULT) {
		open_line(&json, &latency.run, "result");
		json_int(&json, "size_bytes", latency.run.common.size_bytes);
		json_int(&json, "run_up", latency.run_up);
		json_uint(&json, "sent", latency.sent);
		json_uint(&json, "lost", latency.lost);
		json_uint(&json, "late", latency.late);
		summary_histogram(&json, "round_trip", latency.round_trip);
		summary_histogram(&json, "receiving", latency.receiving);
		close_result(&json, &latency.run);
		if (code == EXIT_DONE && latency.sent == latency.lost)
			code = EXIT_INVALID;
	}
	histogram_destroy(latency.round_trip);
	histogram_destroy(latency.receiving);
	return code;
}

/* A message of a window, and its acknowledgement. */
struct part {
	uint32_t window, number; /* of the window; of the message in it, counted from 0 */
	uint32_t count;          /* messages of the window */
};

struct source {
	struct run run;
	int64_t window, duration_ms, timeout_ms;
	uint64_t windows, lost, sent, blocked;
	int64_t took_ns;
};

static void send_window(struct source *source, uint32_t number)
{
	static uint8_t data[MESSAGE_MAX_BYTES];

	for (uint32_t i = 0; i < (uint32_t)source->window && !port_stop_requested(); i++) {
		const struct part part = { number, i, (uint32_t)source->window };
		int64_t length;

		memcpy(data, &part, sizeof(part));
		while ((length = end_send(&source->run.end, &source->run.peer, source->run.packets, data,
					  (size_t)source->run.common.size_bytes)) == -EAGAIN && !port_stop_requested()) {
			source->blocked++;
			port_thread_yield();
		}
		source->sent += length >= 0;
	}
}

static void wait_for_acknowledgement(struct source *source, uint32_t number)
{
	static uint8_t reply[MESSAGE_MAX_BYTES];
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + source->timeout_ms * NS_PER_MS;
	enum rtdip_priority priority;
	struct peer from;

	while (!port_stop_requested()) {
		int64_t left_ns = deadline_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int64_t length = end_receive(&source->run.end, &from, &priority, reply, sizeof(reply), left_ns > 0 ? left_ns : 0);
		struct part part;

		memcpy(&part, reply, sizeof(part));
		if (length >= (int64_t)sizeof(part) && part.window == number) {
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

	for (uint32_t number = 0; !port_stop_requested() && !source->run.err; number++) {
		source->took_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns;
		if (source->took_ns >= source->duration_ms * NS_PER_MS)
			break;
		send_window(source, number);
		wait_for_acknowledgement(source, number);
	}
}

int verb_source(int argc, char **argv)
{
	struct source source = {
		.run = { .tool = "bw-rtdip source", .common = defaults },
		.window = 32, .duration_ms = 1000, .timeout_ms = 100,
	};
	struct option options[OWN_OPTIONS + COMMON_OPTIONS + 1] = {
		{ .name = "window", .kind = OPTION_INT, .target = &source.window, .min = 1, .max = 100000, .argument = "N",
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

	add_common(options + OWN_OPTIONS, &source.run.common);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	if (source.run.common.size_bytes < (int64_t)sizeof(struct part)) {
		fprintf(stderr, "%s: --size-bytes: %lld; allowed: %zu..%d\n", command.name,
			(long long)source.run.common.size_bytes, sizeof(struct part), MESSAGE_MAX_BYTES);
		return EXIT_BAD_INPUT;
	}
	code = measure(&source.run, true, run_source);
	if (code && code != EXIT_FAULT)
		return code;
	open_line(&json, &source.run, "result");
	json_int(&json, "size_bytes", source.run.common.size_bytes);
	json_int(&json, "window", source.window);
	json_uint(&json, "messages", source.sent);
	json_uint(&json, "windows", source.windows);
	json_uint(&json, "windows_lost", source.lost);
	json_uint(&json, "blocked", source.blocked);
	json_int(&json, "duration_ns", source.took_ns);
	json_double(&json, "kbit_per_s", source.took_ns ? (double)source.windows * (double)source.window *
					 (double)source.run.common.size_bytes * 8e6 / (double)source.took_ns : 0);
	close_result(&json, &source.run);
	return code ? code : source.windows ? EXIT_DONE : EXIT_INVALID;
}

struct sink {
	struct run run;
	uint64_t messages, acknowledged;
};

static void run_sink(void *argument)
{
	static uint8_t data[MESSAGE_MAX_BYTES];
	struct sink *sink = argument;
	uint32_t window = 0, heard = 0;
	enum rtdip_priority priority;
	struct peer from;

	while (!port_stop_requested() && !sink->run.err) {
		int64_t length = next_message(&sink->run, &from, &priority, data, sizeof(data));
		struct part part;

		if (length < (int64_t)sizeof(part))
			continue;
		sink->messages++;
		memcpy(&part, data, sizeof(part));
		heard = part.window == window ? heard + 1 : 1;
		window = part.window;
		if (heard == part.count && end_send(&sink->run.end, &from, priority, &part, sizeof(part)) >= 0)
			sink->acknowledged++;
	}
}

int verb_sink(int argc, char **argv)
{
	struct sink sink = { .run = { .tool = "bw-rtdip sink", .common = defaults } };
	struct option options[COMMON_OPTIONS + 1] = { { 0 } };
	const struct command command = {
		.name = sink.run.tool, .usage = "--local PORT|ADDRESS:PORT [options]",
		.about = "Acknowledge windows of messages of one source, until SIGTERM; not those that lack some.\n",
		.options = options,
	};
	struct json json;
	int parsed, code;

	add_common(options, &sink.run.common);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	code = measure(&sink.run, false, run_sink);
	if (code && code != EXIT_FAULT)
		return code;
	open_line(&json, &sink.run, "result");
	json_uint(&json, "messages", sink.messages);
	json_uint(&json, "acknowledged", sink.acknowledged);
	close_result(&json, &sink.run);
	return code;
}
