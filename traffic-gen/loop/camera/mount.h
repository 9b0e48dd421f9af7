/* SPDX-License-Identifier: Apache-2.0 */
/* What moves the camera: pan, tilt and zoom, each at its speed and not faster, to where a command says. Pure. */
#ifndef BW_LOOP_MOUNT_H
#define BW_LOOP_MOUNT_H

#include <stdint.h>

#include "loop/camera/pose.h"

struct mount_limits {
	int32_t pan_q8_s, tilt_q8_s;         /* 1/256 world pixel a second; 1..2^29 */
	int32_t zoom_q8_s;                   /* 1/256 a second; 1..2^29 */
	int32_t zoom_min_q8, zoom_max_q8;    /* within ZOOM_MIN_Q8..ZOOM_MAX_Q8 */
	int32_t world_width_px, world_height_px;
	int32_t width_px, height_px;         /* of pictures */
};

/** What of a goal lay beyond its limits. */
enum { MOUNT_CLAMPED_X = 1, MOUNT_CLAMPED_Y = 2, MOUNT_CLAMPED_ZOOM = 4 };

struct mount {
	struct mount_limits limits;
	struct pose from, goal;
	int64_t from_ns; /* when it left */
};

/** A mount at rest. @return MOUNT_CLAMPED_… of where */
unsigned int mount_make(struct mount *mount, const struct mount_limits *limits, struct pose where);
/**
 * A command: from where it is at t_ns it goes to a goal. Picture and world limit the goal, so that nothing beyond the world is in view
 * there; on the way some may be, the texture's border goes on there.
 *
 * @param t_ns  since the camera's start, not before the last command
 * @return MOUNT_CLAMPED_… of what was limited
 */
unsigned int mount_look(struct mount *mount, int64_t t_ns, struct pose goal);
/** The pose at a time; before the last command, that in which it came. */
struct pose mount_pose(const struct mount *mount, int64_t t_ns);

#endif
