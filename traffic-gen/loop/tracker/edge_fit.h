/* SPDX-License-Identifier: Apache-2.0 */
/* The second step of tracking: a disc of a known radius through the edge that rays from near its centre meet. Pure. */
#ifndef BW_LOOP_EDGE_FIT_H
#define BW_LOOP_EDGE_FIT_H

#include <stdint.h>

#include "loop/camera/path.h"

struct grey {
	const uint8_t *pixels;
	int32_t width_px, height_px;
};

struct edge_fit {
	struct place centre; /* in the picture, 1/256 pixel */
	int32_t quality;     /* as of struct track; 0: nothing fits */
};

/** Fit a disc. @param near  its centre, off by a third of the radius at most  @param radius_q8  in 1/256 pixel of the picture */
struct edge_fit edge_fit(const struct grey *grey, struct place near, int64_t radius_q8);

#endif
