/* SPDX-License-Identifier: Apache-2.0 */
/* The verb stimulus: send stimuli to whoever connects, or answer them. */
#include "traffic/stimulus/stimulus.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/time_units.h"
#include "traffic/verbs.h"

#define TOOL "bw-traffic stimulus"

enum { COUNT_DEFAULT = 1000, COUNT_MAX = 1000000, BACKLOG = 1 };

struct stimulus_options {
	const char *serve, *peer;
	int64_t count, size_bytes; /* 0: not given */
	int64_t interval_us, timeout_ms, delay_turn;
};

static void print_ready(struct json *json, const struct stimulus_end *end, const struct stimulus_server *server)
{
	struct address local = { 0 };
	char text[ADDRESS_TEXT_BYTES];

	answer_begin(json, "ready", TOOL);
	if (server) {
		port_socket_local(server->listener, &local);
		json_string(json, "address", address_format(&local, text));
	}
	json_int(json, "tai_utc_s", end->side.tai.tai_utc_s);
	answer_end(json);
}

/* Return whether the result is valid. */
static bool print_validity(struct json *json, const struct stimulus_end *end)
{
	const char *reasons[2];
	size_t count = 0;

	if (end->failed)
		reasons[count++] = end->failed;
	if (end->watch.count)
		reasons[count++] = "the local clock was stepped";
	return answer_validity(json, !end->failed, reasons, count);
}

static void print_leg(struct json *json, const struct leg *leg)
{
	json_uint(json, "negative", leg->negative);
	if (leg->negative) {
		json_uint(json, "first_negative", leg->first_negative);
		json_int(json, "first_negative_ns", leg->first_negative_ns);
	}
	summary_histogram(json, "received_minus_sent", leg->received_minus_sent);
}

/* Tell people, too, what is no time that a message can take. */
static void tell(const struct stimulus_end *end)
{
	if (end->error)
		fprintf(stderr, TOOL ": %s: %s\n", end->failed, strerror(-end->error));
	if (end->leg.negative)
		fprintf(stderr, TOOL ": %llu of %llu messages came before they were sent, by the clocks of both ends: the first, %u, by %lld ns\n",
			(unsigned long long)end->leg.negative, (unsigned long long)tally_get(&end->received), end->leg.first_negative,
			(long long)-end->leg.first_negative_ns);
}

static int print_result(const struct stimulus_end *end, const char *own_key, const struct histogram *own,
			const struct port_scheduling *scheduling)
{
	struct json json;
	bool valid;

	json_init(&json, stdout);
	answer_result(&json, TOOL);
	json_uint(&json, "count", end->count);
	json_uint(&json, "size_bytes", end->size_bytes);
	json_uint(&json, "sent", tally_get(&end->sent));
	json_uint(&json, "received", tally_get(&end->received));
	valid = print_validity(&json, end);
	json_int(&json, "delay_turn", end->delay_turn);
	side_write_delays(&json, &end->side);
	print_leg(&json, &end->leg);
	summary_histogram(&json, "sending", end->sending[0]);
	summary_histogram(&json, "sending_delayed", end->sending[1]);
	summary_histogram(&json, own_key, own);
	json_array_open(&json, "clock_steps");
	summary_steps(&json, &end->watch);
	json_array_close(&json);
	summary_scheduling(&json, scheduling);
	answer_end(&json);
	tell(end);
	return valid ? EXIT_DONE : EXIT_INVALID;
}

/* Prepare what both ends have. Return 0, or an exit code. */
static int prepare(struct stimulus_end *end, struct histogram **own)
{
	struct histogram **const all[] = { &end->leg.received_minus_sent, &end->sending[0], &end->sending[1], own };
	struct side *side = &end->side;

	port_stop_install();
	port_tai_init(&side->tai, (int)side->options.tai_utc_s);
	side->sock = PORT_SOCKET_NONE;
	side->receive.delay_us = side->options.delay_receive_us;
	side->send.delay_us = side->options.delay_send_us;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i] = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
		if (!*all[i])
			return side_fail(side, "cannot make", "the histograms", -errno);
	}
	stepwatch_init(&end->watch, &side->tai);
	return EXIT_DONE;
}

static void finish(struct stimulus_end *end, struct histogram *own)
{
	if (end->side.sock != PORT_SOCKET_NONE)
		port_socket_close(end->side.sock);
	histogram_destroy(end->leg.received_minus_sent);
	histogram_destroy(end->sending[0]);
	histogram_destroy(end->sending[1]);
	histogram_destroy(own);
}

