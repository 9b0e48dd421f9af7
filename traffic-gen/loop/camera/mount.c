/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/camera/mount.h"

/* The centre of a view, in one direction; in the middle of a world that is smaller than the view. */
static int32_t limited(int32_t centre_q8, int32_t side_px, int32_t world_px, int32_t zoom_q8)
{
	int64_t half_q8 = ((side_px - 1) * INT64_C(32768) + zoom_q8 - 1) / zoom_q8, end_q8 = (world_px - 1) * INT64_C(256);

	if (2 * half_q8 > end_q8)
		return (int32_t)(end_q8 / 2);
	return (int32_t)clamp(centre_q8, half_q8, end_q8 - half_q8);
}

static unsigned int limit(const struct mount_limits *limits, struct pose *pose)
{
	struct pose wanted = *pose;

	pose->zoom_q8 = (int32_t)clamp(wanted.zoom_q8, limits->zoom_min_q8, limits->zoom_max_q8);
	pose->x_q8 = limited(wanted.x_q8, limits->width_px, limits->world_width_px, pose->zoom_q8);
	pose->y_q8 = limited(wanted.y_q8, limits->height_px, limits->world_height_px, pose->zoom_q8);
	return (pose->x_q8 != wanted.x_q8 ? MOUNT_CLAMPED_X : 0u) | (pose->y_q8 != wanted.y_q8 ? MOUNT_CLAMPED_Y : 0u) |
	       (pose->zoom_q8 != wanted.zoom_q8 ? MOUNT_CLAMPED_ZOOM : 0u);
}

unsigned int mount_make(struct mount *mount, const struct mount_limits *limits, struct pose where)
{
	unsigned int clamped = limit(limits, &where);

	*mount = (struct mount){ .limits = *limits, .from = where, .goal = where };
	return clamped;
}

unsigned int mount_look(struct mount *mount, int64_t t_ns, struct pose goal)
{
	unsigned int clamped = limit(&mount->limits, &goal);

	mount->from = mount_pose(mount, t_ns);
	mount->from_ns = t_ns;
	mount->goal = goal;
	return clamped;
}

static int32_t moved(int32_t from, int32_t goal, int32_t per_s, int64_t passed_ns)
{
	int64_t way = amount_after(per_s, passed_ns);

	return (int32_t)(from < goal ? (goal - from > way ? from + way : goal) : (from - goal > way ? from - way : goal));
}

struct pose mount_pose(const struct mount *mount, int64_t t_ns)
{
	int64_t passed_ns = t_ns > mount->from_ns ? t_ns - mount->from_ns : 0;

	return (struct pose){
		moved(mount->from.x_q8, mount->goal.x_q8, mount->limits.pan_q8_s, passed_ns),
		moved(mount->from.y_q8, mount->goal.y_q8, mount->limits.tilt_q8_s, passed_ns),
		moved(mount->from.zoom_q8, mount->goal.zoom_q8, mount->limits.zoom_q8_s, passed_ns),
	};
}
