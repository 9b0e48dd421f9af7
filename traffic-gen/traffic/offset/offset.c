/* SPDX-License-Identifier: Apache-2.0 */
/* The verb offset: answer requests of two-way time transfer, or measure a peer's clock with them. */
#include "traffic/offset/offset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/json.h"
#include "base/time_units.h"
#include "config/options.h"
#include "traffic/verbs.h"

#define TOOL "bw-traffic offset"

enum { PRIORITY_DEFAULT = 50 };

struct offset_options {
	const char *serve, *peer;
	int64_t duration_ms; /* -1: not given */
	int64_t interval_ms, priority, cpu, tai_utc_s;
};

static int fail(const char *what, const char *which, int err)
{
	fprintf(stderr, TOOL ": %s %s: %s\n", what, which, strerror(-err));
	return EXIT_CAPABILITY;
}

/* Run a side of the verb on a thread of its own with the priority and CPU that were asked for. */
static int run_thread(const struct offset_options *options, void (*run)(void *), void *side,
		      struct port_scheduling *scheduling)
{
	int locked = port_memory_lock();
	struct port_thread *thread;
	int err = port_thread_start("offset", (int)options->priority, (int)options->cpu, run, side, &thread);

	if (err)
		return fail("cannot start", "the thread", err);
	*scheduling = *port_thread_scheduling(thread);
	if (locked)
		summary_add_note(scheduling, "memory is not locked", -locked);
	port_thread_join(thread);
	return EXIT_DONE;
}

static void print_serve_ready(struct json *json, const struct offset_server *server)
{
	struct address local = { 0 };
	char text[ADDRESS_TEXT_BYTES];

	port_socket_local(server->sock, &local);
	answer_begin(json, "ready", TOOL);
	json_string(json, "address", address_format(&local, text));
	json_bool(json, "kernel_stamps", server->kernel_stamps);
	json_int(json, "tai_utc_s", server->tai.tai_utc_s);
	json_int(json, "local_tai_ns", port_tai_now_ns(&server->tai));
	answer_end(json);
}

/* A server without a duration ends by a signal: that is its way to be complete. */
static int serve(const struct offset_options *options, const struct address *local)
{
	struct offset_server server = { .end_monotonic_ns = INT64_MAX };
	struct port_scheduling scheduling;
	bool bounded = options->duration_ms > 0, complete;
	struct json json;
	int err, code;

	port_tai_init(&server.tai, (int)options->tai_utc_s);
	err = offset_server_open(&server, local);
	if (err)
		return fail("cannot listen at", options->serve, err);
	json_init(&json, stdout);
	print_serve_ready(&json, &server);
	if (bounded)
		server.end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + options->duration_ms * NS_PER_MS;
	code = run_thread(options, offset_server_run, &server, &scheduling);
	offset_server_close(&server);
	if (code)
		return code;
	complete = !bounded || !port_stop_requested();
	answer_result(&json, TOOL);
	json_bool(&json, "complete", complete);
	json_uint(&json, "answered", atomic_load(&server.answered));
	json_uint(&json, "refused", atomic_load(&server.refused));
	json_uint(&json, "unsent", atomic_load(&server.unsent));
	summary_scheduling(&json, &scheduling);
	answer_end(&json);
	return complete ? EXIT_DONE : EXIT_INVALID;
}

/* Return whether the result is valid. */
static bool print_validity(struct json *json, const struct offset_client *client)
{
	const char *reasons[4];
	size_t count = 0;

	if (!client->complete)
		reasons[count++] = "stopped before its end";
	if (client->peer.replies == 0)
		reasons[count++] = "the peer has not answered";
	else if (!twoway_current(client->twoway).valid)
		reasons[count++] = "no answer of the peer was possible";
	if (client->peer_step_ns)
		reasons[count++] = "the peer's clock was stepped";
	if (client->watch.count)
		reasons[count++] = "the local clock was stepped";
	return answer_validity(json, client->complete, reasons, count);
}

static void print_steps(struct json *json, const struct offset_client *client)
{
	json_array_open(json, "clock_steps");
	summary_steps(json, &client->watch);
	if (client->peer_step_ns) {
		json_object_open(json, NULL);
		json_string(json, "clock", "peer");
		json_int(json, "time_tai_ns", client->peer_step_local_ns);
		json_int(json, "step_ns", client->peer_step_ns);
		json_object_close(json);
	}
	json_array_close(json);
}

/* A figure of the line, or null when there is none. */
static void figure(struct json *json, const char *key, bool known, int64_t value)
{
	if (known)
		json_int(json, key, value);
	else
		json_null(json, key);
}

/*
 * Offset, rate and bound are those of the line at the end, which knows the whole window. The residual is that of the
 * second half: in the first the rate is not known well.
 */
