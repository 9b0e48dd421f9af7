/* SPDX-License-Identifier: Apache-2.0 */
/* The verb bulk: send random data over TCP, or receive it. */
#include "traffic/bulk/bulk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/time_units.h"
#include "traffic/verbs.h"

#define TOOL "bw-traffic bulk"

enum { BLOCK_DEFAULT_BYTES = 65536, DURATION_DEFAULT_MS = 10000, BACKLOG = 1 };

struct bulk_options {
	const char *serve, *peer;
	int64_t rate_mbit, block_bytes, bytes, duration_ms, timeout_ms;
};

void bulk_moved(struct bulk_end *end, const uint8_t *data, size_t size_bytes)
{
	bulk_sum_add(&end->sum, data, size_bytes);
	tally_add(&end->moved_bytes, size_bytes);
	end->calls++;
	end->end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
}

void bulk_end_with(struct bulk_end *end, const char *why, int err)
{
	if (err == -EINTR) {
		end->failed = "stopped before its end";
	} else if (err) {
		end->failed = why;
		end->error = err == -ETIMEDOUT ? 0 : err;
	}
	/* What was handed over still goes, but for a connection that failed. */
	if (end->side.sock != PORT_SOCKET_NONE)
		port_socket_close(end->side.sock);
	end->side.sock = PORT_SOCKET_NONE;
	atomic_store(&end->side.finished, true);
}

static void print_ready(struct json *json, port_socket listener)
{
	struct address local = { 0 };
	char text[ADDRESS_TEXT_BYTES];

	answer_begin(json, "ready", TOOL);
	if (listener != PORT_SOCKET_NONE) {
		port_socket_local(listener, &local);
		json_string(json, "address", address_format(&local, text));
	}
	answer_end(json);
}

static void print_progress(void *argument, int64_t elapsed_ns)
{
	struct bulk_end *end = argument;
	struct json json;

	json_init(&json, stdout);
	answer_begin(&json, "progress", TOOL);
	json_int(&json, "elapsed_ms", elapsed_ns / NS_PER_MS);
	json_uint(&json, "bytes", tally_get(&end->moved_bytes));
	answer_end(&json);
}

static int print_result(const struct bulk_end *end, const char *role, const struct port_scheduling *scheduling)
{
	int64_t took_ns = end->end_monotonic_ns - end->begin_monotonic_ns;
	uint64_t bytes = tally_get(&end->moved_bytes);
	struct json json;
	bool valid;

	json_init(&json, stdout);
	answer_result(&json, TOOL);
	json_string(&json, "role", role);
	json_uint(&json, "bytes", bytes);
	json_uint(&json, "calls", end->calls);
	json_int(&json, "block_bytes", end->block_bytes);
	json_hex64(&json, "checksum", end->sum.sums);
	valid = answer_valid_unless(&json, !end->failed, end->failed);
	json_int(&json, "duration_ns", took_ns);
	json_double(&json, "throughput_mbit", took_ns ? (double)bytes * 8 * (double)NS_PER_US / (double)took_ns : 0);
	json_int(&json, "blocked_ns", end->blocked_ns);
	summary_scheduling(&json, scheduling);
	answer_end(&json);
	if (end->error)
		fprintf(stderr, TOOL ": %s: %s\n", end->failed, strerror(-end->error));
	return valid ? EXIT_DONE : EXIT_INVALID;
}

static int run_end(struct bulk_end *end, const char *role, port_socket listener, void (*run)(void *), void *argument)
{
	struct port_scheduling scheduling;
	struct json json;
	int code;

	json_init(&json, stdout);
	print_ready(&json, listener);
	/* Either begins with its end: struct bulk_sender, struct bulk_receiver. */
	code = side_run(&end->side, run, argument, print_progress, &scheduling);
	return code ? code : print_result(end, role, &scheduling);
}

static int serve(struct bulk_receiver *receiver, const struct address *local, const char *text)
{
	int code, err = port_tcp_listen(local, BACKLOG, &receiver->listener);

	if (err)
		return side_fail(&receiver->end.side, "cannot listen at", text, err);
	code = run_end(&receiver->end, "receiver", receiver->listener, bulk_receiver_run, receiver);
	if (receiver->listener != PORT_SOCKET_NONE)
		port_socket_close(receiver->listener);
	return code;
}

