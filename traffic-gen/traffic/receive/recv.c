/* SPDX-License-Identifier: Apache-2.0 */
/* The verb recv: receive all streams of a plan; count, time and judge each message. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/summary.h"
#include "config/options.h"
#include "traffic/receive/consumer.h"
#include "traffic/verbs.h"
#include "traffic/witness/witness_inside.h"

#define PROGRESS_NS INT64_C(1000000000)
#define TICK_NS INT64_C(20000000)
#define CLOCKS_TIMEOUT_NS INT64_C(3000000000) /* how long "ready" waits for the clocks of the producers */

enum { PRIORITY_DEFAULT = 40, PRIORITY_MAX = 97, PRIORITY_STEP = 2 /* between them: the card's interrupt threads */ };

struct recv_options {
	const char *directory, *rtdip_socket, *witness;
	bool log;
	bool check_fill;
	int64_t priority, busy_poll_us;
	struct option_list cpus;
};

static int lane_of(const struct stream *stream)
{
	return stream->low_latency ? CONSUMER_LOW_LATENCY : CONSUMER_BULK;
}

static const struct clockline *clock_of(const struct consumer *consumer, const struct stream *stream)
{
	if (consumer->plan->correction == CORRECTION_NONE)
		return NULL;
	return &consumer->clocks.clocks[plan_find_producer(consumer->plan, stream->producer)->clock].line;
}

static int open_stream(struct consumer *consumer, const struct stream *stream, struct incoming *incoming)
{
	int lane = lane_of(stream);
	int err = account_open(&incoming->account, consumer->plan, stream, clock_of(consumer, stream),
			       &consumer->recorder, lane);

	if (err)
		return err;
	incoming->receiver = &consumer->receivers[lane];
	incoming->port = (uint16_t)(consumer->plan->base_port + stream->id);
	incoming->transport = receiving_transport_of(stream);
	err = incoming->transport->listen(&consumer->acceptor, incoming);
	if (err) {
		struct address local = address_at(&consumer->plan->consumer, incoming->port);
		char text[ADDRESS_TEXT_BYTES];

		fprintf(stderr, CONSUMER_TOOL ": stream %u: %s cannot be opened: %s\n", stream->id,
			address_format(&local, text), strerror(-err));
	}
	return err;
}

