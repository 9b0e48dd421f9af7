/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the next edges of a periodic signal come, from the latched counts of those that were: a least-squares line through the
 * last of them, in exact integers. Latches may be missing; those that fit no edge are left out and counted. Pure.
 */
#ifndef BW_EDGE_PREDICT_H
#define BW_EDGE_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PREDICTOR_LATCHES = 64 };

struct predictor {
	struct {
		int64_t edge;
		uint64_t ticks;
	} latches[PREDICTOR_LATCHES]; /* a ring */
	size_t newest, count, room;
	int64_t period_ticks;  /* nominal: good enough to number the edges */
	uint64_t strays;       /* latches that fit no edge */
	uint64_t restarts;     /* the signal moved by more than a quarter of its period */
	size_t strays_in_row;
};

/**
 * Begin without a latch.
 *
 * @param period_ticks  1 000 to 10^12; 100 ppm off at most
 * @param room          latches to fit, 2..PREDICTOR_LATCHES
 */
void predictor_init(struct predictor *predictor, int64_t period_ticks, size_t room);
/**
 * Take a latch, in order of time. The first is edge 0.
 *
 * @return false when it fits no edge: after four in a row the prediction begins anew with it, numbered as before
 */
bool predictor_add(struct predictor *predictor, uint64_t ticks);
/** True when there are latches enough for a line: two. */
bool predictor_ready(const struct predictor *predictor);
/** Number of the newest edge that was latched. */
int64_t predictor_newest_edge(const struct predictor *predictor);
/** Count at an edge, less than 1000 after the newest one; by the nominal period as long as there is no line. */
uint64_t predictor_ticks_at(const struct predictor *predictor, int64_t edge);

#endif
