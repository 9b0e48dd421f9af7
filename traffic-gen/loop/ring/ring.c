/* SPDX-License-Identifier: Apache-2.0 */
/* The verb ring: its options, and what it answers. */
#include "loop/ring/ring.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/time_units.h"
#include "loop/verbs.h"

#define TOOL "bw-loop ring"

enum { COUNT_DEFAULT = 1000, INTERVAL_DEFAULT_US = 10000, BACKLOG = 1, RECEIVE_BUFFER_BYTES = 4 << 20, REASONS = 3 };

struct ring_options {
	const char *from, *to;
	int64_t count, interval_us, size_bytes; /* 0: not given */
	int64_t writes, poll_us, work_us, hold_us, hold_turn, timeout_ms;
	bool is_udp, has_nagle, has_stamps;
};

static const char *role(const struct ring *ring)
{
	return !ring->has_from ? "source" : ring->has_to ? "node" : "sink";
}

static void print_ready(struct json *json, const struct ring *ring)
{
	port_socket sock = ring->is_udp ? ring->in : ring->listener;
	struct address local = { 0 };
	char text[ADDRESS_TEXT_BYTES];

	answer_begin(json, "ready", TOOL);
	json_string(json, "role", role(ring));
	if (ring->has_from) {
		port_socket_local(sock, &local);
		json_string(json, "address", address_format(&local, text));
	}
	json_int(json, "tai_utc_s", ring->side.tai.tai_utc_s);
	answer_end(json);
}

/* Numbers that never came here; 0 where nobody knows how many there were. */
static uint64_t missing(const struct ring *ring)
{
	const struct ring_account *account = &ring->account;
	uint64_t count = 0;

	for (uint32_t number = 0; ring->has_from && account->has_ended && number < account->of; number++)
		count += !(account->seen[number / 8] >> number % 8 & 1);
	return count;
}

/* Whether a message came whose number the last one of all denies. */
static bool is_contradicted(const struct ring *ring)
{
	return ring->account.has_ended && tally_get(&ring->read) && ring->account.highest >= ring->account.of;
}

static int print_result(const struct ring *ring, const struct port_scheduling *scheduling)
{
	const struct ring_account *account = &ring->account;
	const char *reasons[REASONS];
	size_t count = 0;
	struct json json;
	bool valid;

	if (ring->failed)
		reasons[count++] = ring->failed;
	if (is_contradicted(ring))
		reasons[count++] = "the last message says that there were fewer than came";
	if (ring->watch.count)
		reasons[count++] = "the local clock was stepped";
	json_init(&json, stdout);
	answer_result(&json, TOOL);
	json_string(&json, "role", role(ring));
	json_string(&json, "transport", ring->is_udp ? "udp" : "tcp");
	json_uint(&json, "of", account->of);
	json_uint(&json, "read", tally_get(&ring->read));
	json_uint(&json, "written", tally_get(&ring->written));
	json_uint(&json, "missing", missing(ring));
	json_uint(&json, "double", account->double_messages);
	json_uint(&json, "disordered", account->disordered);
	json_uint(&json, "broken", account->broken);
	summary_histogram(&json, "held", ring->held);
	valid = answer_validity(&json, account->has_ended && !ring->failed, reasons, count);
	json_bool(&json, "kernel_stamps", ring->stamps.asked);
	json_array_open(&json, "clock_steps");
	summary_steps(&json, &ring->watch);
	json_array_close(&json);
	summary_scheduling(&json, scheduling);
	answer_end(&json);
	if (ring->error)
		fprintf(stderr, TOOL ": %s: %s\n", ring->failed, strerror(-ring->error));
	return valid ? EXIT_DONE : EXIT_INVALID;
}

