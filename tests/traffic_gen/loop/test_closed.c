/* SPDX-License-Identifier: Apache-2.0 */
/** Camera, tracker and mount in one loop: closed, the target stays in the picture; open or the wrong way round, it leaves it. */
#include <stdlib.h>

#include "../check.h"
#include "loop/camera/command.h"
#include "loop/camera/mount.h"
#include "loop/camera/render.h"
#include "loop/tracker/track.h"

enum { WIDTH = 320, HEIGHT = 240, PICTURES = 250, DELAY_MAX = 16 };

static const int64_t period_ns = 40000000;
static uint8_t pixels[WIDTH * HEIGHT];

enum loop { CLOSED, OPEN, REVERSED };

static int is_in_picture(struct place at)
{
	return at.x_q8 >= 0 && at.y_q8 >= 0 && at.x_q8 < WIDTH * 256 && at.y_q8 < HEIGHT * 256;
}

/* A connection that opens its window brings no command for the first so many pictures; the target may rest meanwhile. */
struct opening {
	uint32_t pictures;
	int64_t still_ns;
};

static const struct opening at_once = { 0, 0 };

/* A command goes out as a line of text, and is carried out a delay later. @return the first picture without the target, or PICTURES */
static uint32_t first_without(enum loop loop, uint32_t delay, struct opening opening, uint32_t *without)
{
	const struct mount_limits limits = {
		.pan_q8_s = 600 * 256, .tilt_q8_s = 600 * 256, .zoom_q8_s = 256, .zoom_min_q8 = 128, .zoom_max_q8 = 1024,
		.world_width_px = 2048, .world_height_px = 1536, .width_px = WIDTH, .height_px = HEIGHT,
	};
	struct world_settings settings = world_settings_default(77, PATH_CONSTANT, 120 * 256);
	struct render_settings camera = render_settings_default(78);
	char lines[DELAY_MAX][COMMAND_BYTES_MAX + 1] = { "" };
	uint32_t first = PICTURES;
	struct tracker tracker;
	struct world world;
	struct mount mount;
	struct place start;

	*without = 0;
	settings.target[0].still_ns = opening.still_ns;
	CHECK(!world_make(&world, &settings));
	CHECK(!tracker_make(&tracker, TARGET_RADIUS_PX, WIDTH, HEIGHT));
	start = path_at(&world.target[0].path, 0);
	mount_make(&mount, &limits, (struct pose){ start.x_q8, start.y_q8, ZOOM_ONE_Q8 });
	for (uint32_t number = 0; number < PICTURES; number++) {
		int64_t t_ns = number * period_ns;
		char *line = lines[number % DELAY_MAX];
		struct loop_command command;
		struct track found;
		struct place truth;
		struct pose pose;

		if (number >= delay && *lines[(number - delay) % DELAY_MAX]) {
			const char *due = lines[(number - delay) % DELAY_MAX];

			CHECK(!command_parse(due, strlen(due), &command));
			CHECK_INT(command.picture, number - delay);
			mount_look(&mount, t_ns, command.look);
		}
		pose = mount_pose(&mount, t_ns);
		if (t_ns < opening.still_ns)
			CHECK(abs(pose.x_q8 - start.x_q8) <= 256 && abs(pose.y_q8 - start.y_q8) <= 256);
		truth = pose_to_picture(&pose, WIDTH, HEIGHT, path_at(&world.target[0].path, render_middle_ns(&camera, t_ns)));
		if (!is_in_picture(truth)) {
			first = first == PICTURES ? number : first;
			++*without;
		}
		render(&world, &camera, &pose, t_ns, number, pixels);
		found = track(&tracker, pixels, &pose);
		*line = 0;
		if (!found.found || loop == OPEN || number < opening.pictures)
			continue;
		command = (struct loop_command){ number, { found.world.x_q8, found.world.y_q8, ZOOM_ONE_Q8 } };
		if (loop == REVERSED) {
			command.look.x_q8 = 2 * pose.x_q8 - found.world.x_q8;
			command.look.y_q8 = 2 * pose.y_q8 - found.world.y_q8;
		}
		command_print(&command, line);
	}
	tracker_free(&tracker);
	world_free(&world);
	return first;
}

int main(void)
{
	uint32_t without, open, reversed;

	first_without(CLOSED, 1, at_once, &without);
	CHECK_INT(without, 0);
	first_without(CLOSED, 15, at_once, &without);
	CHECK_INT(without, 0);
	open = first_without(OPEN, 1, at_once, &without);
	CHECK_THAT(open < PICTURES, "with the loop open the target stays in all pictures");
	reversed = first_without(REVERSED, 1, at_once, &without);
	CHECK_THAT(reversed < open, "the wrong way round it leaves at picture %" PRIu32 ", with the loop open at %" PRIu32, reversed, open);
	CHECK(first_without(CLOSED, 15, (struct opening){ 60, 0 }, &without) < PICTURES);
	first_without(CLOSED, 15, (struct opening){ 60, 75 * period_ns }, &without);
	CHECK_INT(without, 0);
	fprintf(stderr, "open, it leaves at picture %" PRIu32 "; reversed, at %" PRIu32 "\n", open, reversed);
	return check_result();
}
