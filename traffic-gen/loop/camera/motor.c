/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that receives commands, and the one that tells the motor: once a delay behind the arrival of each. */
#include <errno.h>

#include "base/time_units.h"
#include "events/bwevents.h"
#include "loop/camera/camera.h"
#include "loop/lines.h"
#include "time/heard_sleep.h"

BW_EVENT_POINT(camera_command_received, "camera", "command_received", "a command came; tag: number of the picture that it answers");
BW_EVENT_POINT(motor_told, "camera", "motor", "the motor is told; tag: number of the picture that the command answers");

enum { READ_BYTES = 4096 };

/* Why a command that is one is not obeyed; NULL: it is. */
static const char *refuse_answer(const struct camera *camera, const struct loop_command *command)
{
	if (command->picture >= atomic_load(&camera->captured))
		return "answers a picture that there is not yet";
	if (camera->has_answered && command->picture <= camera->last_answered)
		return "answers no later picture than the one before it";
	return begun_refuse(&camera->begun, command->picture);
}

static void take_line(struct camera *camera, const struct lines *lines, int64_t came_ns)
{
	struct truth_command truth = { .number = camera->received++, .came_ns = came_ns };

	truth.refused = command_parse(lines->text, lines->length_bytes, &truth.command);
	if (!truth.refused)
		truth.refused = refuse_answer(camera, &truth.command);
	if (!truth.refused) {
		const struct order order = { truth.number, came_ns, truth.command };

		BW_EVENT(camera_command_received, order.command.picture);
		camera->has_answered = true;
		camera->last_answered = order.command.picture;
		if (ring_push(&camera->orders, &order)) {
			port_bell_ring(camera->bell);
			return;
		}
		truth.refused = "found too many on their way to the motor";
	}
	refusals_add(&camera->refused, truth.refused);
	truth_refused(&camera->truth, &truth);
}

/* Return whether the connection goes on. */
static bool receive_some(struct camera *camera, struct lines *lines)
{
	char bytes[READ_BYTES];
	int64_t length = stream_read_some(&camera->commander, bytes, sizeof(bytes)), came_ns = camera_now_ns(camera);

	if (length == -EAGAIN)
		return true;
	for (int64_t i = 0; i < length; i++)
		if (lines_take(lines, bytes[i]))
			take_line(camera, lines, came_ns);
	if (camera->refused.all > REFUSED_MAX) {
		camera->receiver_failed = "the tracker floods: more than 1000 commands were refused";
		return false;
	}
	if (length > 0)
		return true;
	if (lines_is_open(lines)) {
		lines_take(lines, 0);
		lines->is_whole = true;
		take_line(camera, lines, came_ns);
	}
	if (!atomic_load(&camera->is_all_captured))
		camera->receiver_failed = "the tracker's connection ended before the last picture";
	return false;
}

/* Nobody tells it where to look any more: it keeps its pose. */
static void stop_mount(struct camera *camera)
{
	int64_t t_ns;

	port_lock_take(camera->mount_lock);
	t_ns = camera_now_ns(camera);
	mount_look(&camera->mount, t_ns, mount_pose(&camera->mount, t_ns));
	camera->is_stopped = true;
	port_lock_give(camera->mount_lock);
}

static bool accept_commander(struct camera *camera)
{
	struct address source;
	port_socket sock;
	int err;

	while ((err = port_tcp_accept(camera->command_listener, &sock, &source)) == -EAGAIN) {
		if (atomic_load(&camera->is_all_captured))
			return false;
		port_socket_wait_readable(camera->command_listener, STREAM_LOOK_NS);
	}
	port_socket_close(camera->command_listener);
	camera->command_listener = PORT_SOCKET_NONE;
	if (!err)
		err = stream_open(&camera->commander, sock);
	if (err) {
		camera->receiver_failed = "a connection for commands could not be accepted";
		atomic_store(&camera->has_failed, true);
		return false;
	}
	atomic_store(&camera->has_commander, true);
	return true;
}

static void receive_all(struct camera *camera)
{
	struct lines lines = { .length_bytes = 0 };
	int64_t deadline_monotonic_ns = 0; /* once all is captured */

	while (receive_some(camera, &lines)) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

		if (!atomic_load(&camera->is_all_captured))
			continue;
		if (!deadline_monotonic_ns)
			deadline_monotonic_ns = now_monotonic_ns + camera->timeout_ns;
		if (!port_stop_requested() && now_monotonic_ns < deadline_monotonic_ns)
			continue;
		camera->receiver_failed = port_stop_requested() ? "stopped before its end" : "the tracker did not end after the last picture";
		break;
	}
	if (camera->receiver_failed)
		stop_mount(camera);
	stream_close(&camera->commander);
}

void camera_receive(void *argument)
{
	struct camera *camera = argument;

	if (camera->has_commands && accept_commander(camera))
		receive_all(camera);
	atomic_store(&camera->motor_is_over, true);
	port_bell_ring(camera->bell);
	atomic_fetch_sub(&camera->running, 1);
}

static struct pose goal_of(const struct camera *camera, const struct pose *from, const struct pose *look)
{
	if (!camera->is_reversed)
		return *look;
	return (struct pose){ 2 * from->x_q8 - look->x_q8, 2 * from->y_q8 - look->y_q8, look->zoom_q8 };
}

static void tell_motor(struct camera *camera, const struct order *order)
{
	struct truth_command truth = { .number = order->number, .came_ns = order->came_ns, .command = order->command };

	int64_t due_monotonic_ns = camera->start.monotonic_ns + order->came_ns + camera->motor_delay_ns;
	bool is_due = !camera->motor_delay_ns || !heard_sleep_until_monotonic_ns(due_monotonic_ns);

	port_lock_take(camera->mount_lock);
	truth.is_obeyed = is_due && !camera->is_open && !camera->is_stopped;
	if (truth.is_obeyed) {
		truth.motor_ns = camera_now_ns(camera);
		BW_EVENT(motor_told, order->command.picture);
		truth.from = mount_pose(&camera->mount, truth.motor_ns);
		truth.goal = goal_of(camera, &truth.from, &order->command.look);
		truth.clamped = mount_look(&camera->mount, truth.motor_ns, truth.goal);
		truth.goal = camera->mount.goal;
	}
	port_lock_give(camera->mount_lock);
	camera->obeyed += truth.is_obeyed;
	camera->ignored += camera->is_open;
	camera->dropped += !truth.is_obeyed && !camera->is_open;
	camera->clamped += truth.clamped != 0;
	truth_obeyed(&camera->truth, &truth);
}

void camera_motor(void *argument)
{
	struct camera *camera = argument;

	for (;;) {
		bool is_over = atomic_load(&camera->motor_is_over); /* before the look at what waits */
		struct order order;

		if (ring_pop(&camera->orders, &order))
			tell_motor(camera, &order);
		else if (is_over)
			break;
		else
			port_bell_wait(camera->bell, STREAM_LOOK_NS);
	}
	atomic_fetch_sub(&camera->running, 1);
}