static int run_bulk(const struct bulk_options *options, const struct side_options *chosen)
{
	static struct bulk_receiver receiver;
	static struct bulk_sender sender;
	struct bulk_end *end = options->serve ? &receiver.end : &sender.end;
	struct address local;

	if (!options->serve == !options->peer)
		return option_refuse(TOOL, "--serve, --peer", options->serve ? options->serve : "", "one of them");
	if (options->serve && (options->rate_mbit >= 0 || options->bytes))
		return option_refuse(TOOL, "--rate-mbit, --bytes", "", "of --peer, which sends");
	end->side.tool = TOOL;
	end->side.options = *chosen;
	end->side.sock = PORT_SOCKET_NONE;
	end->timeout_ns = options->timeout_ms * NS_PER_MS;
	end->block_bytes = options->block_bytes;
	port_stop_install();
	if (options->serve) {
		if (address_parse(options->serve, &local))
			return option_refuse(TOOL, "--serve", options->serve, ADDRESS_FORM);
		receiver.duration_ns = options->duration_ms * NS_PER_MS;
		return serve(&receiver, &local, options->serve);
	}
	if (address_parse(options->peer, &sender.peer))
		return option_refuse(TOOL, "--peer", options->peer, ADDRESS_FORM);
	sender.rate_mbit = options->rate_mbit > 0 ? options->rate_mbit : 0;
	sender.bytes = options->bytes;
	sender.duration_ns = options->duration_ms * NS_PER_MS;
	if (!sender.bytes && !sender.duration_ns)
		sender.duration_ns = DURATION_DEFAULT_MS * NS_PER_MS;
	return run_end(end, "sender", PORT_SOCKET_NONE, bulk_sender_run, &sender);
}

int verb_bulk(int argc, char **argv)
{
	struct bulk_options chosen = { .rate_mbit = -1, .block_bytes = BLOCK_DEFAULT_BYTES, .timeout_ms = 10000 };
	struct side_options side = side_defaults;
	struct option options[] = {
		{ .name = "serve", .kind = OPTION_TEXT, .target = &chosen.serve, .argument = "ADDRESS:PORT",
		  .help = "receive from the first who connects there" },
		{ .name = "peer", .kind = OPTION_TEXT, .target = &chosen.peer, .argument = "ADDRESS:PORT",
		  .help = "connect there, and send random data" },
		{ .name = "rate-mbit", .kind = OPTION_INT, .target = &chosen.rate_mbit, .min = 0, .max = BULK_RATE_MAX_MBIT,
		  .argument = "N", .help = "Mbit/s of payload, 0..1000000 (default 0: as fast as it goes)" },
		{ .name = "block-bytes", .kind = OPTION_INT, .target = &chosen.block_bytes, .min = BULK_BLOCK_MIN,
		  .max = BULK_BLOCK_MAX, .argument = "N", .help = "of a call, at most, 1..1048576 bytes (default 65536)" },
		{ .name = "bytes", .kind = OPTION_INT, .target = &chosen.bytes, .min = 1, .max = INT64_C(1) << 50,
		  .argument = "N", .help = "end when so many are sent, 1..2^50 (default: by --duration-ms)" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &chosen.duration_ms, .min = 1, .max = 604800000,
		  .argument = "N", .help = "end after so long, 1..604800000 ms (default 10000; with --bytes or --serve: however long it takes)" },
		{ .name = "timeout-ms", .kind = OPTION_INT, .target = &chosen.timeout_ms, .min = 1, .max = 3600000, .argument = "N",
		  .help = "end if the other end takes or gives nothing for so long, 1..3600000 ms (default 10000)" },
		{ .name = "priority", .kind = OPTION_INT, .target = &side.priority, .min = 0, .max = 99, .argument = "N",
		  .help = "SCHED_FIFO priority, 0..99 (default 0: do not ask)" },
		{ .name = "cpu", .kind = OPTION_INT, .target = &side.cpu, .min = 0, .max = 1023, .argument = "N",
		  .help = "CPU that the thread is pinned to, 0..1023 (default: any)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--serve ADDRESS:PORT | --peer ADDRESS:PORT [options]",
		.about = "Send random data in bulk over TCP, or receive it: both ends record each piece (bw-events, points bulk), and say\n"
			 "how much it was, how fast, and its checksum.\n",
		.options = options,
	};
	int parsed;

	side.priority = 0;
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	return run_bulk(&chosen, &side);
}
