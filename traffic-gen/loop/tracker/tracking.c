/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that reads pictures, finds the target and says where to look. */
#include "loop/tracker/tracking.h"

#include <errno.h>

#include "events/bwevents.h"
#include "loop/tracker/mark.h"
#include "traffic/connection.h"

enum { BOX_LEVEL = 255 };

BW_EVENT_POINT(tracker_picture_begins, "tracker", "picture_begins", "a picture's first bytes were read: its header; tag: its number");
BW_EVENT_POINT(tracker_picture, "tracker", "picture", "a picture was read whole; tag: its number");
BW_EVENT_POINT(tracker_tracked, "tracker", "tracked", "it is known where the target is, or that it is not; tag: number of the picture");
BW_EVENT_POINT(tracker_command_send, "tracker", "command_send", "a command is written; tag: number of the picture that it answers");

void tracking_fail(struct tracking *tracking, const char *why, int err)
{
	if (tracking->failed)
		return;
	tracking->failed = why;
	tracking->error = err;
}

void tracking_tracked(uint32_t number)
{
	BW_EVENT(tracker_tracked, number);
}

bool tracking_command(struct tracking *tracking, const struct loop_command *command)
{
	char line[COMMAND_BYTES_MAX + 1];
	size_t length_bytes = command_print(command, line);

	if (tracking->control.sock == PORT_SOCKET_NONE)
		return false;
	BW_EVENT(tracker_command_send, command->picture);
	if (stream_write(&tracking->control, line, length_bytes, tracking->timeout_ns, NULL))
		return false;
	tracking->commands++;
	return true;
}

static void begun(uint32_t number)
{
	BW_EVENT(tracker_picture_begins, number);
}

static int reach(const struct address *peer, int64_t timeout_ns, struct loop_stream *stream)
{
	port_socket sock = PORT_SOCKET_NONE;
	int err = connection_reach(peer, timeout_ns, &sock);

	return err ? err : stream_open(stream, sock);
}

static bool connect_all(struct tracking *tracking)
{
	const char *what = "the camera could not be reached";
	int err = reach(&tracking->camera_peer, tracking->timeout_ns, &tracking->camera);

	if (!err) {
		what = "the camera's port for commands could not be reached";
		err = reach(&tracking->control_peer, tracking->timeout_ns, &tracking->control);
	}
	if (err)
		tracking_fail(tracking, err == -EINTR ? "stopped before its end" : what, err == -EINTR ? 0 : err);
	return !err;
}

/* Pixels whose check value is right, of a size that all have. Return NULL, or why it is no picture to be tracked. */
static const char *check(struct tracking *tracking, const struct picture_header *header)
{
	const char *damage = picture_pixels_check(header, tracking->reader.wire + PICTURE_HEADER_BYTES);

	if (damage)
		return damage;
	if (!tracking->has_tracker) {
		damage = tracker_make(&tracking->tracker, tracking->radius_px, header->width_px, header->height_px);
		tracking->has_tracker = !damage;
		return damage;
	}
	return header->width_px == tracking->tracker.width_px && header->height_px == tracking->tracker.height_px ?
		       NULL :
		       "has another size than the first";
}

/* By the tracker of this program. Return whether a command that was due was sent. */
static bool answer(struct tracking *tracking, const struct picture_header *header, struct track *track_out)
{
	const uint8_t *pixels = tracking->reader.wire + PICTURE_HEADER_BYTES;
	struct track found = track(&tracking->tracker, pixels, &header->pose);
	struct loop_command command = { header->number, { found.world.x_q8, found.world.y_q8, header->pose.zoom_q8 } };

	tracking_tracked(header->number);
	*track_out = found;
	tracking->found += found.found;
	tracking->not_found += !found.found;
	if (!found.found)
		return true;
	if (tracking->is_edge && !is_near_edge(header->width_px, header->height_px, found.picture, (int32_t)tracking->margin_percent))
		return true;
	if (tracking_command(tracking, &command))
		return true;
	tracking_fail(tracking, port_stop_requested() ? "stopped before its end" : "the camera takes no commands any more", 0);
	return false;
}

/* With the box, which gives it another check value. */
static void forward(struct tracking *tracking, struct picture_header *header, bool has_box, struct place box)
{
	uint8_t *wire = tracking->reader.wire, *pixels = wire + PICTURE_HEADER_BYTES;
	size_t pixels_bytes = picture_pixels_bytes(header);

	if (!tracking->forwarder.is_wanted)
		return;
	if (has_box) {
		draw_box(pixels, header->width_px, header->height_px, box, tracking->radius_px * header->pose.zoom_q8 * 3 / 512, BOX_LEVEL);
		header->pixels_crc = picture_crc32(0, pixels, pixels_bytes);
		picture_header_pack(header, wire);
	}
	forward_picture(&tracking->forwarder, wire, PICTURE_HEADER_BYTES + pixels_bytes, PICTURE_HEADER_BYTES + pixels_bytes);
}

/* Return whether it goes on. */
static bool take(struct tracking *tracking, struct picture_header *header)
{
	struct program *program = &tracking->program;
	const char *damage = check(tracking, header);
	struct track found = { 0 };

	if (damage) {
		refusals_add(&tracking->damaged, damage);
		return true;
	}
	BW_EVENT(tracker_picture, header->number);
	tracking->pictures++;
	if (!program->argv) {
		if (!answer(tracking, header, &found))
			return false;
	} else if (!program_give(tracking, header->number, tracking->reader.wire, PICTURE_HEADER_BYTES + picture_pixels_bytes(header))) {
		return false;
	} else if (atomic_load(&program->has_looked)) {
		const struct place world = { atomic_load(&program->x_q8), atomic_load(&program->y_q8) };

		found.found = true;
		found.picture = pose_to_picture(&header->pose, header->width_px, header->height_px, world);
	}
	forward(tracking, header, found.found, found.picture);
	return true;
}

static void track_all(struct tracking *tracking)
{
	struct picture_header header = { 0 };

	for (;;) {
		if (!picture_reader_next(&tracking->reader, &header, begun)) {
			tracking_fail(tracking, tracking->reader.failed, tracking->reader.error);
			return;
		}
		if (header.is_end) {
			tracking->has_ended = true;
			tracking->of = header.number;
			return;
		}
		if (!take(tracking, &header))
			return;
	}
}

void tracking_run(void *argument)
{
	struct tracking *tracking = argument;
	int err = 0;

	if (connect_all(tracking)) {
		if (tracking->program.argv)
			err = program_listen(tracking);
		if (err)
			tracking_fail(tracking, "the program cannot be listened to", err);
		else
			track_all(tracking);
	}
	if (tracking->program.argv)
		program_end(tracking);
	stream_close(&tracking->control); /* the camera may end, whatever the display does */
	stream_close(&tracking->camera);
	forward_end(&tracking->forwarder, tracking->has_ended ? tracking->reader.wire : NULL);
	if (tracking->has_tracker)
		tracker_free(&tracking->tracker);
	atomic_store(&tracking->side.finished, true);
}