static int serve(struct stimulus_server *server, const struct address *local, const char *text)
{
	struct stimulus_end *end = &server->end;
	int code = prepare(end, &server->round_trip), err;
	struct port_scheduling scheduling;
	struct json json;

	server->listener = PORT_SOCKET_NONE;
	if (code)
		goto out;
	err = port_tcp_listen(local, BACKLOG, &server->listener);
	if (err) {
		code = side_fail(&end->side, "cannot listen at", text, err);
		goto out;
	}
	json_init(&json, stdout);
	print_ready(&json, end, server);
	code = side_run(&end->side, stimulus_server_run, server, NULL, &scheduling);
	if (!code)
		code = print_result(end, "round_trip", server->round_trip, &scheduling);
	if (server->listener != PORT_SOCKET_NONE)
		port_socket_close(server->listener);
out:
	finish(end, server->round_trip);
	return code;
}

static int respond(struct stimulus_client *client)
{
	struct stimulus_end *end = &client->end;
	int code = prepare(end, &client->residence);
	struct port_scheduling scheduling;
	struct json json;

	if (!code) {
		json_init(&json, stdout);
		print_ready(&json, end, NULL);
		code = side_run(&end->side, stimulus_client_run, client, NULL, &scheduling);
	}
	if (!code)
		code = print_result(end, "residence", client->residence, &scheduling);
	finish(end, client->residence);
	return code;
}

static int run_stimulus(const struct stimulus_options *options, const struct side_options *chosen)
{
	static struct stimulus_server server;
	static struct stimulus_client client;
	struct stimulus_end *end = options->serve ? &server.end : &client.end;
	struct address local;

	if (!options->serve == !options->peer)
		return option_refuse(TOOL, "--serve, --peer", options->serve ? options->serve : "", "one of them");
	if (options->peer && (options->count || options->size_bytes || options->interval_us))
		return option_refuse(TOOL, "--count, --size-bytes, --interval-us", "", "of --serve; the client learns them from it");
	end->side.tool = TOOL;
	end->side.options = *chosen;
	end->delay_turn = options->delay_turn;
	end->timeout_ns = options->timeout_ms * NS_PER_MS;
	if (options->peer) {
		if (address_parse(options->peer, &client.peer))
			return option_refuse(TOOL, "--peer", options->peer, ADDRESS_FORM);
		return respond(&client);
	}
	if (address_parse(options->serve, &local))
		return option_refuse(TOOL, "--serve", options->serve, ADDRESS_FORM);
	end->count = (uint32_t)(options->count ? options->count : COUNT_DEFAULT);
	end->size_bytes = (uint32_t)(options->size_bytes ? options->size_bytes : STIMULUS_BYTES_MIN);
	server.interval_ns = (options->interval_us ? options->interval_us : 10000) * NS_PER_US;
	return serve(&server, &local, options->serve);
}

int verb_stimulus(int argc, char **argv)
{
	enum { OWN_OPTIONS = 7 };
	struct stimulus_options chosen = { .timeout_ms = 1000 };
	struct side_options side = side_defaults;
	struct option options[OWN_OPTIONS + SIDE_OPTIONS + 1] = {
		{ .name = "serve", .kind = OPTION_TEXT, .target = &chosen.serve, .argument = "ADDRESS:PORT",
		  .help = "send stimuli to the first client that connects there" },
		{ .name = "peer", .kind = OPTION_TEXT, .target = &chosen.peer, .argument = "ADDRESS:PORT",
		  .help = "connect there, and answer each stimulus" },
		{ .name = "count", .kind = OPTION_INT, .target = &chosen.count, .min = 1, .max = COUNT_MAX, .argument = "N",
		  .help = "stimuli, 1..1000000 (default 1000)" },
		{ .name = "interval-us", .kind = OPTION_INT, .target = &chosen.interval_us, .min = 100, .max = 10000000,
		  .argument = "N", .help = "grid of the stimuli, 100..10000000 us (default 10000)" },
		{ .name = "size-bytes", .kind = OPTION_INT, .target = &chosen.size_bytes, .min = STIMULUS_BYTES_MIN,
		  .max = STIMULUS_BYTES_MAX, .argument = "N", .help = "of each message, either way, 48..65536 bytes (default 48)" },
		{ .name = "timeout-ms", .kind = OPTION_INT, .target = &chosen.timeout_ms, .min = 1, .max = 3600000, .argument = "N",
		  .help = "end if the other end says nothing for so long, 1..3600000 ms (default 1000)" },
		{ .name = "delay-turn", .kind = OPTION_INT, .target = &chosen.delay_turn, .min = 0, .max = COUNT_MAX, .argument = "N",
		  .help = "known delays lie within a leg in each second turn of so many stimuli alone, 0..1000000 (default 0: always)" },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--serve ADDRESS:PORT | --peer ADDRESS:PORT [options]",
		.about = "Send small messages over TCP to a client that sends each one back: both ends record when each leg began and\n"
			 "ended (bw-events, points stimulus and response), and say what their own clocks make of it.\n",
		.options = options,
	};
	int parsed;

	side_add_options(options + OWN_OPTIONS, &side);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	return run_stimulus(&chosen, &side);
}
