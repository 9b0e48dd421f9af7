/* SPDX-License-Identifier: Apache-2.0 */
/* What a camera sees: a grey picture from world, pose and time. The same bytes from the same inputs, on every machine. Pure. */
#ifndef BW_LOOP_RENDER_H
#define BW_LOOP_RENDER_H

#include <stdint.h>

#include "loop/camera/picture.h"
#include "loop/camera/world.h"

enum { EXPOSURE_NOMINAL_US = 10000 };

struct render_settings {
	uint64_t seed;       /* of the noise; that of each picture is its own, by its number */
	int32_t width_px, height_px; /* PICTURE_SIDE_MIN_PX..PICTURE_SIDE_MAX_PX */
	int32_t exposure_us; /* PICTURE_EXPOSURE_MIN_US..PICTURE_EXPOSURE_MAX_US: what moves is blurred; longer is brighter */
	int32_t gain_q8;     /* 256: a picture of EXPOSURE_NOMINAL_US has the world's levels; 0..2^16 */
	int32_t noise_q8;    /* standard deviation, in 1/256 level; 0..2^14 */
};

/** Settings of 320 x 240 pixels and 10 ms; noise of 3 levels. */
struct render_settings render_settings_default(uint64_t seed);

/**
 * Expose a picture. Over the exposure targets move and the camera does not: where a target is in the picture is where it was in the
 * middle, render_middle_ns.
 *
 * @param t_ns  when the exposure begins, since the camera's start, not negative
 * @param pixels  receives width_px * height_px levels, rows from the top
 */
void render(const struct world *world, const struct render_settings *settings, const struct pose *pose, int64_t t_ns, uint32_t number,
	    uint8_t *pixels);
static inline int64_t render_middle_ns(const struct render_settings *settings, int64_t t_ns)
{
	return t_ns + settings->exposure_us * INT64_C(500);
}

#endif
