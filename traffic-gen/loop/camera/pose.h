/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a camera looks, and what that makes of places in picture and world. The centre of the pixel in column i and row j is the
 * place (256 i, 256 j), in both of them; what is in the centre of a picture is at the pose. Pure.
 */
#ifndef BW_LOOP_POSE_H
#define BW_LOOP_POSE_H

#include <stdint.h>

#include "loop/camera/fixed.h"
#include "loop/camera/path.h"

enum { ZOOM_MIN_Q8 = 64, ZOOM_ONE_Q8 = 256, ZOOM_MAX_Q8 = 4096 };

struct pose {
	int32_t x_q8, y_q8; /* what the centre of a picture shows, in 1/256 world pixel */
	int32_t zoom_q8;    /* pixels of the picture to one of the world, in 1/256 */
};

/** Where a place of the world is in a picture of a size, in 1/256 pixel; outside of it, too. */
static inline struct place pose_to_picture(const struct pose *pose, int32_t width_px, int32_t height_px, struct place world)
{
	return (struct place){
		(int32_t)((width_px - 1) * INT64_C(128) + floor_div((int64_t)(world.x_q8 - pose->x_q8) * pose->zoom_q8 + 128, 256)),
		(int32_t)((height_px - 1) * INT64_C(128) + floor_div((int64_t)(world.y_q8 - pose->y_q8) * pose->zoom_q8 + 128, 256)),
	};
}

/** And the other way round. */
static inline struct place pose_to_world(const struct pose *pose, int32_t width_px, int32_t height_px, struct place picture)
{
	int64_t x_q16 = (picture.x_q8 - (width_px - 1) * INT64_C(128)) * 256, y_q16 = (picture.y_q8 - (height_px - 1) * INT64_C(128)) * 256;

	return (struct place){
		(int32_t)(pose->x_q8 + floor_div(x_q16 + pose->zoom_q8 / 2, pose->zoom_q8)),
		(int32_t)(pose->y_q8 + floor_div(y_q16 + pose->zoom_q8 / 2, pose->zoom_q8)),
	};
}

#endif
