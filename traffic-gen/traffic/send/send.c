/* SPDX-License-Identifier: Apache-2.0 */
/* The verb send: play the streams of producers. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/json.h"
#include "config/options.h"
#include "plan/phase.h"
#include "plan/plan.h"
#include "port/port.h"
#include "traffic/frame.h"
#include "traffic/send/sender.h"
#include "traffic/verbs.h"

#define TOOL "bw-traffic send"
#define PROGRESS_NS INT64_C(1000000000)
#define TICK_NS INT64_C(20000000)

enum { PRIORITY_DEFAULT = 50, REASON_BYTES = 160 };

struct send_run {
	struct plan *plan;
	struct port_tai tai;
	struct option_list numbers, cpus;
	int64_t priority;
	int sender_count;
	struct sender **senders;
	uint8_t *fill;
	atomic_bool stop;
	struct json json;
	bool awake;                /* keep the CPUs awake */
	int awake_error;           /* errno: they may sleep */
	int lock_error;            /* errno: memory is not locked; 0: it is */
	char reason[REASON_BYTES]; /* why the run is invalid; empty: it is not */
};

static bool is_chosen(const struct option_list *numbers, int number)
{
	for (int i = 0; i < numbers->count; i++) {
		if (numbers->values[i] == number)
			return true;
	}
	return numbers->all;
}

/* Refuse numbers that the plan does not have. */
static int check_numbers(const struct send_run *run)
{
	if (!run->numbers.all && run->numbers.count == 0) {
		fprintf(stderr, TOOL ": --producer is missing: numbers of the plan, or all\n");
		return -EINVAL;
	}
	for (int i = 0; i < run->numbers.count; i++) {
		if (plan_find_producer(run->plan, (uint16_t)run->numbers.values[i]))
			continue;
		fprintf(stderr, TOOL ": --producer: the plan has no producer %d; it has %u of them, up to %u\n",
			run->numbers.values[i], (unsigned int)run->plan->producer_count,
			run->plan->producers[run->plan->producer_count - 1].number);
		return -EINVAL;
	}
	return 0;
}

static int create_senders(struct send_run *run)
{
	run->fill = malloc(SENDER_FILL_BYTES);
	run->senders = calloc(run->plan->producer_count, sizeof(struct sender *));
	if (!run->fill || !run->senders)
		return -ENOMEM;
	frame_fill(run->fill, SENDER_FILL_BYTES);
	for (size_t i = 0; i < run->plan->producer_count; i++) {
		const struct plan_producer *producer = &run->plan->producers[i];
		int err;

		if (!is_chosen(&run->numbers, producer->number))
			continue;
		err = sender_create(run->plan, producer, &run->tai, run->fill, &run->stop,
				    &run->senders[run->sender_count]);
		if (err)
			return err;
		run->sender_count++;
	}
	return 0;
}

static int cpu_of(const struct send_run *run, int index)
{
	if (run->cpus.count)
		return run->cpus.values[index % run->cpus.count];
	return port_cpu_at(index % port_cpu_count());
}

static int start_threads(struct send_run *run)
{
	for (int i = 0; i < run->sender_count; i++) {
		struct sender *sender = run->senders[i];
		char name[16];
		int err;

		snprintf(name, sizeof(name), "producer-%u", sender->producer->number);
		err = port_thread_start(name, (int)run->priority, cpu_of(run, i), sender_run, sender, &sender->thread);
		if (err)
			return err;
	}
	return 0;
}

static int64_t first_start_tai_ns(const struct send_run *run)
{
	int64_t first_tai_ns = INT64_MAX;

	for (int i = 0; i < run->sender_count; i++) {
		if (run->senders[i]->producer->start_tai_ns < first_tai_ns)
			first_tai_ns = run->senders[i]->producer->start_tai_ns;
	}
	return first_tai_ns;
}

/* Say why not all links were up in time: one that never was, and why, or all of them were too late. */
static void explain_unconnected(struct send_run *run)
{
	for (int i = 0; i < run->sender_count; i++) {
		const struct sender *sender = run->senders[i];

		for (int j = 0; j < sender->stream_count; j++) {
			const struct link *link = &sender->streams[j].link;
			char peer[ADDRESS_TEXT_BYTES];

			if (link->was_up)
				continue;
			snprintf(run->reason, sizeof(run->reason), "stream %u: no connection to %s before slot 0: %s",
				 link->stream->id, address_format(&link->peer, peer),
				 link->last_error ? strerror(link->last_error) : "not answered");
			return;
		}
	}
	snprintf(run->reason, sizeof(run->reason), "the last connection was up only when slot 0 was past");
}

/* Wait until all links are up. @return 0, or -ETIMEDOUT when slot 0 came first, or -EINTR */
static int wait_established(struct send_run *run)
{
	int64_t first_tai_ns = first_start_tai_ns(run);

	for (;;) {
		bool all = true;

		for (int i = 0; i < run->sender_count; i++)
			all &= atomic_load(&run->senders[i]->established) == run->senders[i]->stream_count;
		if (port_tai_now_ns(&run->tai) >= first_tai_ns)
			return -ETIMEDOUT;
		if (all)
			return 0;
		if (port_stop_requested())
			return -EINTR;
		port_sleep_ns(TICK_NS);
	}
}

