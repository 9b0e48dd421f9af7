/* SPDX-License-Identifier: Apache-2.0 */
/* What the synthetic camera looks at: a texture larger than a picture, and targets that move over it. All of it from a seed. Pure. */
#ifndef BW_LOOP_WORLD_H
#define BW_LOOP_WORLD_H

#include <stdint.h>

#include "loop/camera/path.h"

enum {
	WORLD_SIDE_MIN_PX = 256,
	WORLD_SIDE_MAX_PX = 8192,
	WORLD_TARGETS_MAX = 8,
	TARGET_RADIUS_MIN_PX = 4,
	TARGET_RADIUS_MAX_PX = 64,
	TARGET_RADIUS_PX = 12, /* unless another is asked for */
};

/** A bright disc; round it a dark ring, half a radius wide. */
struct target_settings {
	enum path_kind kind;
	int32_t speed_q8_s; /* in 1/256 world pixel a second; of PATH_STILL of no effect */
	int64_t still_ns;   /* it rests for so long first; 0 and more */
	int32_t radius_px;  /* of the disc */
	uint8_t disc, ring; /* levels; the texture has 40..167 */
};

struct world_settings {
	uint64_t seed;
	int32_t width_px, height_px;
	int32_t targets; /* 0..WORLD_TARGETS_MAX */
	struct target_settings target[WORLD_TARGETS_MAX];
};

/** Settings of 2048 x 1536 pixels and one target. */
struct world_settings world_settings_default(uint64_t seed, enum path_kind kind, int32_t speed_q8_s);

struct target {
	struct path path; /* of its centre; disc and ring stay in the world */
	int32_t radius_q8;
	uint8_t disc, ring;
};

struct world {
	int32_t width_px, height_px, targets;
	struct target target[WORLD_TARGETS_MAX];
	uint8_t *texture; /* rows, from the top */
};

/** Make a world; world_free ends it. @return NULL, or why there is none */
const char *world_make(struct world *world, const struct world_settings *settings);
void world_free(struct world *world);

#endif