/* Open what this end reads from, if it does. Return 0, or an exit code. */
static int open_input(struct ring *ring, const char *text)
{
	int err;

	if (!ring->has_from)
		return EXIT_DONE;
	err = ring->is_udp ? port_udp_open(&ring->from, &ring->in) : port_tcp_listen(&ring->from, BACKLOG, &ring->listener);
	if (!err && ring->is_udp)
		port_socket_set_receive_buffer(ring->in, RECEIVE_BUFFER_BYTES); /* while this program is held up; systems may give less */
	/* A kernel begins to stamp some time after it was asked to: of the connection the first messages would have no stamp. */
	if (!err && ring->wants_stamps)
		port_socket_stamp_receive(ring->is_udp ? ring->in : ring->listener);
	return err ? side_fail(&ring->side, "cannot listen at", text, err) : EXIT_DONE;
}

static void close_sockets(const struct ring *ring)
{
	const port_socket all[] = { ring->listener, ring->in, ring->out };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] != PORT_SOCKET_NONE)
			port_socket_close(all[i]);
}

static int run(struct ring *ring, const char *from_text)
{
	struct port_scheduling scheduling;
	struct json json;
	int code;

	ring->listener = ring->in = ring->out = PORT_SOCKET_NONE;
	port_stop_install();
	port_tai_init(&ring->side.tai, (int)ring->side.options.tai_utc_s);
	stepwatch_init(&ring->watch, &ring->side.tai);
	ring->held = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	code = ring->held ? open_input(ring, from_text) : side_fail(&ring->side, "cannot make", "the histogram", -errno);
	if (!code) {
		json_init(&json, stdout);
		print_ready(&json, ring);
		code = side_run(&ring->side, ring_run, ring, NULL, &scheduling);
	}
	if (!code)
		code = print_result(ring, &scheduling);
	close_sockets(ring);
	histogram_destroy(ring->held);
	return code;
}

static int run_ring(const struct ring_options *options, const struct side_options *chosen)
{
	static struct ring ring;

	if (!options->from && !options->to)
		return option_refuse(TOOL, "--from, --to", NULL, "one of them, or both");
	if (options->from && (options->count || options->interval_us || options->size_bytes))
		return option_refuse(TOOL, "--count, --interval-us, --size-bytes", NULL, "of a source alone, which has no --from");
	if (!options->from && (options->poll_us || options->work_us || options->hold_us || options->hold_turn))
		return option_refuse(TOOL, "--poll-us, --work-us, --hold-us, --hold-turn", NULL, "of one that reads, with --from");
	if (!options->to && (options->writes != 1 || options->has_nagle))
		return option_refuse(TOOL, "--writes, --nagle", NULL, "of one that writes, with --to");
	if (options->is_udp && options->has_nagle)
		return option_refuse(TOOL, "--nagle", NULL, "TCP: datagrams are never held back");
	if (options->from && address_parse(options->from, &ring.from))
		return option_refuse(TOOL, "--from", options->from, ADDRESS_FORM);
	if (options->to && address_parse(options->to, &ring.to))
		return option_refuse(TOOL, "--to", options->to, ADDRESS_FORM);
	ring.side.tool = TOOL;
	ring.side.options = *chosen;
	ring.has_from = options->from != NULL;
	ring.has_to = options->to != NULL;
	ring.is_udp = options->is_udp;
	ring.has_nagle = options->has_nagle;
	ring.wants_stamps = options->has_stamps;
	ring.writes = options->writes;
	ring.poll_ns = options->poll_us * NS_PER_US;
	ring.work_ns = options->work_us * NS_PER_US;
	ring.hold_ns = options->hold_us * NS_PER_US;
	ring.hold_turn = options->hold_turn;
	ring.timeout_ns = options->timeout_ms * NS_PER_MS;
	ring.count = (uint32_t)(options->count ? options->count : COUNT_DEFAULT);
	ring.interval_ns = (options->interval_us ? options->interval_us : INTERVAL_DEFAULT_US) * NS_PER_US;
	ring.content_bytes = (uint32_t)(options->size_bytes ? options->size_bytes - RING_HEADER_BYTES : RING_CONTENT_BYTES_MIN);
	return run(&ring, options->from);
}

