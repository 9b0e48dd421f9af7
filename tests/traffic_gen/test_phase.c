/* SPDX-License-Identifier: Apache-2.0 */
/** Phases, scale, and the schedule against a multiplication bit by bit. Argument: patterns/daq12.toml. */
#include "plan/phase.h"

#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "random.h"

#define PPB 1000000000

/* round(time * rate / 10^9), halves away from zero; time >= 0. Exact, and without integers that 32-bit targets lack. */
static int64_t scaled(int64_t nominal_ns, int64_t rate_ppb)
{
	uint64_t rate = (uint64_t)(rate_ppb < 0 ? -rate_ppb : rate_ppb), whole = 0, rest = 0;

	for (int bit = 62; bit >= 0; bit--) {
		whole *= 2;
		rest *= 2;
		if (rate >> bit & 1) {
			whole += (uint64_t)nominal_ns / PPB;
			rest += (uint64_t)nominal_ns % PPB;
		}
		whole += rest / PPB;
		rest %= PPB;
	}
	whole += 2 * rest >= PPB;
	return rate_ppb < 0 ? -(int64_t)whole : (int64_t)whole;
}

static void check_schedule(void)
{
	struct random random = { 1 };

	for (int i = 0; i < 100000; i++) {
		struct stream stream = { .period_ns = random_between(&random, 1, 3600000) * 1000 };
		struct plan_producer producer = { .start_tai_ns = random_between(&random, 1, INT64_C(9000000000000000000)),
						  .rate_ppb = random_between(&random, -1000000, 1000000) };
		/* Up to a week and an hour. */
		uint32_t slot = (uint32_t)random_between(&random, 0, INT64_C(608400000000000) / stream.period_ns % UINT32_MAX);
		int64_t nominal_ns, expected_ns;

		stream.phase_ns = random_between(&random, 0, stream.period_ns - 1);
		nominal_ns = stream.phase_ns + (int64_t)slot * stream.period_ns;
		expected_ns = producer.start_tai_ns + nominal_ns + scaled(nominal_ns, producer.rate_ppb);
		CHECK_INT(phase_slot_ns(&stream, slot), nominal_ns);
		CHECK_INT(phase_scheduled_tai_ns(&producer, &stream, slot), expected_ns);
	}
}

/* Halves are rounded away from zero, on both sides: 5 * 10^8 ns at 1 ppb is 0.5 ns. */
static void check_rounding(void)
{
	const struct stream stream = { .period_ns = 500000000 };
	struct plan_producer producer = { .start_tai_ns = 1000, .rate_ppb = 1 };

	CHECK_INT(phase_scheduled_tai_ns(&producer, &stream, 1), 1000 + 500000001);
	CHECK_INT(phase_scheduled_tai_ns(&producer, &stream, 2), 1000 + 1000000001);
	producer.rate_ppb = -1;
	CHECK_INT(phase_scheduled_tai_ns(&producer, &stream, 1), 1000 + 499999999);
	CHECK_INT(phase_scheduled_tai_ns(&producer, &stream, 3), 1000 + 1499999998);
}

static void check_slots(void)
{
	struct random random = { 2 };

	for (int i = 0; i < 20000; i++) {
		struct stream stream = { .period_ns = random_between(&random, 1, 100) };
		struct plan plan = { .warmup_ns = random_between(&random, 0, 300), .duration_ns = random_between(&random, 1, 300) };
		uint32_t warmup = 0, all = 0;
		struct slot_range range;

		stream.phase_ns = random_between(&random, 0, stream.period_ns - 1);
		range = phase_slot_range(&plan, &stream);
		for (uint32_t slot = 0; phase_slot_ns(&stream, slot) < plan.warmup_ns + plan.duration_ns; slot++) {
			warmup += phase_slot_ns(&stream, slot) < plan.warmup_ns;
			all++;
		}
		CHECK_INT(range.warmup_end, warmup);
		CHECK_INT(range.end, all);
	}
}

