/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/phase.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PPB INT64_C(1000000000)
#define MESSAGE_TYPES 10 /* the last digit of an id */

const char *const phase_names[] = {
	[PHASE_ALIGNED_12] = "aligned-12",
	[PHASE_ALIGNED_48] = "aligned-48",
	[PHASE_STAGGERED] = "staggered",
	NULL,
};

const char *phase_name(enum phase phase)
{
	return phase_names[phase];
}

int phase_by_name(const char *name, enum phase *phase)
{
	for (size_t i = 0; phase_names[i]; i++) {
		if (strcmp(name, phase_names[i]) == 0) {
			*phase = (enum phase)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* A stream that is spread over its period, and its place in the order of spreading. */
struct spread {
	unsigned int position; /* among the streams of its producer that are spread */
	struct stream *stream;
};

static int compare_spread(const void *left, const void *right)
{
	const struct spread *a = left, *b = right;

	if (a->position != b->position)
		return a->position < b->position ? -1 : 1;
	return (a->stream->producer > b->stream->producer) - (a->stream->producer < b->stream->producer);
}

/* Index of the stream with the largest message among those of one producer, the first of equals. */
static size_t largest_of(const struct pattern *pattern, size_t first, size_t end)
{
	size_t largest = first;

	for (size_t i = first + 1; i < end; i++)
		if (pattern->streams[i].size_bytes > pattern->streams[largest].size_bytes)
			largest = i;
	return largest;
}

/* Collect the streams that are spread, in their order. Streams are sorted by id: those of a producer are neighbours. */
static size_t collect_spread(struct pattern *pattern, enum phase phase, struct spread *spread)
{
	size_t count = 0, end;

	for (size_t first = 0; first < pattern->stream_count; first = end) {
		unsigned int position = 0;
		size_t largest;

		for (end = first + 1; end < pattern->stream_count; end++)
			if (pattern->streams[end].producer != pattern->streams[first].producer)
				break;
		largest = largest_of(pattern, first, end);
		for (size_t i = first; i < end; i++) {
			if (phase == PHASE_ALIGNED_12 && i == largest)
				continue;
			spread[count++] = (struct spread){ position++, &pattern->streams[i] };
		}
	}
	qsort(spread, count, sizeof(*spread), compare_spread);
	return count;
}

static int set_phases(struct pattern *pattern, enum phase phase)
{
	/* aligned-12 leaves 0 to the largest messages: its fractions begin at 1 / (K + 1). */
	const int64_t skip = phase == PHASE_ALIGNED_12 ? 1 : 0;
	struct spread *spread;
	size_t count;

	for (size_t i = 0; i < pattern->stream_count; i++)
		pattern->streams[i].phase_ns = 0;
	if (phase == PHASE_ALIGNED_48)
		return 0;
	spread = calloc(pattern->stream_count, sizeof(*spread));
	if (!spread)
		return -ENOMEM;
	count = collect_spread(pattern, phase, spread);
	/* At most 3.6e12 ns (an hour) times 6550 streams: no product overflows. */
	for (size_t k = 0; k < count; k++) {
		struct stream *stream = spread[k].stream;

		stream->phase_ns = stream->period_ns * ((int64_t)k + skip) / ((int64_t)count + skip);
	}
	free(spread);
	return 0;
}

int phase_expand(const struct pattern *file, enum phase phase, uint32_t scale, struct pattern **scaled)
{
	struct pattern *pattern;
	int err;

	if (scale == 0 || scale > PLAN_PRODUCER_MAX || scale * file->producer_highest > PLAN_PRODUCER_MAX)
		return -ERANGE;
	pattern = malloc(sizeof(*pattern));
	if (!pattern)
		return -ENOMEM;
	*pattern = *file;
	pattern->stream_count = file->stream_count * scale;
	pattern->producer_count = (uint16_t)(file->producer_count * scale);
	pattern->producer_highest = (uint16_t)(file->producer_highest * scale);
	pattern->streams = calloc(pattern->stream_count, sizeof(*pattern->streams));
	if (!pattern->streams) {
		err = -ENOMEM;
		goto fail;
	}
	/* Every copy's producers follow those of the copy before: the order of ids holds. */
	for (size_t i = 0; i < pattern->stream_count; i++) {
		struct stream *stream = &pattern->streams[i];
		uint16_t added = (uint16_t)(i / file->stream_count * file->producer_highest);

		*stream = file->streams[i % file->stream_count];
		stream->producer = (uint16_t)(stream->producer + added);
		stream->id = (uint16_t)(stream->id + added * MESSAGE_TYPES);
	}
	err = set_phases(pattern, phase);
	if (err)
		goto fail;
	*scaled = pattern;
	return 0;
fail:
	pattern_destroy(pattern);
	return err;
}

int64_t phase_slot_ns(const struct stream *stream, uint32_t slot)
{
	return stream->phase_ns + (int64_t)slot * stream->period_ns;
}

/* round(nominal_ns * rate_ppb / 10^9), halves away from zero, without a product over 64 bits. */
static int64_t rate_correction_ns(int64_t nominal_ns, int64_t rate_ppb)
{
	int64_t whole_s = nominal_ns / PPB, rest = nominal_ns % PPB * rate_ppb;

	rest += rest < 0 ? -PPB / 2 : PPB / 2;
	return whole_s * rate_ppb + rest / PPB;
}

int64_t phase_scheduled_tai_ns(const struct plan_producer *producer, const struct stream *stream, uint32_t slot)
{
	int64_t nominal_ns = phase_slot_ns(stream, slot);

	return producer->start_tai_ns + nominal_ns + rate_correction_ns(nominal_ns, producer->rate_ppb);
}

uint64_t phase_slots_before(const struct stream *stream, int64_t span_ns)
{
	if (span_ns <= stream->phase_ns)
		return 0;
	return (uint64_t)(span_ns - stream->phase_ns - 1) / (uint64_t)stream->period_ns + 1;
}

struct slot_range phase_slot_range(const struct plan *plan, const struct stream *stream)
{
	return (struct slot_range){
		.warmup_end = (uint32_t)phase_slots_before(stream, plan->warmup_ns),
		.end = (uint32_t)phase_slots_before(stream, plan->warmup_ns + plan->duration_ns),
	};
}