int verb_ring(int argc, char **argv)
{
	enum { OWN_OPTIONS = 14 };
	struct ring_options chosen = { .writes = 1, .timeout_ms = 10000 };
	struct side_options side = side_defaults;
	struct option options[OWN_OPTIONS + SIDE_SCHEDULING_OPTIONS + 1] = {
		{ .name = "from", .kind = OPTION_TEXT, .target = &chosen.from, .argument = "ADDRESS:PORT",
		  .help = "read messages there; a node or a sink" },
		{ .name = "to", .kind = OPTION_TEXT, .target = &chosen.to, .argument = "ADDRESS:PORT",
		  .help = "write messages there; a source or a node" },
		{ .name = "udp", .kind = OPTION_FLAG, .target = &chosen.is_udp, .help = "datagrams (default: TCP)" },
		{ .name = "writes", .kind = OPTION_INT, .target = &chosen.writes, .min = 1, .max = 2, .argument = "N",
		  .help = "of a message: 1, or 2: its header of 4 bytes, then its content (default 1)" },
		{ .name = "nagle", .kind = OPTION_FLAG, .target = &chosen.has_nagle,
		  .help = "small writes wait until what was written before is acknowledged (default: TCP_NODELAY)" },
		{ .name = "count", .kind = OPTION_INT, .target = &chosen.count, .min = 1, .max = RING_COUNT_MAX, .argument = "N",
		  .help = "messages of a source, 1..10000000 (default 1000)" },
		{ .name = "interval-us", .kind = OPTION_INT, .target = &chosen.interval_us, .min = 10, .max = 10000000,
		  .argument = "N", .help = "from one to the next, 10..10000000 us (default 10000)" },
		{ .name = "size-bytes", .kind = OPTION_INT, .target = &chosen.size_bytes,
		  .min = RING_HEADER_BYTES + RING_CONTENT_BYTES_MIN, .max = RING_BYTES_MAX, .argument = "N",
		  .help = "of each, header and content, 10..60004 bytes (default 10)" },
		{ .name = "poll-us", .kind = OPTION_INT, .target = &chosen.poll_us, .min = 10, .max = 10000000, .argument = "N",
		  .help = "look for messages at the places of such a grid, 10..10000000 us (default: wait for them)" },
		{ .name = "work-us", .kind = OPTION_INT, .target = &chosen.work_us, .min = 1, .max = 10000000, .argument = "N",
		  .help = "work so long on each message before it goes on, 1..10000000 us (default 0)" },
		{ .name = "hold-us", .kind = OPTION_INT, .target = &chosen.hold_us, .min = 1, .max = 10000000, .argument = "N",
		  .help = "hold each message so long, asleep, before it goes on, 1..10000000 us (default 0)" },
		{ .name = "hold-turn", .kind = OPTION_INT, .target = &chosen.hold_turn, .min = 1, .max = RING_COUNT_MAX, .argument = "N",
		  .help = "hold those of each second turn of so many messages alone (default 0: all)" },
		{ .name = "kernel-stamps", .kind = OPTION_FLAG, .target = &chosen.has_stamps,
		  .help = "record when the kernel had each message's last frame, coming and going" },
		{ .name = "timeout-ms", .kind = OPTION_INT, .target = &chosen.timeout_ms, .min = 1, .max = 3600000, .argument = "N",
		  .help = "end if nothing comes, or goes, for so long, 1..3600000 ms (default 10000)" },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "[--from ADDRESS:PORT] [--to ADDRESS:PORT] [options]",
		.about = "Pass small messages on: a source has --to, a sink --from, a node both. Source and sink on one machine close a\n"
			 "ring. bw-events records when each message was read and written (points ring); --help of that says how.\n"
			 "A listener waits for its first connection as long as it takes; --timeout-ms holds from then on.\n",
		.options = options,
	};
	int parsed;

	side_add_scheduling_options(options + OWN_OPTIONS, &side);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	return run_ring(&chosen, &side);
}
