/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs render and where: a picture, and where the target was, once more from what the truth file says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "loop/camera/scene.h"
#include "loop/verbs.h"

#define TIME_MAX_NS (INT64_C(1) << 61)

enum { TIMES_MAX = 100000, RENDER_OPTIONS = 5 };

static int write_picture(const struct scene *scene, const struct pose *pose, int64_t captured_ns, uint32_t number)
{
	size_t pixels_bytes = (size_t)scene->camera.width_px * (size_t)scene->camera.height_px;
	uint8_t *pixels = malloc(pixels_bytes);
	char head[PICTURE_PGM_HEAD_BYTES];

	if (!pixels) {
		fprintf(stderr, "bw-loop render: no memory for a picture\n");
		return EXIT_CAPABILITY;
	}
	scene_expose(scene, pose, captured_ns, number, pixels);
	fwrite(head, 1, picture_pgm_head(scene->camera.width_px, scene->camera.height_px, head), stdout);
	fwrite(pixels, 1, pixels_bytes, stdout);
	free(pixels);
	return exit_code_if_written("bw-loop render", EXIT_DONE);
}

int verb_render(int argc, char **argv)
{
	int64_t number = 0, captured_ns = 0, x_q8 = 0, y_q8 = 0, zoom_q8 = ZOOM_ONE_Q8;
	struct scene_options chosen = scene_defaults;
	struct option options[RENDER_OPTIONS + SCENE_OPTIONS + 1] = {
		{ .name = "number", .kind = OPTION_INT, .target = &number, .min = 0, .max = UINT32_MAX, .argument = "N",
		  .help = "of the picture (default 0)" },
		{ .name = "captured-ns", .kind = OPTION_INT, .target = &captured_ns, .min = 0, .max = TIME_MAX_NS, .argument = "N",
		  .help = "when it was captured, since the camera's start: half the exposure or more" },
		{ .name = "x-q8", .kind = OPTION_INT, .target = &x_q8, .min = -PLACE_MAX_Q8, .max = PLACE_MAX_Q8, .argument = "N",
		  .help = "where the camera looked, in 1/256 pixel of the world" },
		{ .name = "y-q8", .kind = OPTION_INT, .target = &y_q8, .min = -PLACE_MAX_Q8, .max = PLACE_MAX_Q8, .argument = "N",
		  .help = "likewise" },
		{ .name = "zoom-q8", .kind = OPTION_INT, .target = &zoom_q8, .min = ZOOM_MIN_Q8, .max = ZOOM_MAX_Q8, .argument = "N",
		  .help = "its zoom in 1/256, 64..4096 (default 256)" },
	};
	const struct command command = {
		.name = "bw-loop render",
		.usage = "[options] > PICTURE.pgm",
		.about = "Make a picture of the synthetic camera once more: `options` of the truth file's first line, and what its line of the\n"
			 "picture says. It is what the camera has sent, byte for byte.\n",
		.options = options,
	};
	struct scene scene;
	int code;

	scene_add_options(options + RENDER_OPTIONS, &chosen);
	code = options_parse(&command, argc, argv, NULL);
	if (code < 0)
		return options_exit_code(code);
	code = scene_make(&scene, &chosen, command.name);
	if (code)
		return code;
	if (captured_ns < chosen.exposure_us * INT64_C(500)) {
		fprintf(stderr, "bw-loop render: --captured-ns: needed: half the exposure or more\n");
		code = EXIT_BAD_INPUT;
	} else {
		const struct pose pose = { (int32_t)x_q8, (int32_t)y_q8, (int32_t)zoom_q8 };

		code = write_picture(&scene, &pose, captured_ns, (uint32_t)number);
	}
	scene_free(&scene);
	return code;
}

static int write_places(const struct scene *scene, const char *const *times, int count)
{
	struct json json;

	json_init(&json, stdout);
	for (int i = 0; i < count; i++) {
		int64_t t_ns;
		struct place place;

		if (option_parse_int(times[i], 0, TIME_MAX_NS, &t_ns)) {
			fprintf(stderr, "bw-loop where: \"%s\"; needed: ns since the camera's start\n", times[i]);
			return EXIT_BAD_INPUT;
		}
		place = path_at(&scene->world.target[0].path, t_ns);
		answer_begin(&json, "place", "bw-loop where");
		json_int(&json, "t_ns", t_ns);
		json_int(&json, "x_q8", place.x_q8);
		json_int(&json, "y_q8", place.y_q8);
		answer_end(&json);
	}
	return exit_code_if_written("bw-loop where", EXIT_DONE);
}

int verb_where(int argc, char **argv)
{
	static const char *times[TIMES_MAX];
	struct scene_options chosen = scene_defaults;
	struct option options[SCENE_OPTIONS + 1] = { 0 };
	const struct command command = {
		.name = "bw-loop where",
		.usage = "[options] T_NS [T_NS...]",
		.about = "Say where the target of the synthetic camera was, at times since its start, in 1/256 pixel of the world: a line for\n"
			 "each. The options are `options` of the truth file's first line.\n",
		.options = options,
		.positional_min = 1,
		.positional_max = TIMES_MAX,
	};
	struct scene scene;
	int count, code;

	scene_add_options(options, &chosen);
	count = options_parse(&command, argc, argv, times);
	if (count < 0)
		return options_exit_code(count);
	code = scene_make(&scene, &chosen, command.name);
	if (code)
		return code;
	code = write_places(&scene, times, count);
	scene_free(&scene);
	return code;
}
