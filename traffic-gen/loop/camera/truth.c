/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/camera/truth.h"

#include <errno.h>

#include "loop/camera/mount.h"

enum { ENTRIES = 4096 };

int truth_open(struct truth *truth, const char *path)
{
	int err;

	*truth = (struct truth){ 0 };
	if (!path)
		return 0;
	truth->file = fopen(path, "wb");
	if (!truth->file)
		return -errno;
	json_init(&truth->json, truth->file);
	err = ring_create(&truth->pictures, ENTRIES, sizeof(struct truth_picture));
	if (!err)
		err = ring_create(&truth->connections, ENTRIES, sizeof(struct truth_connection));
	if (!err)
		err = ring_create(&truth->obeyed, ENTRIES, sizeof(struct truth_command));
	if (!err)
		err = ring_create(&truth->refused, ENTRIES, sizeof(struct truth_command));
	return err;
}

void truth_picture(struct truth *truth, const struct truth_picture *picture)
{
	if (truth->file)
		ring_push(&truth->pictures, picture);
}

void truth_connection(struct truth *truth, const struct truth_connection *connection)
{
	if (truth->file)
		ring_push(&truth->connections, connection);
}

void truth_obeyed(struct truth *truth, const struct truth_command *command)
{
	if (truth->file)
		ring_push(&truth->obeyed, command);
}

void truth_refused(struct truth *truth, const struct truth_command *command)
{
	if (truth->file)
		ring_push(&truth->refused, command);
}

static void write_pose(struct json *json, const char *key, const struct pose *pose)
{
	json_object_open(json, key);
	json_int(json, "x_q8", pose->x_q8);
	json_int(json, "y_q8", pose->y_q8);
	json_int(json, "zoom_q8", pose->zoom_q8);
	json_object_close(json);
}

static void end_line(struct truth *truth)
{
	json_object_close(&truth->json);
	if (json_line_end(&truth->json))
		truth->has_failed = true;
}

static void write_picture(struct truth *truth, const struct truth_picture *picture)
{
	struct json *json = &truth->json;

	json_object_open(json, NULL);
	json_string(json, "type", "picture");
	json_uint(json, "number", picture->number);
	json_int(json, "captured_ns", picture->captured_ns);
	write_pose(json, "pose", &picture->pose);
	json_bool(json, "queued", picture->is_queued);
	end_line(truth);
}

static void write_connection(struct truth *truth, const struct truth_connection *connection)
{
	const struct port_connection *found = &connection->connection;
	struct json *json = &truth->json;

	json_object_open(json, NULL);
	json_string(json, "type", "connection");
	json_uint(json, "number", connection->number);
	json_int(json, "t_ns", connection->t_ns);
	json_int(json, "window_bytes", found->window_bytes);
	json_int(json, "in_flight_bytes", found->in_flight_bytes);
	json_int(json, "rtt_us", found->rtt_us);
	json_int(json, "busy_us", found->busy_us);
	json_int(json, "receiver_limited_us", found->receiver_limited_us);
	json_int(json, "buffer_limited_us", found->buffer_limited_us);
	json_uint(json, "resent", found->resent);
	end_line(truth);
}

static void write_clamped(struct json *json, unsigned int clamped)
{
	static const char *const names[] = { "x", "y", "zoom" };

	json_array_open(json, "clamped");
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (clamped & 1U << i)
			json_string(json, NULL, names[i]);
	json_array_close(json);
}

static void write_command(struct truth *truth, const struct truth_command *command)
{
	struct json *json = &truth->json;

	json_object_open(json, NULL);
	json_string(json, "type", "command");
	json_uint(json, "number", command->number);
	json_int(json, "came_ns", command->came_ns);
	if (command->refused) {
		json_string(json, "refused", command->refused);
		end_line(truth);
		return;
	}
	json_null(json, "refused");
	json_uint(json, "picture", command->command.picture);
	write_pose(json, "look", &command->command.look);
	json_bool(json, "obeyed", command->is_obeyed);
	if (command->is_obeyed) {
		json_int(json, "motor_ns", command->motor_ns);
		write_pose(json, "from", &command->from);
		write_pose(json, "goal", &command->goal);
		write_clamped(json, command->clamped);
	}
	end_line(truth);
}

void truth_write(struct truth *truth)
{
	struct truth_picture picture;
	struct truth_connection connection;
	struct truth_command command;

	if (!truth->file)
		return;
	while (ring_pop(&truth->pictures, &picture))
		write_picture(truth, &picture);
	while (ring_pop(&truth->connections, &connection))
		write_connection(truth, &connection);
	while (ring_pop(&truth->obeyed, &command))
		write_command(truth, &command);
	while (ring_pop(&truth->refused, &command))
		write_command(truth, &command);
}

uint64_t truth_lacks(const struct truth *truth)
{
	if (!truth->file)
		return 0;
	return ring_dropped(&truth->pictures) + ring_dropped(&truth->connections) + ring_dropped(&truth->obeyed) +
	       ring_dropped(&truth->refused);
}

void truth_close(struct truth *truth)
{
	if (truth->file && fclose(truth->file))
		truth->has_failed = true;
	truth->file = NULL;
	ring_destroy(&truth->pictures);
	ring_destroy(&truth->connections);
	ring_destroy(&truth->obeyed);
	ring_destroy(&truth->refused);
}