/* Open everything that the run needs. What is opened is closed by close_consumer(). @return exit code */
static int open_consumer(struct consumer *consumer, const struct recv_options *options)
{
	const struct pattern *pattern = consumer->plan->pattern;
	int streams = (int)pattern->stream_count;
	int code, err;

	consumer->incoming = calloc(pattern->stream_count, sizeof(*consumer->incoming));
	code = own_clock_open(&consumer->own_clock, consumer->plan, &consumer->tai);
	if (code != EXIT_DONE)
		return code;
	err = consumer->incoming ? 0 : -ENOMEM;
	if (!err)
		err = clocks_open(&consumer->clocks, consumer->plan, &consumer->tai);
	for (int lane = 0; !err && lane < CONSUMER_LANES; lane++) {
		err = receiver_open(&consumer->receivers[lane], consumer->plan, &consumer->own_clock,
				    streams * RECEIVER_CONNECTIONS_MAX, &consumer->stop);
		consumer->receivers[lane].check_fill = options->check_fill;
	}
	if (!err)
		err = acceptor_open(&consumer->acceptor, consumer->plan, streams, &consumer->stop);
	if (err == -ENOTSUP && options->busy_poll_us) {
		fprintf(stderr, CONSUMER_TOOL ": --busy-poll-us: this kernel lets no wait for many sockets poll the card (Linux 6.9 does)\n");
		return EXIT_CAPABILITY;
	}
	if (err) {
		fprintf(stderr, CONSUMER_TOOL ": cannot be set up: %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	err = recorder_start(&consumer->recorder, options->directory, options->log);
	if (err) {
		fprintf(stderr, CONSUMER_TOOL ": --out %s: %s\n", options->directory, strerror(-err));
		return EXIT_CAPABILITY;
	}
	for (int i = 0; i < streams; i++) {
		if (open_stream(consumer, &pattern->streams[i], &consumer->incoming[i]) != 0)
			return EXIT_CAPABILITY;
	}
	return EXIT_DONE;
}

static void close_consumer(struct consumer *consumer)
{
	recorder_stop(&consumer->recorder);
	for (size_t i = 0; consumer->incoming && i < consumer->plan->pattern->stream_count; i++) {
		receiver_close_incoming(&consumer->incoming[i]);
		account_close(&consumer->incoming[i].account);
	}
	acceptor_close(&consumer->acceptor);
	for (int lane = 0; lane < CONSUMER_LANES; lane++)
		receiver_close(&consumer->receivers[lane]);
	clocks_close(&consumer->clocks);
	own_clock_close(&consumer->own_clock);
	free(consumer->incoming);
	plan_destroy(consumer->plan);
	free(consumer);
}

static int start_receiver(struct consumer *consumer, int lane, const struct recv_options *options)
{
	static const char *const names[CONSUMER_LANES] = { "recv-bulk", "recv-fast" };
	int priority = options->priority ? (int)options->priority + PRIORITY_STEP * lane : 0;
	int cpu = options->cpus.count ? options->cpus.values[lane % options->cpus.count] : PORT_CPU_ANY;
	struct receiver *receiver = &consumer->receivers[lane];

	return port_thread_start(names[lane], priority, cpu, receiver_run, receiver, &receiver->thread);
}

static int start_threads(struct consumer *consumer, const struct recv_options *options)
{
	int err = start_receiver(consumer, CONSUMER_BULK, options);

	if (!err)
		err = start_receiver(consumer, CONSUMER_LOW_LATENCY, options);
	if (!err)
		err = port_thread_start("acceptor", 0, PORT_CPU_ANY, acceptor_run, &consumer->acceptor,
					&consumer->acceptor.thread);
	if (!err)
		err = own_clock_start(&consumer->own_clock);
	if (!err)
		err = clocks_start(&consumer->clocks);
	if (err) {
		fprintf(stderr, CONSUMER_TOOL ": threads cannot be started: %s\n", strerror(-err));
		return err;
	}
	consumer->scheduling = *port_thread_scheduling(consumer->receivers[CONSUMER_BULK].thread);
	return 0;
}

static void stop_threads(struct consumer *consumer)
{
	atomic_store(&consumer->stop, true);
	for (int lane = 0; lane < CONSUMER_LANES; lane++) {
		if (consumer->receivers[lane].thread)
			port_thread_join(consumer->receivers[lane].thread);
		consumer->receivers[lane].thread = NULL;
	}
	if (consumer->acceptor.thread)
		port_thread_join(consumer->acceptor.thread);
	consumer->acceptor.thread = NULL;
	clocks_stop(&consumer->clocks);
	own_clock_stop(&consumer->own_clock);
	recorder_stop(&consumer->recorder);
}

/*
 * Wait until each clock that is needed has a line. One that never answers makes the result invalid at the end, not
 * the run impossible.
 */
static void wait_clocks(struct consumer *consumer)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + CLOCKS_TIMEOUT_NS;

	while ((!own_clock_seen(&consumer->own_clock) ||
		(consumer->plan->correction == CORRECTION_TWO_WAY && !clocks_all_seen(&consumer->clocks))) &&
	       !port_stop_requested() && port_clock_now_ns(PORT_CLOCK_MONOTONIC) < deadline_monotonic_ns)
		port_sleep_ns(TICK_NS);
}

/* Where the run stands; ends are instants of CLOCK_MONOTONIC, so that a step of the local clock does not move them. */
struct course {
	int64_t begin_monotonic_ns, next_progress_monotonic_ns;
	int64_t counting_monotonic_ns, grace_monotonic_ns, end_monotonic_ns;
};

/* Work the course out anew. @return false after a step: TAI no longer tells when the producers end, and the course stays */
static bool plan_course(struct consumer *consumer, struct course *course)
{
	int64_t now_tai_ns = stepwatch_tai_now_ns(&consumer->watch, &consumer->tai);
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	if (consumer->watch.count)
		return false;
	now_tai_ns = own_clock_from_system_tai_ns(&consumer->own_clock, now_tai_ns);
	consumer_interval(consumer, &consumer->start_tai_ns, &consumer->end_tai_ns);
	course->counting_monotonic_ns = now_monotonic_ns + consumer->start_tai_ns - now_tai_ns;
	course->grace_monotonic_ns = now_monotonic_ns + consumer->end_tai_ns - now_tai_ns;
	course->end_monotonic_ns = course->grace_monotonic_ns + consumer->plan->grace_ns;
	return true;
}

/* Print progress until the end of the grace time. @return true unless it was stopped, or never knew when that is */
static bool follow(struct consumer *consumer)
{
	struct course course = { .begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) };

	course.next_progress_monotonic_ns = course.begin_monotonic_ns + PROGRESS_NS;
	if (!plan_course(consumer, &course))
		return false;
	if (course.counting_monotonic_ns < course.begin_monotonic_ns)
		consumer_invalidate(consumer, "ready %lld ms after counting began",
				    (long long)((course.begin_monotonic_ns - course.counting_monotonic_ns) / 1000000));
	for (;;) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

		stepwatch_tai_now_ns(&consumer->watch, &consumer->tai);
		if (port_stop_requested())
			return false;
		if (now_monotonic_ns >= course.end_monotonic_ns)
			return true;
		if (now_monotonic_ns >= course.next_progress_monotonic_ns) {
			consumer_print_progress(consumer, now_monotonic_ns - course.begin_monotonic_ns,
						now_monotonic_ns < course.counting_monotonic_ns ? "warmup" :
						now_monotonic_ns < course.grace_monotonic_ns    ? "counting" : "grace");
			course.next_progress_monotonic_ns += PROGRESS_NS;
			plan_course(consumer, &course);
		}
		port_sleep_ns(TICK_NS);
	}
}

