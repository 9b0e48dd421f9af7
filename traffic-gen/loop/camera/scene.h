/* SPDX-License-Identifier: Apache-2.0 */
/* What the camera looks at and how, as options that all verbs have that make its pictures: the same options, the same pictures. */
#ifndef BW_LOOP_SCENE_H
#define BW_LOOP_SCENE_H

#include "base/json.h"
#include "config/options.h"
#include "loop/camera/render.h"
#include "loop/camera/world.h"

enum { SCENE_OPTIONS = 11 };

struct scene_options {
	int64_t seed, noise_seed, speed_px_s, still_ms, radius_px, exposure_us, gain_q8, noise_q8;
	const char *path, *world_size, *size;
};

struct scene {
	struct world world;
	struct render_settings camera;
};

extern const struct scene_options scene_defaults;

/** Fill in SCENE_OPTIONS rows. */
void scene_add_options(struct option *rows, struct scene_options *chosen);
/** Make it; scene_free ends it. @return EXIT_DONE, or an exit code: a line was written to stderr */
int scene_make(struct scene *scene, const struct scene_options *chosen, const char *tool);
/** Read --size alone, of pictures that are not of a world. @return likewise */
int scene_make_size(struct scene *scene, const struct scene_options *chosen, const char *tool);
void scene_free(struct scene *scene);
/** Write the array "options": words of a command line that make the same scene. */
void scene_write_words(struct json *json, struct scene_options *chosen);

/** Expose the picture whose middle is at a time, since the camera's start. @param captured_ns  half the exposure or more */
void scene_expose(const struct scene *scene, const struct pose *pose, int64_t captured_ns, uint32_t number, uint8_t *pixels);

#endif