static void print_clock(struct json *json, const struct offset_client *client)
{
	struct twoway_line line = twoway_current(client->twoway);
	int64_t at_local_ns = client->last_local_ns;
	int64_t half_local_ns = client->first_local_ns + (at_local_ns - client->first_local_ns) / 2;
	struct twoway_summary summary;

	twoway_summarise(client->twoway, half_local_ns, at_local_ns, &summary);
	json_uint(json, "exchanges", summary.exchanges);
	json_uint(json, "kept", summary.kept);
	json_uint(json, "invalid", summary.invalid);
	json_uint(json, "lost", client->peer.requests - client->peer.replies);
	figure(json, "offset_ns", line.valid, line.valid ? twoway_line_offset_ns(&line, at_local_ns) : 0);
	figure(json, "rate_ppb", line.valid, line.rate_ppb);
	figure(json, "bound_ns", line.valid, line.valid ? twoway_line_bound_ns(&line, at_local_ns) : 0);
	figure(json, "bound_growth_ppb", line.valid, line.bound_growth_ppb);
	figure(json, "residual_ns", line.valid, summary.residual_ns);
	figure(json, "rtt_min_ns", line.valid, summary.rtt_min_ns);
	figure(json, "rtt_p50_ns", line.valid, summary.rtt_p50_ns);
	json_int(json, "at_local_tai_ns", at_local_ns);
	json_int(json, "tai_utc_s", client->tai.tai_utc_s);
	summary_series(json, client->twoway);
}

static int print_measured(struct json *json, const struct offset_client *client, const struct offset_options *options,
			  const struct port_scheduling *scheduling)
{
	bool valid;

	answer_result(json, TOOL);
	json_string(json, "peer", options->peer);
	valid = print_validity(json, client);
	print_clock(json, client);
	print_steps(json, client);
	summary_scheduling(json, scheduling);
	answer_end(json);
	return valid ? EXIT_DONE : EXIT_INVALID;
}

static int measure(const struct offset_options *options, const struct address *peer)
{
	const struct twoway_config config = twoway_default_config();
	struct offset_client client = {
		.interval_ns = options->interval_ms * NS_PER_MS,
		.duration_ns = (options->duration_ms < 0 ? 2000 : options->duration_ms) * NS_PER_MS,
	};
	struct port_scheduling scheduling;
	struct json json;
	int err, code;

	port_tai_init(&client.tai, (int)options->tai_utc_s);
	client.twoway = twoway_create(&config);
	if (!client.twoway)
		return fail("cannot make", "the estimator", -errno);
	err = exchange_open(&client.peer, peer, (uint64_t)port_clock_now_ns(PORT_CLOCK_MONOTONIC));
	if (err) {
		code = fail("cannot reach", options->peer, err);
		goto out;
	}
	stepwatch_init(&client.watch, &client.tai);
	json_init(&json, stdout);
	answer_begin(&json, "ready", TOOL);
	json_int(&json, "tai_utc_s", client.tai.tai_utc_s);
	answer_end(&json);
	code = run_thread(options, offset_client_run, &client, &scheduling);
	exchange_close(&client.peer);
	if (!code)
		code = print_measured(&json, &client, options, &scheduling);
out:
	twoway_destroy(client.twoway);
	return code;
}

static int run_side(const struct offset_options *options)
{
	const char *text = options->serve ? options->serve : options->peer;
	struct address address;

	if (!options->serve == !options->peer) {
		fprintf(stderr, TOOL ": exactly one of --serve and --peer is needed\n");
		return EXIT_BAD_INPUT;
	}
	if (address_parse(text, &address)) {
		fprintf(stderr, TOOL ": --%s: \"%s\"; allowed " ADDRESS_FORM "\n",
			options->serve ? "serve" : "peer", text);
		return EXIT_BAD_INPUT;
	}
	port_stop_install();
	return options->serve ? serve(options, &address) : measure(options, &address);
}

int verb_offset(int argc, char **argv)
{
	struct offset_options chosen = { .duration_ms = -1, .interval_ms = 100, .priority = PRIORITY_DEFAULT,
					 .cpu = PORT_CPU_ANY, .tai_utc_s = TAI_UTC_DEFAULT_S };
	const struct option options[] = {
		{ .name = "serve", .kind = OPTION_TEXT, .target = &chosen.serve, .argument = "ADDRESS:PORT",
		  .help = "answer requests there" },
		{ .name = "peer", .kind = OPTION_TEXT, .target = &chosen.peer, .argument = "ADDRESS:PORT",
		  .help = "measure the clock of the peer that answers there" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &chosen.duration_ms, .min = 0, .max = INT64_C(604800000),
		  .argument = "N", .help = "how long (default: --peer 2000; --serve until SIGTERM)" },
		{ .name = "interval-ms", .kind = OPTION_INT, .target = &chosen.interval_ms, .min = 1, .max = 60000,
		  .argument = "N", .help = "time between bursts of exchanges (default 100)" },
		{ .name = "priority", .kind = OPTION_INT, .target = &chosen.priority, .min = 0, .max = 99,
		  .argument = "N", .help = "SCHED_FIFO priority (default 50); 0: do not ask" },
		{ .name = "cpu", .kind = OPTION_INT, .target = &chosen.cpu, .min = 0, .max = 1023, .argument = "N",
		  .help = "CPU that the thread is pinned to (default: any)" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &chosen.tai_utc_s, .min = 0, .max = 1000,
		  .argument = "N", .help = "TAI - UTC where the kernel does not know it (default 37)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--serve ADDRESS:PORT | --peer ADDRESS:PORT [options]",
		.about = "Two-way time transfer. offset_ns is peer - local: positive, the peer is ahead.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL);

	return parsed < 0 ? options_exit_code(parsed) : run_side(&chosen);
}