static void judge_own_clock(struct consumer *consumer)
{
	const struct own_clock_account *account = &consumer->own_clock.account;

	if (!consumer->own_clock.source)
		return;
	if (account->readings == 0)
		consumer_invalidate(consumer, "clock %s gave no time: %s", consumer->own_clock.name, account->why);
	else if (account->refused)
		consumer_invalidate(consumer, "clock %s gave no time %llu times: %s", consumer->own_clock.name,
				    (unsigned long long)account->refused, account->why);
	if (account->steps)
		consumer_invalidate(consumer, "clock %s was stepped by %lld ns", consumer->own_clock.name,
				    (long long)account->last_step_ns);
	if (*account->unfit)
		consumer_invalidate(consumer, "clock %s: %s", consumer->own_clock.name, account->unfit);
}

/* Lines that broke: of some clocks it was theirs, which clock_steps tells; of all of them it may be the local clock's. */
static void judge_lines(struct consumer *consumer)
{
	const struct clocks *clocks = &consumer->clocks;
	size_t broken = 0;

	for (size_t i = 0; i < clocks->count; i++)
		broken += clocks->clocks[i].step_count > 0;
	if (broken && broken == clocks->count)
		consumer_invalidate(consumer, "the lines to all clocks broke");
}

static void judge_clocks(struct consumer *consumer)
{
	if (consumer->watch.count || tally_get(&consumer->receivers[CONSUMER_BULK].clock_steps) ||
	    tally_get(&consumer->receivers[CONSUMER_LOW_LATENCY].clock_steps))
		consumer_invalidate(consumer, "the local clock was stepped");
	judge_own_clock(consumer);
	judge_lines(consumer);
	for (size_t i = 0; i < consumer->clocks.count; i++) {
		const struct peer_clock *clock = &consumer->clocks.clocks[i];

		if (consumer->plan->correction == CORRECTION_TWO_WAY && clock->peer.replies == 0)
			consumer_invalidate(consumer, "clock %s never answered", clock->plan->name);
	}
	if (consumer->recorder.write_error)
		consumer_invalidate(consumer, "the logs are incomplete: %s", strerror(consumer->recorder.write_error));
}

/* What a service that has ended did not bring is nobody's loss; and that nothing came is not that nothing was sent. */
static void judge_service(struct consumer *consumer)
{
	bool ended = false;

	for (int lane = 0; lane < CONSUMER_LANES; lane++)
		ended |= consumer->receivers[lane].rtdip && rtdip_has_ended(consumer->receivers[lane].rtdip);
	if (ended)
		consumer_invalidate(consumer, RTDIP_SERVICE_ENDED);
}

