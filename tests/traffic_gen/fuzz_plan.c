/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: the readers of TOML, patterns and plans. Whatever the text, they refuse it with an error or return
 * something that keeps every promise of plan.h.
 */
#include <errno.h>

#include "fuzz.h"
#include "plan/phase.h"
#include "plan/plan.h"

static void check_pattern(const struct pattern *pattern)
{
	promise(pattern->stream_count > 0);
	for (size_t i = 0; i < pattern->stream_count; i++) {
		const struct stream *stream = &pattern->streams[i];

		promise(stream->id >= PLAN_ID_MIN && stream->id <= PLAN_ID_MAX);
		promise(stream->id == stream->producer * 10 + stream->message_type && stream->message_type <= 9);
		promise(i == 0 || pattern->streams[i - 1].id < stream->id);
		promise(stream->size_bytes >= PLAN_MESSAGE_MIN_BYTES);
		promise(stream->size_bytes <= (stream->transport == TRANSPORT_UDP ? PLAN_UDP_MAX_BYTES : PLAN_MESSAGE_MAX_BYTES));
		promise(stream->period_ns > 0 && stream->budget_ns > 0);
		promise(stream->phase_ns >= 0 && stream->phase_ns < stream->period_ns);
	}
	promise(pattern->producer_highest == pattern->streams[pattern->stream_count - 1].producer);
}

static void check_plan(const struct plan *plan)
{
	check_pattern(plan->pattern);
	for (size_t i = 0; i < plan->pattern->stream_count; i++) {
		const struct stream *stream = &plan->pattern->streams[i];
		const struct plan_producer *producer = plan_find_producer(plan, stream->producer);
		struct slot_range range = phase_slot_range(plan, stream);

		promise(plan->base_port + stream->id <= 65535);
		promise(producer && producer->clock < plan->clock_count);
		promise(range.warmup_end <= range.end);
		if (range.end)
			promise(phase_scheduled_tai_ns(producer, stream, range.end - 1) > 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct schema_error error = { "" };
	struct pattern *pattern, *scaled;
	struct plan *plan;

	if (pattern_parse("fuzz", (const char *)data, size, &pattern, &error) == 0) {
		check_pattern(pattern);
		for (int phase = PHASE_ALIGNED_12; phase <= PHASE_STAGGERED; phase++) {
			if (phase_expand(pattern, (enum phase)phase, 2, &scaled))
				continue;
			check_pattern(scaled);
			pattern_destroy(scaled);
		}
		pattern_destroy(pattern);
	} else {
		promise(error.text[0] != '\0');
	}
	if (plan_parse("fuzz", (const char *)data, size, &plan, &error) == 0) {
		check_plan(plan);
		plan_destroy(plan);
	}
	return 0;
}
