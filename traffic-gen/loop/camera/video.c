/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/camera/video.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "events/bwevents.h"
#include "loop/camera/capture.h"
#include "loop/camera/luma.h"

BW_DATA_POINT(camera_driver_captured, "camera", "driver_captured", "<q",
	      "a V4L2 driver stamped the picture; tag: its number; data: CLOCK_MONOTONIC in ns");

/* Of the mount and of how it is told: a real camera does not move. */
static const char *const refused_options[] = { "look", "zoom-q8", "pan-px-s", "zoom-speed-q8", "motor-delay-ms", "reversed" };

enum { REFUSED_OPTIONS = sizeof(refused_options) / sizeof(refused_options[0]) };

static bool is_option(const char *word, const char *name)
{
	size_t length = strlen(name);

	return strncmp(word, "--", 2) == 0 && strncmp(word + 2, name, length) == 0 && (word[length + 2] == '\0' || word[length + 2] == '=');
}

int video_check_options(int argc, char **argv, const char *tool)
{
	struct scene_options unused;
	struct option rows[SCENE_OPTIONS];

	scene_add_options(rows, &unused);
	for (int i = 1; i < argc; i++) {
		bool is_refused = false;

		for (size_t j = 0; j < REFUSED_OPTIONS; j++)
			is_refused = is_refused || is_option(argv[i], refused_options[j]);
		for (size_t j = 0; j < SCENE_OPTIONS; j++)
			is_refused = is_refused || (strcmp(rows[j].name, "size") != 0 && is_option(argv[i], rows[j].name));
		if (is_refused) {
			fprintf(stderr, "%s: %s is not for --v4l2: a real camera has neither world nor mount\n", tool, argv[i]);
			return EXIT_BAD_INPUT;
		}
	}
	return EXIT_DONE;
}

static int32_t limited(int32_t value, int32_t low, int32_t high)
{
	return value < low ? low : value > high ? high : value;
}

int video_open(struct camera *camera, const struct scene_options *chosen, int32_t pictures_per_s)
{
	struct render_settings *picture = &camera->scene.camera;
	char reason[PORT_VIDEO_REASON_BYTES];
	int err, code = scene_make_size(&camera->scene, chosen, camera->side.tool);
	struct port_video_asked asked = { picture->width_px, picture->height_px, pictures_per_s };
	struct mount_limits limits = { .zoom_min_q8 = ZOOM_ONE_Q8, .zoom_max_q8 = ZOOM_ONE_Q8, .pan_q8_s = 1, .tilt_q8_s = 1, .zoom_q8_s = 1,
				       .world_width_px = picture->width_px, .world_height_px = picture->height_px,
				       .width_px = picture->width_px, .height_px = picture->height_px };

	if (code)
		return code;
	err = port_video_open(&camera->video, camera->v4l2, &asked, &camera->device, reason);
	if (err && *reason) {
		fprintf(stderr, "%s: %s %s\n", camera->side.tool, camera->v4l2, reason);
		return EXIT_CAPABILITY;
	}
	if (err)
		return side_fail(&camera->side, "cannot capture by", camera->v4l2, err);
	picture->exposure_us = limited(camera->device.exposure_us, PICTURE_EXPOSURE_MIN_US, PICTURE_EXPOSURE_MAX_US);
	mount_make(&camera->mount, &limits, (struct pose){ 0, 0, ZOOM_ONE_Q8 }); /* the picture is its own world */
	return EXIT_DONE;
}