/* Run the plan. @return exit code */
static int run(struct consumer *consumer, const struct recv_options *options)
{
	struct witness_inside *witness = NULL;
	bool complete;
	int code = open_consumer(consumer, options);

	if (code != EXIT_DONE)
		return code;
	stepwatch_init(&consumer->watch, &consumer->tai);
	if (start_threads(consumer, options) != 0 ||
	    (options->witness && witness_inside_start(options->witness, consumer->plan->tai_utc_s, &witness) != 0)) {
		stop_threads(consumer);
		return EXIT_CAPABILITY;
	}
	code = -port_memory_lock();
	if (code)
		summary_add_note(&consumer->scheduling, "memory not locked", code);
	wait_clocks(consumer);
	consumer->rss_start_bytes = port_rss_bytes();
	consumer_print_ready(consumer);
	complete = follow(consumer);
	stop_threads(consumer);
	if (witness_inside_finish(witness) != 0)
		consumer_invalidate(consumer, "the witness's answer cannot be written");
	judge_clocks(consumer);
	judge_service(consumer);
	if (consumer_print_result(consumer, complete) != 0) {
		fprintf(stderr, CONSUMER_TOOL ": the result cannot be written: stdout failed\n");
		return EXIT_INVALID;
	}
	return complete && consumer->reason_count == 0 ? EXIT_DONE : EXIT_INVALID;
}

static int read_options(int argc, char **argv, struct recv_options *recv_options, const char **path)
{
	const struct option options[] = {
		{ .name = "out", .kind = OPTION_TEXT, .target = &recv_options->directory, .argument = "DIR",
		  .help = "write misses.ndjson, messages over three quarters of their budgets, there" },
		{ .name = "log", .kind = OPTION_FLAG, .target = &recv_options->log,
		  .help = "also write every message to messages.csv (needs --out)" },
		{ .name = "check-fill", .kind = OPTION_FLAG, .target = &recv_options->check_fill,
		  .help = "compare all bytes of each message with the fill pattern" },
		{ .name = "cpu", .kind = OPTION_LIST, .target = &recv_options->cpus, .min = 0, .max = 1023,
		  .argument = "N[,N]", .help = "pin the receiving threads (ordinary, low-latency) to these CPUs" },
		{ .name = "priority", .kind = OPTION_INT, .target = &recv_options->priority, .min = 0,
		  .max = PRIORITY_MAX, .argument = "N",
		  .help = "SCHED_FIFO priority, low-latency streams two higher; 0: do not ask (default 40)" },
		{ .name = "busy-poll-us", .kind = OPTION_INT, .target = &recv_options->busy_poll_us, .min = 0, .max = 10000,
		  .argument = "N", .help = "poll the network card for so long before each wait (Linux 6.9; 0: wait for interrupts)" },
		{ .name = "rtdip", .kind = OPTION_TEXT, .target = &recv_options->rtdip_socket, .argument = "SOCKET",
		  .help = "carry all streams by RTDiP, of the service that has this socket, at both ends" },
		{ .name = "witness", .kind = OPTION_TEXT, .target = &recv_options->witness, .argument = "FILE",
		  .help = "watch this machine from within, as the verb witness each 3 ms at the highest priority; its answer goes there" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = CONSUMER_TOOL, .usage = "PLAN [--out DIR] [--log]", .options = options,
		.positional_min = 1, .positional_max = 1,
		.about = "Receive all streams of a plan. Latencies are those of the producers' clocks, to which each arrival is\n"
			 "corrected by two-way exchanges over the control network.\n",
	};
	int parsed = options_parse(&command, argc, argv, path);

	if (parsed >= 0 && recv_options->log && !recv_options->directory) {
		fprintf(stderr, CONSUMER_TOOL ": --log needs --out DIR\n");
		return -EINVAL;
	}
	return parsed;
}

int verb_recv(int argc, char **argv)
{
	struct recv_options options = { .priority = PRIORITY_DEFAULT };
	struct schema_error error;
	struct consumer *consumer;
	const char *path = NULL;
	int code, parsed = read_options(argc, argv, &options, &path);

	if (parsed < 0)
		return options_exit_code(parsed);
	consumer = calloc(1, sizeof(*consumer));
	if (!consumer)
		return EXIT_CAPABILITY;
	if (plan_load(path, &consumer->plan, &error) != 0) {
		fprintf(stderr, "%s\n", error.text);
		free(consumer);
		return EXIT_BAD_INPUT;
	}
	if (options.rtdip_socket)
		plan_carry_by_rtdip(consumer->plan, options.rtdip_socket);
	consumer->plan->busy_poll_us = (int)options.busy_poll_us;
	port_stop_install();
	json_init(&consumer->json, stdout);
	port_tai_init(&consumer->tai, consumer->plan->tai_utc_s);
	code = run(consumer, &options);
	close_consumer(consumer);
	return code;
}
