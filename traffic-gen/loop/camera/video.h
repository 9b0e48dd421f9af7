/* SPDX-License-Identifier: Apache-2.0 */
/* A real camera in place of the synthetic one: --v4l2. Its pictures have no world, and nobody knows where a target is in them. */
#ifndef BW_LOOP_VIDEO_H
#define BW_LOOP_VIDEO_H

#include "loop/camera/camera.h"

/** Refuse options of the synthetic camera. @return EXIT_DONE, or an exit code: a line was written to stderr */
int video_check_options(int argc, char **argv, const char *tool);
/** Open --v4l2 with the scene's size and the camera's period. @return likewise */
int video_open(struct camera *camera, const struct scene_options *chosen, int32_t pictures_per_s);
/** Capture all pictures; camera->capture_failed says why not. Of the thread that captures. */
void video_capture(struct camera *camera);
/** Whether the device gave nothing at all, which is then said on stderr. @return EXIT_DONE or EXIT_CAPABILITY */
int video_end(const struct camera *camera);
/** Write the truth's object `v4l2`. */
void video_write(struct json *json, const struct camera *camera);

#endif
