/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop that is timed, with an event in it and without, by turns in blocks: what an event costs is the difference of the medians.
 * The including file defines RECORD(number) before. Prints one JSON object.
 */
#ifndef BW_BENCH_EVENT_LOOP_H
#define BW_BENCH_EVENT_LOOP_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCK = 1000 };

static double now_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Work that no compiler takes out, and that each loop does alike. */
static inline uint64_t step(uint64_t state)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static __attribute__((noinline)) uint64_t loop_without(uint64_t state, int64_t first)
{
	for (int64_t i = first; i < first + BLOCK; i++)
		state = step(state);
	return state;
}

static __attribute__((noinline)) uint64_t loop_with(uint64_t state, int64_t first)
{
	for (int64_t i = first; i < first + BLOCK; i++) {
		state = step(state);
		RECORD(i);
	}
	return state;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static int time_loops(int64_t blocks)
{
	double *with = calloc((size_t)blocks, sizeof(*with)), *without = calloc((size_t)blocks, sizeof(*without));
	uint64_t state = 88172645463325252, sum = 0;

	if (!with || !without || blocks < 1)
		return 2;
	for (int64_t block = 0; block < blocks; block++) {
		double began = now_monotonic_ns(), middle, end;

		state = loop_without(state, block * BLOCK);
		middle = now_monotonic_ns();
		state = loop_with(state, block * BLOCK);
		end = now_monotonic_ns();
		without[block] = (middle - began) / BLOCK;
		with[block] = (end - middle) / BLOCK;
	}
	for (int64_t i = 0; i < blocks * BLOCK; i++)
		sum += (uint64_t)i;
	qsort(with, (size_t)blocks, sizeof(*with), compare);
	qsort(without, (size_t)blocks, sizeof(*without), compare);
	printf("{\"with_ns\": %.3f, \"without_ns\": %.3f, \"events\": %" PRId64 ", \"sum\": %" PRIu64 ", \"state\": %" PRIu64 "}\n",
	       with[blocks / 2], without[blocks / 2], blocks * BLOCK, sum, state);
	return 0;
}

#endif
