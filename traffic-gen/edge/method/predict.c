/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/method/predict.h"

#include <string.h>

enum {
	STRAYS_MAX = 4,
	EDGES_BACK_MAX = 1000, /* keeps all sums inside 63 bits, as RESIDUAL_MAX does */
};

#define RESIDUAL_MAX (INT64_C(1) << 21)

void predictor_init(struct predictor *predictor, int64_t period_ticks, size_t room)
{
	memset(predictor, 0, sizeof(*predictor));
	predictor->period_ticks = period_ticks;
	predictor->room = room;
}

static size_t slot(const struct predictor *predictor, size_t before)
{
	return (predictor->newest + PREDICTOR_LATCHES - before) % PREDICTOR_LATCHES;
}

/* Ticks of a latch beside what the newest one and the nominal period would have. */
static int64_t residual(const struct predictor *predictor, size_t before)
{
	size_t newest = slot(predictor, 0), at = slot(predictor, before);
	int64_t edges = predictor->latches[at].edge - predictor->latches[newest].edge;

	return (int64_t)(predictor->latches[at].ticks - predictor->latches[newest].ticks) - edges * predictor->period_ticks;
}

static void take(struct predictor *predictor, int64_t edge, uint64_t ticks)
{
	predictor->newest = (predictor->newest + 1) % PREDICTOR_LATCHES;
	predictor->latches[predictor->newest].edge = edge;
	predictor->latches[predictor->newest].ticks = ticks;
	if (predictor->count < predictor->room)
		predictor->count++;
	predictor->strays_in_row = 0;
	while (predictor->count > 1) {
		size_t oldest = predictor->count - 1;
		int64_t left = residual(predictor, oldest);

		if (edge - predictor->latches[slot(predictor, oldest)].edge <= EDGES_BACK_MAX && left < RESIDUAL_MAX &&
		    left > -RESIDUAL_MAX)
			break;
		predictor->count--;
	}
}

bool predictor_add(struct predictor *predictor, uint64_t ticks)
{
	const int64_t period = predictor->period_ticks;
	int64_t edge, since, edges, off;

	if (predictor->count == 0) {
		take(predictor, 0, ticks);
		return true;
	}
	edge = predictor->latches[slot(predictor, 0)].edge;
	since = (int64_t)(ticks - predictor->latches[slot(predictor, 0)].ticks);
	edges = (since + period / 2) / period;
	off = since - edges * period;
	if (since > 0 && edges >= 1 && (off < 0 ? -off : off) <= period / 4) {
		take(predictor, edge + edges, ticks);
		return true;
	}
	predictor->strays++;
	if (++predictor->strays_in_row < STRAYS_MAX || since <= 0)
		return false;
	/* The signal itself has moved. */
	predictor->count = 0;
	predictor->restarts++;
	take(predictor, edge + (edges > 1 ? edges : 1), ticks);
	return false;
}

bool predictor_ready(const struct predictor *predictor)
{
	return predictor->count >= 2;
}

int64_t predictor_newest_edge(const struct predictor *predictor)
{
	return predictor->latches[slot(predictor, 0)].edge;
}

static int64_t divide_rounded(int64_t numerator, int64_t denominator)
{
	return (numerator + (numerator < 0 ? -denominator : denominator) / 2) / denominator;
}

uint64_t predictor_ticks_at(const struct predictor *predictor, int64_t edge)
{
	const int64_t n = (int64_t)predictor->count;
	const int64_t newest = predictor_newest_edge(predictor), ahead = edge - newest;
	int64_t sum_x = 0, sum_xx = 0, sum_y = 0, sum_xy = 0, determinant, slope;

	/* x <= 0: edges before the newest; |x| <= 1000, |y| < 2^21, n <= 64: the largest product stays below 2^62. */
	for (size_t i = 0; i < predictor->count; i++) {
		int64_t x = predictor->latches[slot(predictor, i)].edge - newest;
		int64_t y = residual(predictor, i);

		sum_x += x;
		sum_xx += x * x;
		sum_y += y;
		sum_xy += x * y;
	}
	determinant = n * sum_xx - sum_x * sum_x;
	if (determinant <= 0) /* one latch: no line yet */
		return predictor->latches[slot(predictor, 0)].ticks + (uint64_t)(ahead * predictor->period_ticks);
	slope = n * sum_xy - sum_x * sum_y; /* over the determinant */
	return predictor->latches[slot(predictor, 0)].ticks +
	       (uint64_t)(ahead * predictor->period_ticks +
			  divide_rounded(sum_y * determinant + slope * (n * ahead - sum_x), n * determinant));
}