static void print_ready(struct send_run *run)
{
	int streams = 0;

	for (int i = 0; i < run->sender_count; i++)
		streams += run->senders[i]->stream_count;
	answer_begin(&run->json, "ready", TOOL);
	json_int(&run->json, "producers", run->sender_count);
	json_int(&run->json, "streams", streams);
	json_int(&run->json, "tai_utc_s", run->tai.tai_utc_s);
	json_int(&run->json, "local_tai_ns", port_tai_now_ns(&run->tai));
	answer_end(&run->json); /* a reader that is gone must not stop the traffic */
}

static void print_progress(struct send_run *run, int64_t elapsed_ns)
{
	uint64_t scheduled = 0, sent = 0, late = 0;

	for (int i = 0; i < run->sender_count; i++) {
		for (int j = 0; j < run->senders[i]->stream_count; j++) {
			const struct sender_stream *s = &run->senders[i]->streams[j];

			scheduled += tally_get(&s->scheduled);
			sent += tally_get(&s->sent);
			late += tally_get(&s->late_slots);
		}
	}
	answer_begin(&run->json, "progress", TOOL);
	json_int(&run->json, "elapsed_ms", elapsed_ns / 1000000);
	json_uint(&run->json, "scheduled", scheduled);
	json_uint(&run->json, "sent", sent);
	json_uint(&run->json, "late_slots", late);
	answer_end(&run->json);
}

static bool all_finished(const struct send_run *run)
{
	for (int i = 0; i < run->sender_count; i++) {
		if (!atomic_load(&run->senders[i]->finished))
			return false;
	}
	return true;
}

/* Print progress until all producers are done. @return true unless it was stopped */
static bool wait_finished(struct send_run *run)
{
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	int64_t next_monotonic_ns = begin_monotonic_ns + PROGRESS_NS;

	while (!all_finished(run)) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

		if (port_stop_requested())
			return false;
		if (now_monotonic_ns >= next_monotonic_ns) {
			print_progress(run, now_monotonic_ns - begin_monotonic_ns);
			next_monotonic_ns += PROGRESS_NS;
		}
		port_sleep_ns(TICK_NS);
	}
	return true;
}

/* Of a stream that waits for grants (rtdip_flow.h). */
static void print_credit(struct json *json, const struct rtdip_credit *credit)
{
	json_object_open(json, "credit");
	json_uint(json, "granted", credit->granted);
	json_uint(json, "refused", credit->refused);
	json_uint(json, "asked", credit->asked);
	json_object_close(json);
}

static void print_stream(struct json *json, const struct sender_stream *s)
{
	json_object_open(json, NULL);
	json_uint(json, "id", s->slots.stream->id);
	json_uint(json, "producer", s->slots.stream->producer);
	json_uint(json, "scheduled", tally_get(&s->scheduled));
	json_uint(json, "sent", tally_get(&s->sent));
	json_uint(json, "late_slots", tally_get(&s->late_slots));
	json_uint(json, "reconnects", s->link.reconnects);
	json_uint(json, "blocked_writes", s->link.blocked_writes);
	json_uint(json, "unsent", sender_unsent(s));
	if (s->slots.stream->carrier == TRANSPORT_RTDIP && !s->slots.stream->low_latency)
		print_credit(json, &s->link.credit);
	summary_histogram(json, "sent_minus_scheduled", s->sent_minus_scheduled);
	summary_histogram(json, "transmit_stack", s->transmit_stack);
	json_object_close(json);
}

static void note_steps(struct send_run *run)
{
	for (int i = 0; i < run->sender_count; i++) {
		const struct sender *sender = run->senders[i];

		if (sender->watch.count && !run->reason[0])
			snprintf(run->reason, sizeof(run->reason), "the local clock was stepped (producer %u saw it %llu times)",
				 sender->producer->number, (unsigned long long)sender->watch.count);
	}
}

/* Without its service a producer gets no grants: what is late then is not the stack's lateness. */
static void note_service(struct send_run *run)
{
	for (int i = 0; i < run->sender_count; i++) {
		for (int j = 0; j < run->senders[i]->stream_count; j++) {
			const struct rtdip *rtdip = run->senders[i]->streams[j].link.rtdip;

			if (rtdip && rtdip_has_ended(rtdip) && !run->reason[0])
				snprintf(run->reason, sizeof(run->reason), RTDIP_SERVICE_ENDED);
		}
	}
}

/* What the first producer was given; a note of any producer comes before none. */
static struct port_scheduling scheduling_of(const struct send_run *run)
{
	struct port_scheduling scheduling = { .cpu = PORT_CPU_ANY };

	for (int i = run->sender_count - 1; i >= 0; i--) {
		const struct port_scheduling *own;

		if (!run->senders[i]->thread)
			continue;
		own = port_thread_scheduling(run->senders[i]->thread);
		if (own->note[0] || !scheduling.note[0])
			scheduling = *own;
	}
	if (run->lock_error)
		summary_add_note(&scheduling, "memory not locked", run->lock_error);
	if (run->awake_error)
		summary_add_note(&scheduling, "CPUs not kept awake", run->awake_error);
	return scheduling;
}

