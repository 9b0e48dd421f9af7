/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that captures: a picture each period, at absolute times. */
#include "loop/camera/capture.h"

#include "base/time_units.h"
#include "events/bwevents.h"
#include "loop/camera/video.h"
#include "time/heard_sleep.h"

enum { READINGS = 5 };

BW_EVENT_POINT(camera_captured, "camera", "captured", "a picture is captured: the middle of its exposure, or a V4L2 driver gave it; tag: its number");
BW_EVENT_POINT(camera_queued, "camera", "queued", "a picture waits to be sent; tag: its number");

/* The clocks at one instant: the best of some readings. */
static void begin(struct camera *camera)
{
	struct camera_start *start = &camera->start;

	start->bound_ns = INT64_MAX;
	for (int i = 0; i < READINGS; i++) {
		int64_t before_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), realtime_ns = port_clock_now_ns(PORT_CLOCK_REALTIME);
		int64_t tai_ns = port_tai_now_ns(&camera->side.tai), after_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

		if (after_ns - before_ns >= start->bound_ns)
			continue;
		*start = (struct camera_start){ before_ns, realtime_ns, tai_ns, after_ns - before_ns };
	}
	atomic_store(&camera->has_started, true);
}

/* Return 0 or -EINTR, -ETIMEDOUT. */
static int wait_for_client(const struct camera *camera)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + camera->timeout_ns;

	while (!atomic_load(&camera->has_client) || (camera->has_commands && !atomic_load(&camera->has_commander))) {
		if (port_stop_requested() || atomic_load(&camera->has_failed))
			return -EINTR;
		if (port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= deadline_monotonic_ns)
			return -ETIMEDOUT;
		port_sleep_ns(NS_PER_MS);
	}
	return 0;
}

void capture_event(uint32_t number)
{
	BW_EVENT(camera_captured, number);
}

void capture_queue(struct camera *camera, struct picture_header *header, uint8_t *wire)
{
	header->pixels_crc = picture_crc32(0, wire + PICTURE_HEADER_BYTES, picture_pixels_bytes(header));
	picture_header_pack(header, wire);
	BW_EVENT(camera_queued, header->number);
	picture_queue_put(&camera->queue);
}

static void capture_one(struct camera *camera, uint32_t number)
{
	uint8_t *wire = picture_queue_room(&camera->queue);
	const struct render_settings *settings = &camera->scene.camera;
	struct truth_picture truth = { .number = number, .is_queued = wire != NULL };
	struct picture_header header = { .width_px = settings->width_px, .height_px = settings->height_px, .number = number,
					 .exposure_us = settings->exposure_us };

	port_lock_take(camera->mount_lock);
	truth.captured_ns = camera_now_ns(camera);
	BW_EVENT(camera_captured, number);
	truth.pose = mount_pose(&camera->mount, truth.captured_ns);
	port_lock_give(camera->mount_lock);
	atomic_store(&camera->captured, number + 1);
	truth_picture(&camera->truth, &truth);
	if (!wire)
		return;
	header.pose = truth.pose;
	scene_expose(&camera->scene, &truth.pose, truth.captured_ns, number, wire + PICTURE_HEADER_BYTES);
	capture_queue(camera, &header, wire);
}

static void capture_all(struct camera *camera)
{
	int64_t place = 1; /* on the grid of periods since the start; there was no exposure before that */

	for (uint32_t number = 0; number < camera->pictures; number++) {
		int64_t passed;

		if (heard_sleep_until_monotonic_ns(camera->start.monotonic_ns + place * camera->period_ns))
			camera->capture_failed = "stopped before its end";
		if (camera->capture_failed || atomic_load(&camera->has_failed))
			return;
		capture_one(camera, number);
		stepwatch_tai_now_ns(&camera->watch, &camera->side.tai);
		passed = camera_now_ns(camera) / camera->period_ns;
		if (passed > place) {
			camera->missed += (uint64_t)(passed - place);
			place = passed;
		}
		place++;
	}
}

void camera_capture(void *argument)
{
	struct camera *camera = argument;
	int err = camera->waits_for_client ? wait_for_client(camera) : 0;

	if (err == -ETIMEDOUT)
		camera->capture_failed = "nobody came for the pictures in time";
	else if (err)
		camera->capture_failed = "stopped before its end";
	begin(camera);
	if (!err && camera->video)
		video_capture(camera);
	else if (!err)
		capture_all(camera);
	atomic_store(&camera->is_all_captured, true);
	picture_queue_end(&camera->queue);
	atomic_fetch_sub(&camera->running, 1);
}
