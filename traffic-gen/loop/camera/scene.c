/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/camera/scene.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/time_units.h"

const struct scene_options scene_defaults = {
	.seed = 1, .noise_seed = 2, .speed_px_s = 100, .radius_px = TARGET_RADIUS_PX, .exposure_us = EXPOSURE_NOMINAL_US,
	.gain_q8 = 256, .noise_q8 = 768, .path = "wander", .world_size = "2048x1536", .size = "320x240",
};

static const struct {
	const char *name;
	enum path_kind kind;
} paths[] = { { "still", PATH_STILL }, { "constant", PATH_CONSTANT }, { "circle", PATH_CIRCLE }, { "wander", PATH_WANDER } };

enum { PATHS = sizeof(paths) / sizeof(paths[0]), NUMBER_BYTES = 24, STILL_MAX_MS = 600000 };

void scene_add_options(struct option *rows, struct scene_options *chosen)
{
	const struct option own[SCENE_OPTIONS] = {
		{ .name = "seed", .kind = OPTION_INT, .target = &chosen->seed, .min = 0, .max = INT64_MAX, .argument = "N",
		  .help = "of world and path (default 1)" },
		{ .name = "noise-seed", .kind = OPTION_INT, .target = &chosen->noise_seed, .min = 0, .max = INT64_MAX, .argument = "N",
		  .help = "of the noise (default 2)" },
		{ .name = "path", .kind = OPTION_TEXT, .target = &chosen->path, .argument = "KIND",
		  .help = "of the target: still, constant, circle, wander (default wander)" },
		{ .name = "speed-px-s", .kind = OPTION_INT, .target = &chosen->speed_px_s, .min = PATH_SPEED_MIN_Q8_S / 256,
		  .max = PATH_SPEED_MAX_Q8_S / 256, .argument = "N", .help = "pixels of the world a second, 1..4000 (default 100)" },
		{ .name = "still-ms", .kind = OPTION_INT, .target = &chosen->still_ms, .min = 0, .max = STILL_MAX_MS, .argument = "N",
		  .help = "the target rests for so long first, 0..600000 ms (default 0)" },
		{ .name = "radius-px", .kind = OPTION_INT, .target = &chosen->radius_px, .min = TARGET_RADIUS_MIN_PX,
		  .max = TARGET_RADIUS_MAX_PX, .argument = "N", .help = "of the target's disc, 4..64 (default 12)" },
		{ .name = "world-size", .kind = OPTION_TEXT, .target = &chosen->world_size, .argument = "WxH",
		  .help = "pixels of the world, 256 to 8192 a side (default 2048x1536)" },
		{ .name = "size", .kind = OPTION_TEXT, .target = &chosen->size, .argument = "WxH",
		  .help = "of a picture, 32 to 2048 a side (default 320x240)" },
		{ .name = "exposure-us", .kind = OPTION_INT, .target = &chosen->exposure_us, .min = PICTURE_EXPOSURE_MIN_US,
		  .max = PICTURE_EXPOSURE_MAX_US, .argument = "N", .help = "1..1000000 us (default 10000)" },
		{ .name = "gain-q8", .kind = OPTION_INT, .target = &chosen->gain_q8, .min = 0, .max = 1 << 16, .argument = "N",
		  .help = "brightness in 1/256, 0..65536 (default 256)" },
		{ .name = "noise-q8", .kind = OPTION_INT, .target = &chosen->noise_q8, .min = 0, .max = 1 << 14, .argument = "N",
		  .help = "standard deviation in 1/256 level, 0..16384 (default 768)" },
	};

	memcpy(rows, own, sizeof(own));
}

/* "320x240". Return whether it is a size within limits. */
static bool read_size(const char *text, int32_t min_px, int32_t max_px, int32_t *width_px, int32_t *height_px)
{
	const char *by = strchr(text, 'x');
	char first[NUMBER_BYTES];
	int64_t width, height;

	if (!by || (size_t)(by - text) >= sizeof(first))
		return false;
	snprintf(first, sizeof(first), "%.*s", (int)(by - text), text);
	if (option_parse_int(first, min_px, max_px, &width) || option_parse_int(by + 1, min_px, max_px, &height))
		return false;
	*width_px = (int32_t)width;
	*height_px = (int32_t)height;
	return true;
}

int scene_make_size(struct scene *scene, const struct scene_options *chosen, const char *tool)
{
	if (read_size(chosen->size, PICTURE_SIDE_MIN_PX, PICTURE_SIDE_MAX_PX, &scene->camera.width_px, &scene->camera.height_px))
		return EXIT_DONE;
	return option_refuse(tool, "--size", chosen->size, "WIDTHxHEIGHT, 32 to 2048 each");
}

int scene_make(struct scene *scene, const struct scene_options *chosen, const char *tool)
{
	struct world_settings settings;
	const char *refused;
	int code, path = 0;

	while (path < PATHS && strcmp(chosen->path, paths[path].name) != 0)
		path++;
	if (path == PATHS)
		return option_refuse(tool, "--path", chosen->path, "still, constant, circle or wander");
	settings = world_settings_default((uint64_t)chosen->seed, paths[path].kind, (int32_t)chosen->speed_px_s * 256);
	settings.target[0].still_ns = chosen->still_ms * NS_PER_MS;
	settings.target[0].radius_px = (int32_t)chosen->radius_px;
	if (!read_size(chosen->world_size, WORLD_SIDE_MIN_PX, WORLD_SIDE_MAX_PX, &settings.width_px, &settings.height_px))
		return option_refuse(tool, "--world-size", chosen->world_size, "WIDTHxHEIGHT, 256 to 8192 each");
	scene->camera = render_settings_default((uint64_t)chosen->noise_seed);
	code = scene_make_size(scene, chosen, tool);
	if (code)
		return code;
	scene->camera.exposure_us = (int32_t)chosen->exposure_us;
	scene->camera.gain_q8 = (int32_t)chosen->gain_q8;
	scene->camera.noise_q8 = (int32_t)chosen->noise_q8;
	refused = world_make(&scene->world, &settings);
	if (!refused)
		return EXIT_DONE;
	fprintf(stderr, "%s: %s\n", tool, refused);
	return EXIT_CAPABILITY;
}

void scene_free(struct scene *scene)
{
	world_free(&scene->world);
}

void scene_write_words(struct json *json, struct scene_options *chosen)
{
	struct option rows[SCENE_OPTIONS];
	char word[NUMBER_BYTES + 8];

	scene_add_options(rows, chosen);
	json_array_open(json, "options");
	for (const struct option *row = rows; row < rows + SCENE_OPTIONS; row++) {
		snprintf(word, sizeof(word), "--%s", row->name);
		json_string(json, NULL, word);
		if (row->kind == OPTION_TEXT) {
			json_string(json, NULL, *(const char *const *)row->target);
			continue;
		}
		snprintf(word, sizeof(word), "%" PRId64, *(const int64_t *)row->target);
		json_string(json, NULL, word);
	}
	json_array_close(json);
}

void scene_expose(const struct scene *scene, const struct pose *pose, int64_t captured_ns, uint32_t number, uint8_t *pixels)
{
	int64_t t_ns = captured_ns - scene->camera.exposure_us * (NS_PER_US / 2);

	render(&scene->world, &scene->camera, pose, t_ns, number, pixels);
}