/* Return whether the frame became picture number, queued or not. */
static bool take(struct camera *camera, const struct port_video_frame *frame, uint32_t number)
{
	const struct render_settings *settings = &camera->scene.camera;
	struct truth_picture truth = { .number = number, .captured_ns = frame->captured_monotonic_ns - camera->start.monotonic_ns,
				       .pose = camera->mount.goal };
	struct picture_header header = { .width_px = settings->width_px, .height_px = settings->height_px, .number = number,
					 .pose = truth.pose, .exposure_us = settings->exposure_us };
	uint8_t *wire;

	if (frame->is_damaged || !luma_is_whole(&camera->device.luma, frame->size_bytes, settings->width_px, settings->height_px)) {
		camera->missed++;
		return false;
	}
	if (truth.captured_ns < 0) /* before the start */
		return false;
	if (frame->captured_monotonic_ns > port_clock_now_ns(PORT_CLOCK_MONOTONIC))
		camera->is_stamped_ahead = true;
	BW_EVENT_DATA(camera_driver_captured, number, &frame->captured_monotonic_ns, sizeof(frame->captured_monotonic_ns));
	capture_event(number);
	wire = picture_queue_room(&camera->queue);
	truth.is_queued = wire != NULL;
	atomic_store(&camera->captured, number + 1);
	truth_picture(&camera->truth, &truth);
	if (wire) {
		luma_take(frame->bytes, &camera->device.luma, settings->width_px, settings->height_px, wire + PICTURE_HEADER_BYTES);
		capture_queue(camera, &header, wire);
	}
	return true;
}

/* Return 0; -EAGAIN: no frame yet; or what ended it, which capture_failed says. */
static int next(struct camera *camera, int64_t deadline_monotonic_ns, struct port_video_frame *frame)
{
	int err = port_video_next(camera->video, STREAM_LOOK_NS, frame);

	if (err && err != -EAGAIN) {
		camera->capture_failed = "the device could not be read any more";
		return err;
	}
	if (port_stop_requested() || atomic_load(&camera->has_failed)) {
		camera->capture_failed = "stopped before its end";
		return -EINTR;
	}
	if (port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= deadline_monotonic_ns) {
		camera->capture_failed = "the device gave no picture in time";
		return -ETIMEDOUT;
	}
	return err;
}

static int capture_all(struct camera *camera)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + camera->timeout_ns;
	struct port_video_frame frame;
	bool has_before = false;
	uint32_t before = 0, number = 0;

	while (number < camera->pictures) {
		int err = next(camera, deadline_monotonic_ns, &frame);

		if (err == -EAGAIN)
			continue;
		if (err)
			return err;
		if (has_before)
			camera->missed += luma_dropped(before, frame.sequence);
		has_before = true;
		before = frame.sequence;
		if (take(camera, &frame, number)) {
			number++;
			deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + camera->timeout_ns;
		}
		stepwatch_tai_now_ns(&camera->watch, &camera->side.tai);
		err = number < camera->pictures ? port_video_done(camera->video, &frame) : 0;
		if (err) {
			camera->capture_failed = "the device could not be read any more";
			return err;
		}
	}
	return 0;
}

void video_capture(struct camera *camera)
{
	camera->video_error = port_video_start(camera->video);
	if (camera->video_error)
		camera->capture_failed = "the device could not be started";
	else
		camera->video_error = capture_all(camera);
}

int video_end(const struct camera *camera)
{
	bool has_any = atomic_load(&camera->captured);

	if (!camera->video_error || camera->video_error == -EINTR)
		return EXIT_DONE;
	side_fail(&camera->side, has_any ? "no more pictures from" : "no picture from", camera->v4l2, camera->video_error);
	return has_any ? EXIT_DONE : EXIT_CAPABILITY;
}

void video_write(struct json *json, const struct camera *camera)
{
	json_object_open(json, "v4l2");
	json_string(json, "device", camera->v4l2);
	json_string(json, "driver", camera->device.driver);
	json_string(json, "card", camera->device.card);
	json_string(json, "pixel_format", camera->device.pixel_format);
	json_string(json, "stamp", camera->device.is_stamped_at_start ? "start of exposure" : "end of frame");
	if (camera->device.exposure_us)
		json_int(json, "exposure_us", camera->device.exposure_us);
	else
		json_null(json, "exposure_us");
	json_object_close(json);
}
