/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find the target in a picture: a bright disc of a known radius in a dark ring. Each picture is looked at on its own: what was in the
 * last one makes no difference. Integer arithmetic: the same place on every machine. Pure.
 */
#ifndef BW_LOOP_TRACK_H
#define BW_LOOP_TRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "loop/camera/pose.h"

enum { TRACK_QUALITY_MIN = 300 };

/** Made by tracker_make. */
struct tracker {
	int32_t radius_px; /* of the disc, in the world */
	int32_t width_px, height_px; /* of pictures */
	uint32_t *sums;
};

/** What is in a picture. */
struct track {
	bool found;
	struct place picture; /* the disc's centre, in 1/256 pixel; it may lie a little outside */
	struct place world;   /* the same by the picture's pose */
	int32_t quality;      /* 0..1000: share of its edge that fits a disc, times contrast; TRACK_QUALITY_MIN and more: found */
};

/** @return NULL, or why there is none: then it needs no tracker_free */
const char *tracker_make(struct tracker *tracker, int32_t radius_px, int32_t width_px, int32_t height_px);
void tracker_free(struct tracker *tracker);

/**
 * Find the target, if it is there: a disc of 2.5 pixels to half the picture's lower side, a quarter of whose edge is in the picture.
 *
 * @param pixels  width_px * height_px levels, rows from the top
 */
struct track track(struct tracker *tracker, const uint8_t *pixels, const struct pose *pose);

#endif
