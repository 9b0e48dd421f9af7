/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measuring loop: each reading of a clock stands between two of the processor's counter. Where the machine counts
 * retired instructions, readings that were interrupted are told apart: more were retired, the kernel's included, than the
 * reading itself takes.
 */
#include "clock/latency/latency.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/port_clock.h"

enum {
	WARM_UP = 2000,
	INSTRUCTIONS_MARGIN = 32, /* a second that rolls over takes some more; an interrupt takes thousands */
};

static void record_ticks(struct latency *latency, struct histogram *histogram, const int64_t *ticks, int count, int64_t less)
{
	double ns_per_tick = 1e9 / (double)latency->hz;

	for (int i = 0; i < count; i++)
		latency->values_ns[i] = (int64_t)((double)(ticks[i] - less) * ns_per_tick + (ticks[i] < less ? -0.5 : 0.5));
	histogram_record_all(histogram, latency->values_ns, count);
}

/* What counts is recorded last: its values stand there for the blocks. */
static void flush(struct latency *latency, struct latency_subject *subject)
{
	int counting = subject->kept ? latency->kept_batched : latency->batched;

	record_ticks(latency, subject->net, latency->ticks, latency->batched, latency->pair_ticks);
	record_ticks(latency, subject->latency, latency->ticks, latency->batched, 0);
	if (subject->kept)
		record_ticks(latency, subject->kept, latency->kept_ticks, latency->kept_batched, 0);
	for (int i = 0; i < counting; i++)
		blocks_add(&subject->blocks, latency->values_ns[i]);
	latency->batched = latency->kept_batched = 0;
}

static int compare_values(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static int64_t median(int64_t *values, size_t count)
{
	qsort(values, count, sizeof(values[0]), compare_values);
	return values[count / 2];
}

/* Find what the two readings of the counter cost by themselves. */
static void measure_pair(struct latency *latency)
{
	static const int rounds = WARM_UP;
	int64_t *ticks = calloc((size_t)rounds, sizeof(*ticks));

	if (!ticks)
		return;
	for (int i = 0; i < rounds; i++) {
		uint64_t before = port_counter_before();

		ticks[i] = (int64_t)(port_counter_after() - before);
	}
	latency->pair_ticks = median(ticks, (size_t)rounds);
	free(ticks);
}

/* One reading with the instructions that it took. */
static int read_counted(struct latency *latency, struct source *source, int64_t *ticks, int64_t *instructions)
{
	uint64_t first = port_instructions_read(latency->instructions), before, after;
	int64_t now_tai_ns;
	int err;

	before = port_counter_before();
	err = source_read(source, &now_tai_ns);
	after = port_counter_after();
	*instructions = (int64_t)(port_instructions_read(latency->instructions) - first);
	*ticks = (int64_t)(after - before);
	return err;
}

/* Instructions that an undisturbed reading takes. Return them, or -errno. */
static int64_t expected_instructions(struct latency *latency, struct source *source)
{
	int64_t *counts = calloc(WARM_UP, sizeof(*counts)), ticks;
	int64_t expected = 0;

	if (!counts)
		return -ENOMEM;
	for (int i = 0; i < WARM_UP && expected >= 0; i++)
		expected = read_counted(latency, source, &ticks, &counts[i]);
	if (expected >= 0)
		expected = median(counts, WARM_UP);
	free(counts);
	return expected;
}

/* Record a batch that is full. True when the time is over. */
static bool is_over(struct latency *latency, struct latency_subject *subject, int64_t end_monotonic_ns)
{
	if (latency->batched < LATENCY_BATCH)
		return false;
	flush(latency, subject);
	return end_monotonic_ns && port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= end_monotonic_ns;
}

static int64_t end_of(const struct latency *latency)
{
	return latency->duration_ns ? port_clock_now_ns(PORT_CLOCK_MONOTONIC) + latency->duration_ns : 0;
}

static int measure_counted(struct latency *latency, struct latency_subject *subject)
{
	int64_t expected = expected_instructions(latency, &subject->source), end_monotonic_ns;

	if (expected < 0)
		return (int)expected;
	end_monotonic_ns = end_of(latency);
	for (int64_t i = 0; i < latency->reads && !port_stop_requested(); i++) {
		int64_t ticks, instructions;
		int err = read_counted(latency, &subject->source, &ticks, &instructions);

		if (err)
			return err;
		latency->ticks[latency->batched++] = ticks;
		if (instructions > expected + INSTRUCTIONS_MARGIN)
			subject->interrupted++;
		else
			latency->kept_ticks[latency->kept_batched++] = ticks;
		if (is_over(latency, subject, end_monotonic_ns))
			break;
	}
	return 0;
}

static int measure_plain(struct latency *latency, struct latency_subject *subject)
{
	int64_t end_monotonic_ns, now_tai_ns;

	/* The first readings are slow: pages are touched, under emulation code is translated. */
	for (int i = 0; i < WARM_UP; i++) {
		int err = source_read(&subject->source, &now_tai_ns);

		if (err)
			return err;
	}
	end_monotonic_ns = end_of(latency);
	for (int64_t i = 0; i < latency->reads && !port_stop_requested(); i++) {
		uint64_t before, after;
		int err;

		before = port_counter_before();
		err = source_read(&subject->source, &now_tai_ns);
		after = port_counter_after();
		if (err)
			return err;
		latency->ticks[latency->batched++] = (int64_t)(after - before);
		if (is_over(latency, subject, end_monotonic_ns))
			break;
	}
	return 0;
}

void latency_run(struct latency *latency)
{
	int err = port_instructions_open(&latency->instructions);

	/* Opened here: what this thread retires is counted. */
	if (!err && port_instructions_read(latency->instructions) == 0)
		err = -ENOTSUP;
	if (err) {
		port_instructions_close(latency->instructions);
		latency->instructions = NULL;
		snprintf(latency->no_instructions, sizeof(latency->no_instructions),
			 "retired instructions are not counted on this machine: %s",
			 err == -ENOENT || err == -ENOTSUP ? "no hardware counter" : strerror(-err));
	}
	measure_pair(latency);
	for (size_t i = 0; i < latency->count && !latency->read_error; i++) {
		struct latency_subject *subject = &latency->subjects[i];

		if (latency->instructions) {
			subject->kept = histogram_create(0, HISTOGRAM_HIGHEST_NS);
			latency->read_error = subject->kept ? measure_counted(latency, subject) : -ENOMEM;
		} else {
			latency->read_error = measure_plain(latency, subject);
		}
		flush(latency, subject);
	}
	port_instructions_close(latency->instructions);
	latency->complete = !port_stop_requested() && !latency->read_error;
}