static int compare_int64(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Phases as fractions of the periods, in parts per 10^6: sorted, they lie evenly. */
static void check_even(const struct pattern *pattern, size_t aligned)
{
	int64_t ppm[8 * 48];
	size_t count = 0, spread = pattern->stream_count - aligned;
	int64_t divisor = (int64_t)(aligned ? spread + 1 : spread);

	for (size_t i = 0; i < pattern->stream_count; i++) {
		const struct stream *stream = &pattern->streams[i];

		CHECK(stream->phase_ns >= 0 && stream->phase_ns < stream->period_ns);
		ppm[count++] = stream->phase_ns * 1000000 / stream->period_ns;
	}
	qsort(ppm, count, sizeof(*ppm), compare_int64);
	for (size_t i = 0; i < count; i++) {
		int64_t expected = i < aligned ? 0 : (int64_t)(i - aligned + (aligned ? 1 : 0)) * 1000000 / divisor;

		CHECK_THAT(llabs(ppm[i] - expected) <= 1, "phase %u is %" PRId64 " ppm, not %" PRId64, (unsigned int)i, ppm[i],
			   expected);
	}
}

/* In aligned-12 exactly one stream of each producer has phase 0, and none of its others is larger. */
static void check_aligned(const struct pattern *pattern)
{
	for (size_t i = 0; i < pattern->stream_count; i += 4) {
		const struct stream *streams = &pattern->streams[i], *aligned = NULL;

		for (int j = 0; j < 4; j++) {
			if (streams[j].phase_ns)
				continue;
			CHECK(!aligned);
			aligned = &streams[j];
		}
		CHECK(aligned);
		for (int j = 0; aligned && j < 4; j++)
			CHECK(streams[j].size_bytes < aligned->size_bytes ||
			      (streams[j].size_bytes == aligned->size_bytes && streams[j].id >= aligned->id));
	}
}

static void check_expansion(const struct pattern *file)
{
	struct pattern *scaled = NULL;

	for (uint32_t scale = 1; scale <= 8; scale += 7) {
		CHECK_INT(phase_expand(file, PHASE_ALIGNED_12, scale, &scaled), 0);
		CHECK_INT(scaled->stream_count, (size_t)48 * scale);
		CHECK_INT(scaled->producer_count, 12 * scale);
		for (size_t i = 0; i < scaled->stream_count; i++) {
			CHECK_INT(scaled->streams[i].id, (i / 4 + 1) * 10 + i % 4);
			CHECK_INT(scaled->streams[i].producer, i / 4 + 1);
			CHECK_INT(scaled->streams[i].size_bytes, file->streams[i % 48].size_bytes);
		}
		check_aligned(scaled);
		check_even(scaled, (size_t)12 * scale);
		pattern_destroy(scaled);
		CHECK_INT(phase_expand(file, PHASE_STAGGERED, scale, &scaled), 0);
		check_even(scaled, 0);
		pattern_destroy(scaled);
		CHECK_INT(phase_expand(file, PHASE_ALIGNED_48, scale, &scaled), 0);
		for (size_t i = 0; i < scaled->stream_count; i++)
			CHECK_INT(scaled->streams[i].phase_ns, 0);
		pattern_destroy(scaled);
	}
	CHECK_INT(phase_expand(file, PHASE_STAGGERED, 54, &scaled), 0);
	CHECK_INT(scaled->streams[scaled->stream_count - 1].id, 6483);
	pattern_destroy(scaled);
	CHECK_INT(phase_expand(file, PHASE_STAGGERED, 55, &scaled), -ERANGE);
	CHECK_INT(phase_expand(file, PHASE_STAGGERED, 0, &scaled), -ERANGE);
	CHECK_INT(phase_expand(file, PHASE_STAGGERED, UINT32_MAX, &scaled), -ERANGE);
}

static void check_names(void)
{
	enum phase phase;

	for (int i = PHASE_ALIGNED_12; i <= PHASE_STAGGERED; i++) {
		CHECK_INT(phase_by_name(phase_name((enum phase)i), &phase), 0);
		CHECK_INT(phase, i);
	}
	CHECK_INT(phase_by_name("aligned", &phase), -EINVAL);
}

int main(int argc, char **argv)
{
	struct pattern *file = NULL;
	struct schema_error error = { "no file given" };

	check_schedule();
	check_rounding();
	check_slots();
	check_names();
	CHECK_THAT(argc == 2 && pattern_load(argv[1], &file, &error) == 0, "%s", error.text);
	if (file)
		check_expansion(file);
	pattern_destroy(file);
	return check_result();
}