static void print_result(struct send_run *run, bool complete, const struct port_scheduling *scheduling)
{
	struct json *json = &run->json;

	answer_result(json, TOOL);
	answer_valid_unless(json, complete, run->reason[0] ? run->reason : NULL);
	json_hex64(json, "nonce", run->plan->nonce);
	json_string(json, "phase", phase_name(run->plan->phase));
	json_uint(json, "scale", run->plan->scale);
	json_int(json, "tai_utc_s", run->tai.tai_utc_s);
	json_array_open(json, "streams");
	for (int i = 0; i < run->sender_count; i++) {
		for (int j = 0; j < run->senders[i]->stream_count; j++)
			print_stream(json, &run->senders[i]->streams[j]);
	}
	json_array_close(json);
	json_array_open(json, "clock_steps");
	if (run->sender_count)
		summary_steps(json, &run->senders[0]->watch);
	json_array_close(json);
	summary_carrier(json, run->plan);
	summary_scheduling(json, scheduling);
	answer_end(json);
}

/* Play the plan. @return exit code */
static int play(struct send_run *run)
{
	struct port_scheduling scheduling;
	bool complete = false;
	int err = create_senders(run);

	if (!err)
		err = start_threads(run);
	if (err) {
		fprintf(stderr, TOOL ": producers cannot be started: %s\n", strerror(-err));
		atomic_store(&run->stop, true);
	} else if (port_tai_now_ns(&run->tai) >= first_start_tai_ns(run)) {
		snprintf(run->reason, sizeof(run->reason), "started after slot 0");
	} else if (wait_established(run) == 0) {
		print_ready(run);
		complete = wait_finished(run);
	}
	atomic_store(&run->stop, true);
	scheduling = scheduling_of(run);
	for (int i = 0; i < run->sender_count; i++) {
		if (run->senders[i]->thread)
			port_thread_join(run->senders[i]->thread);
	}
	if (err)
		return EXIT_CAPABILITY;
	if (!complete && !run->reason[0] && !port_stop_requested())
		explain_unconnected(run);
	note_steps(run);
	note_service(run);
	print_result(run, complete, &scheduling);
	return complete && !run->reason[0] ? EXIT_DONE : EXIT_INVALID;
}

static void destroy(struct send_run *run)
{
	for (int i = 0; i < run->sender_count; i++)
		sender_destroy(run->senders[i]);
	free(run->senders);
	free(run->fill);
	plan_destroy(run->plan);
	free(run);
}

int verb_send(int argc, char **argv)
{
	struct send_run *run = calloc(1, sizeof(*run));
	struct schema_error error;
	const char *path = NULL, *rtdip_socket = NULL;
	int code, parsed;

	if (!run)
		return EXIT_CAPABILITY;
	run->priority = PRIORITY_DEFAULT;
	const struct option options[] = {
		{ .name = "producer", .kind = OPTION_LIST, .target = &run->numbers, .min = 1, .max = PLAN_PRODUCER_MAX,
		  .argument = "N[,N...]|all", .list_all = true, .help = "producers to play, one thread each" },
		{ .name = "cpu", .kind = OPTION_LIST, .target = &run->cpus, .min = 0, .max = 1023, .argument = "N[,N...]",
		  .help = "pin the threads to these CPUs in turn (default: all CPUs)" },
		{ .name = "awake", .kind = OPTION_FLAG, .target = &run->awake,
		  .help = "keep idle CPUs of this machine from sleeping: exact wake-ups, at the cost of power" },
		{ .name = "priority", .kind = OPTION_INT, .target = &run->priority, .min = 0, .max = 99, .argument = "N",
		  .help = "SCHED_FIFO priority, 0: do not ask (default 50)" },
		{ .name = "rtdip", .kind = OPTION_TEXT, .target = &rtdip_socket, .argument = "SOCKET",
		  .help = "carry all streams by RTDiP, of the service that has this socket, at both ends" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL, .usage = "PLAN --producer N[,N...]|all", .options = options,
		.positional_min = 1, .positional_max = 1,
		.about = "Play the streams of producers as the plan says. Late slots are sent late and counted, never skipped.\n",
	};

	parsed = options_parse(&command, argc, argv, &path);
	if (parsed < 0) {
		free(run);
		return options_exit_code(parsed);
	}
	if (plan_load(path, &run->plan, &error) != 0) {
		fprintf(stderr, "%s\n", error.text);
		free(run);
		return EXIT_BAD_INPUT;
	}
	if (check_numbers(run) != 0) {
		destroy(run);
		return EXIT_BAD_INPUT;
	}
	if (rtdip_socket)
		plan_carry_by_rtdip(run->plan, rtdip_socket);
	port_stop_install();
	json_init(&run->json, stdout);
	port_tai_init(&run->tai, run->plan->tai_utc_s);
	run->lock_error = -port_memory_lock();
	run->awake_error = run->awake ? -port_cpus_keep_awake() : 0;
	code = play(run);
	destroy(run);
	return code;
}
