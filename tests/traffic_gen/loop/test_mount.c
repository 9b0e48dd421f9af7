/* SPDX-License-Identifier: Apache-2.0 */
/** The camera's mount: its speeds, its limits, and what it says of goals beyond them. */
#include <stdlib.h>

#include "../check.h"
#include "../random.h"
#include "loop/camera/mount.h"

static const int64_t s_ns = INT64_C(1000000000);
static const struct mount_limits limits = {
	.pan_q8_s = 25600, .tilt_q8_s = 12800, .zoom_q8_s = 256, .zoom_min_q8 = 128, .zoom_max_q8 = 1024,
	.world_width_px = 2048, .world_height_px = 1536, .width_px = 320, .height_px = 240,
};
static const struct pose middle = { 1024 * 256, 768 * 256, 256 };

static void check_pose(struct pose pose, int32_t x_q8, int32_t y_q8, int32_t zoom_q8)
{
	CHECK_INT(pose.x_q8, x_q8);
	CHECK_INT(pose.y_q8, y_q8);
	CHECK_INT(pose.zoom_q8, zoom_q8);
}

static void test_moves_at_its_speeds_and_stops_at_the_goal(void)
{
	struct mount mount;

	CHECK_INT(mount_make(&mount, &limits, middle), 0);
	CHECK_INT(mount_look(&mount, 5 * s_ns, (struct pose){ middle.x_q8 + 51200, middle.y_q8 - 51200, 512 }), 0);
	check_pose(mount_pose(&mount, 4 * s_ns), middle.x_q8, middle.y_q8, 256);
	check_pose(mount_pose(&mount, 5 * s_ns), middle.x_q8, middle.y_q8, 256);
	check_pose(mount_pose(&mount, 5 * s_ns + s_ns / 2), middle.x_q8 + 12800, middle.y_q8 - 6400, 384);
	check_pose(mount_pose(&mount, 7 * s_ns), middle.x_q8 + 51200, middle.y_q8 - 25600, 512);
	check_pose(mount_pose(&mount, 9 * s_ns), middle.x_q8 + 51200, middle.y_q8 - 51200, 512);
	check_pose(mount_pose(&mount, INT64_MAX), middle.x_q8 + 51200, middle.y_q8 - 51200, 512);
}

static void test_a_command_on_the_way_turns_it_from_where_it_is(void)
{
	struct mount mount;

	mount_make(&mount, &limits, middle);
	mount_look(&mount, 0, (struct pose){ middle.x_q8 + 51200, middle.y_q8, 256 });
	mount_look(&mount, s_ns, middle);
	check_pose(mount_pose(&mount, s_ns), middle.x_q8 + 25600, middle.y_q8, 256);
	check_pose(mount_pose(&mount, s_ns + s_ns / 4), middle.x_q8 + 19200, middle.y_q8, 256);
	check_pose(mount_pose(&mount, 2 * s_ns), middle.x_q8, middle.y_q8, 256);
}

static void test_says_what_it_limits(void)
{
	struct mount mount;

	mount_make(&mount, &limits, middle);
	CHECK_INT(mount_look(&mount, 0, (struct pose){ -5, 768 * 256, 256 }), MOUNT_CLAMPED_X);
	check_pose(mount.goal, 319 * 128, 768 * 256, 256);
	CHECK_INT(mount_look(&mount, 0, (struct pose){ 1024 * 256, 5000000, 256 }), MOUNT_CLAMPED_Y);
	check_pose(mount.goal, 1024 * 256, 1535 * 256 - 239 * 128, 256);
	CHECK_INT(mount_look(&mount, 0, (struct pose){ 1024 * 256, 768 * 256, 127 }), MOUNT_CLAMPED_ZOOM);
	check_pose(mount.goal, 1024 * 256, 768 * 256, 128);
	CHECK_INT(mount_look(&mount, 0, (struct pose){ 0, 0, 4096 }), MOUNT_CLAMPED_X | MOUNT_CLAMPED_Y | MOUNT_CLAMPED_ZOOM);
	check_pose(mount.goal, 319 * 32, 239 * 32, 1024);
	CHECK_INT(mount_make(&mount, &limits, (struct pose){ 0, 768 * 256, 256 }), MOUNT_CLAMPED_X);
}

static void test_a_world_smaller_than_the_view_has_its_middle_there(void)
{
	struct mount_limits narrow = limits;
	struct mount mount;

	narrow.world_width_px = 401;
	CHECK_INT(mount_make(&mount, &narrow, (struct pose){ 7, 768 * 256, 128 }), MOUNT_CLAMPED_X);
	CHECK_INT(mount.goal.x_q8, 200 * 256);
}

static void test_never_faster_than_its_limits(void)
{
	struct random random = { .state = 11 };
	int64_t t_ns = 0;
	struct pose before = middle;
	struct mount mount;

	mount_make(&mount, &limits, middle);
	for (int i = 0; i < 5000; i++) {
		int64_t step_ns = random_between(&random, 0, s_ns / 5);
		struct pose pose = mount_pose(&mount, t_ns + step_ns);

		t_ns += step_ns;
		CHECK(abs(pose.x_q8 - before.x_q8) <= (25600 * step_ns + s_ns - 1) / s_ns);
		CHECK(abs(pose.y_q8 - before.y_q8) <= (12800 * step_ns + s_ns - 1) / s_ns);
		CHECK(abs(pose.zoom_q8 - before.zoom_q8) <= (256 * step_ns + s_ns - 1) / s_ns);
		CHECK(pose.zoom_q8 >= 128 && pose.zoom_q8 <= 1024 && pose.x_q8 >= 0 && pose.x_q8 < 2048 * 256);
		before = pose;
		if (i % 3 == 0) {
			struct pose goal;

			goal.x_q8 = (int32_t)random_between(&random, -100000, 700000);
			goal.y_q8 = (int32_t)random_between(&random, -100000, 500000);
			goal.zoom_q8 = (int32_t)random_between(&random, 64, 4096);
			mount_look(&mount, t_ns, goal);
		}
	}
}

static void test_places_of_picture_and_world(void)
{
	struct random random = { .state = 12 };
	const struct pose twice = { 1000 * 256, 700 * 256, 512 };
	struct place corner = pose_to_world(&twice, 321, 241, (struct place){ 0, 0 });

	CHECK_INT(corner.x_q8, 920 * 256);
	CHECK_INT(corner.y_q8, 640 * 256);
	for (int i = 0; i < 1000; i++) {
		struct place world, again;
		struct pose pose;

		pose.x_q8 = (int32_t)random_between(&random, 0, 524288);
		pose.y_q8 = (int32_t)random_between(&random, 0, 393216);
		pose.zoom_q8 = (int32_t)random_between(&random, 256, 4096);
		world.x_q8 = (int32_t)random_between(&random, 0, 524288);
		world.y_q8 = (int32_t)random_between(&random, 0, 393216);
		again = pose_to_world(&pose, 320, 240, pose_to_picture(&pose, 320, 240, world));
		CHECK(abs(again.x_q8 - world.x_q8) <= 1 && abs(again.y_q8 - world.y_q8) <= 1);
	}
}

int main(void)
{
	test_moves_at_its_speeds_and_stops_at_the_goal();
	test_a_command_on_the_way_turns_it_from_where_it_is();
	test_says_what_it_limits();
	test_a_world_smaller_than_the_view_has_its_middle_there();
	test_never_faster_than_its_limits();
	test_places_of_picture_and_world();
	return check_result();
}
