/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/receive/consumer.h"

#include <stdarg.h>
#include <stdio.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "plan/phase.h"

void consumer_invalidate(struct consumer *consumer, const char *format, ...)
{
	va_list arguments;

	if (consumer->reason_count == CONSUMER_REASONS_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(consumer->reasons[consumer->reason_count++], CONSUMER_REASON_BYTES, format, arguments);
	va_end(arguments);
}

/* The same moment in the local clock. */
static int64_t to_local_tai_ns(const struct consumer *consumer, const struct plan_producer *producer,
			       int64_t peer_tai_ns)
{
	struct twoway_line line;

	if (consumer->plan->correction == CORRECTION_NONE)
		return peer_tai_ns;
	line = clockline_read(&consumer->clocks.clocks[producer->clock].line);
	if (!line.valid)
		return peer_tai_ns;
	/* the line is one of local time: its value at the result of a first step is exact to rate squared */
	return peer_tai_ns - twoway_line_offset_ns(&line, peer_tai_ns - line.offset_ns);
}

void consumer_interval(const struct consumer *consumer, int64_t *start_tai_ns, int64_t *end_tai_ns)
{
	const struct plan *plan = consumer->plan;
	struct stream counted = { .period_ns = plan->duration_ns, .phase_ns = plan->warmup_ns };

	*start_tai_ns = INT64_MAX;
	*end_tai_ns = INT64_MIN;
	for (size_t i = 0; i < plan->producer_count; i++) {
		const struct plan_producer *producer = &plan->producers[i];
		int64_t start_local_tai_ns =
			to_local_tai_ns(consumer, producer, phase_scheduled_tai_ns(producer, &counted, 0));
		int64_t end_local_tai_ns =
			to_local_tai_ns(consumer, producer, phase_scheduled_tai_ns(producer, &counted, 1));

		if (start_local_tai_ns < *start_tai_ns)
			*start_tai_ns = start_local_tai_ns;
		if (end_local_tai_ns > *end_tai_ns)
			*end_tai_ns = end_local_tai_ns;
	}
}

int consumer_print_ready(struct consumer *consumer)
{
	struct json *json = &consumer->json;

	answer_begin(json, "ready", CONSUMER_TOOL);
	json_uint(json, "streams", consumer->plan->pattern->stream_count);
	json_int(json, "tai_utc_s", consumer->tai.tai_utc_s);
	json_int(json, "local_tai_ns", own_clock_from_system_tai_ns(&consumer->own_clock, port_tai_now_ns(&consumer->tai)));
	return answer_end(json);
}

int consumer_print_progress(struct consumer *consumer, int64_t elapsed_ns, const char *phase)
{
	struct json *json = &consumer->json;

	answer_begin(json, "progress", CONSUMER_TOOL);
	json_int(json, "elapsed_ms", elapsed_ns / 1000000);
	json_string(json, "phase", phase);
	json_array_open(json, "streams");
	for (size_t i = 0; i < consumer->plan->pattern->stream_count; i++) {
		const struct account *account = &consumer->incoming[i].account;

		json_array_open(json, NULL);
		json_uint(json, NULL, account->stream->id);
		json_uint(json, NULL, tally_get(&account->received));
		json_uint(json, NULL, account_missing_so_far(account));
		json_uint(json, NULL, tally_get(&account->max_ns));
		json_uint(json, NULL, tally_get(&account->misses));
		json_array_close(json);
	}
	json_array_close(json);
	return answer_end(json);
}

static void print_stream(struct json *json, const struct account *account)
{
	const struct stream *stream = account->stream;

	json_object_open(json, NULL);
	summary_stream(json, stream);
	json_int(json, "logged_above_ns", account_late_above_ns(stream));
	json_uint(json, "expected", account_expected(account));
	json_uint(json, "received", tally_get(&account->received));
	json_uint(json, "lost", account_expected(account) - tally_get(&account->received));
	json_uint(json, "duplicates", tally_get(&account->duplicates));
	json_uint(json, "reordered", tally_get(&account->reordered));
	json_uint(json, "invalid_samples", tally_get(&account->invalid_samples));
	json_uint(json, "connections", tally_get(&account->connections));
	json_uint(json, "misses", tally_get(&account->misses));
	json_uint(json, "misses_sent", tally_get(&account->misses_sent));
	summary_histogram(json, "received_minus_scheduled", account->received_minus_scheduled);
	summary_histogram(json, "received_minus_sent", account->received_minus_sent);
	summary_histogram(json, "sent_minus_scheduled", account->sent_minus_scheduled);
	summary_histogram(json, "receive_stack", account->receive_stack);
	json_object_close(json);
}

static void print_clock(const struct consumer *consumer, struct json *json, const struct peer_clock *clock)
{
	struct twoway_summary summary;

	twoway_summarise(clock->twoway, consumer->start_tai_ns, consumer->end_tai_ns, &summary);
	json_object_open(json, NULL);
	json_string(json, "name", clock->plan->name);
	json_uint(json, "exchanges", summary.exchanges);
	json_uint(json, "kept", summary.kept);
	if (summary.kept) {
		json_int(json, "offset_ns", summary.offset_ns);
		json_int(json, "rate_ppb", summary.rate_ppb);
		json_int(json, "bound_ns", summary.bound_ns);
		json_int(json, "residual_ns", summary.residual_ns);
		json_int(json, "rtt_min_ns", summary.rtt_min_ns);
		json_int(json, "rtt_p50_ns", summary.rtt_p50_ns);
	} else {
		json_null(json, "offset_ns");
		json_null(json, "rate_ppb");
		json_null(json, "bound_ns");
		json_null(json, "residual_ns");
		json_null(json, "rtt_min_ns");
		json_null(json, "rtt_p50_ns");
	}
	summary_series(json, clock->twoway);
	json_object_close(json);
}

static void print_own_clock(const struct own_clock *clock, struct json *json)
{
	json_object_open(json, "own_clock");
	json_string(json, "name", clock->name);
	if (clock->source) {
		json_uint(json, "readings", clock->account.readings);
		json_uint(json, "refused", clock->account.refused);
		json_uint(json, "steps", clock->account.steps);
		if (clock->account.bound_max_ns < 0)
			json_null(json, "bound_max_ns");
		else
			json_int(json, "bound_max_ns", clock->account.bound_max_ns);
		json_int(json, "line_error_max_ns", clock->account.line_error_max_ns);
	}
	json_object_close(json);
}

static void print_clocks(const struct consumer *consumer, struct json *json)
{
	json_array_open(json, "clocks");
	for (size_t i = 0; i < consumer->clocks.count; i++)
		print_clock(consumer, json, &consumer->clocks.clocks[i]);
	json_array_close(json);
	json_array_open(json, "clock_steps");
	summary_steps(json, &consumer->watch);
	for (size_t i = 0; i < consumer->clocks.count; i++) {
		const struct peer_clock *clock = &consumer->clocks.clocks[i];

		for (uint64_t k = 0; k < clock->step_count && k < STEPWATCH_STEPS_MAX; k++) {
			json_object_open(json, NULL);
			json_string(json, "clock", clock->plan->name);
			json_int(json, "time_tai_ns", clock->steps[k].time_tai_ns);
			json_int(json, "step_ns", clock->steps[k].step_ns);
			json_object_close(json);
		}
	}
	json_array_close(json);
}

/* One figure of "hostile": the sum over the threads. */
static void print_hostile_figure(const struct consumer *consumer, struct json *json, const char *key, size_t offset)
{
	const struct hostile *threads[] = {
		&consumer->receivers[CONSUMER_BULK].hostile,
		&consumer->receivers[CONSUMER_LOW_LATENCY].hostile,
		&consumer->acceptor.hostile,
	};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
		sum += tally_get((const struct tally *)((const char *)threads[i] + offset));
	json_uint(json, key, sum);
}

static void print_hostile(const struct consumer *consumer, struct json *json)
{
	json_object_open(json, "hostile");
	print_hostile_figure(consumer, json, "foreign_connections", offsetof(struct hostile, foreign_connections));
	print_hostile_figure(consumer, json, "bad_hello", offsetof(struct hostile, bad_hello));
	print_hostile_figure(consumer, json, "bad_check", offsetof(struct hostile, bad_check));
	print_hostile_figure(consumer, json, "truncated", offsetof(struct hostile, truncated));
	print_hostile_figure(consumer, json, "oversized", offsetof(struct hostile, oversized));
	print_hostile_figure(consumer, json, "stale", offsetof(struct hostile, stale));
	json_object_close(json);
}

static void print_head(const struct consumer *consumer, struct json *json, bool complete)
{
	const struct plan *plan = consumer->plan;
	const char *reasons[CONSUMER_REASONS_MAX];

	for (int i = 0; i < consumer->reason_count; i++)
		reasons[i] = consumer->reasons[i];
	answer_result(json, CONSUMER_TOOL);
	answer_validity(json, complete, reasons, (size_t)consumer->reason_count);
	json_hex64(json, "nonce", plan->nonce);
	json_string(json, "phase", phase_name(plan->phase));
	json_uint(json, "scale", plan->scale);
	json_int(json, "warmup_ms", plan->warmup_ns / 1000000);
	json_int(json, "duration_ms", plan->duration_ns / 1000000);
	json_string(json, "correction", correction_name(plan->correction));
	json_int(json, "start_tai_ns", consumer->start_tai_ns);
	json_int(json, "end_tai_ns", consumer->end_tai_ns);
	json_int(json, "tai_utc_s", consumer->tai.tai_utc_s);
	/* Brings what the system stamps by the other clock to this one; a step of either is among the clock_steps. */
	json_int(json, "tai_minus_monotonic_ns", consumer->watch.base_ns);
	json_int(json, "tai_minus_monotonic_error_ns", consumer->watch.floor_ns);
}

int consumer_print_result(struct consumer *consumer, bool complete)
{
	struct json *json = &consumer->json;

	print_head(consumer, json, complete);
	json_array_open(json, "streams");
	for (size_t i = 0; i < consumer->plan->pattern->stream_count; i++)
		print_stream(json, &consumer->incoming[i].account);
	json_array_close(json);
	print_own_clock(&consumer->own_clock, json);
	print_clocks(consumer, json);
	print_hostile(consumer, json);
	json_object_open(json, "recorder");
	json_uint(json, "miss_log_dropped", recorder_misses_dropped(&consumer->recorder));
	json_uint(json, "message_log_dropped", recorder_messages_dropped(&consumer->recorder));
	json_object_close(json);
	json_object_open(json, "memory");
	json_uint(json, "rss_start_bytes", consumer->rss_start_bytes);
	json_uint(json, "rss_end_bytes", port_rss_bytes());
	json_object_close(json);
	summary_carrier(json, consumer->plan);
	summary_scheduling(json, &consumer->scheduling);
	return answer_end(json);
}
