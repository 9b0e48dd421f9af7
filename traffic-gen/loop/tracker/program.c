/* SPDX-License-Identifier: Apache-2.0 */
/* A tracker of the site's own: pictures on its stdin, commands on its stdout. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/time_units.h"
#include "loop/lines.h"
#include "loop/tracker/tracking.h"

enum { READ_BYTES = 4096 };

static void fail(struct program *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The first reason counts. */
static void fail(struct program *program, const char *format, ...)
{
	va_list arguments;

	if (program->failed[0])
		return;
	va_start(arguments, format);
	vsnprintf(program->failed, sizeof(program->failed), format, arguments);
	va_end(arguments);
}

int program_start(struct tracking *tracking)
{
	struct program *program = &tracking->program;
	int err = port_child_start(&program->child, program->argv, true);

	if (err)
		return err;
	err = stream_open(&program->in, program->child.in);
	if (!err)
		err = stream_open(&program->out, program->child.out);
	else
		port_socket_close(program->child.out);
	if (err) {
		stream_close(&program->in);
		port_child_end(&program->child);
	}
	return err;
}

static void take_line(struct tracking *tracking, const struct lines *lines)
{
	struct program *program = &tracking->program;
	struct loop_command command;
	const char *refused = command_parse(lines->text, lines->length_bytes, &command);

	if (!refused && command.picture >= atomic_load(&program->beyond))
		refused = "answers a picture that there is not yet";
	if (!refused && program->has_answered && command.picture <= program->last_answered)
		refused = "answers no later picture than the one before it";
	if (!refused)
		refused = begun_refuse(&program->begun, command.picture);
	if (refused) {
		refusals_add(&program->refused, refused);
		return;
	}
	program->has_answered = true;
	program->last_answered = command.picture;
	tracking_tracked(command.picture);
	atomic_store(&program->x_q8, command.look.x_q8);
	atomic_store(&program->y_q8, command.look.y_q8);
	atomic_store(&program->has_looked, true);
	tracking_command(tracking, &command);
}

/* Wait for its end. Return whether it came. */
static bool wait_ended(struct program *program, int *exit_code)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + program->timeout_ns;

	while (!port_child_has_ended(&program->child, exit_code)) {
		if (port_stop_requested() || port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= deadline_monotonic_ns)
			return false;
		port_sleep_ns(NS_PER_MS);
	}
	return true;
}

/* It says no more: how did it end? */
static void see_end(struct program *program)
{
	bool was_asked = atomic_load(&program->is_closing);
	int exit_code;

	if (!wait_ended(program, &exit_code))
		fail(program, "the program closed its stdout and did not end");
	else if (exit_code < 0)
		fail(program, "the program was ended by signal %d", -exit_code);
	else if (!atomic_load(&program->is_closing) || atomic_load(&program->has_closed_stdin)) /* is_closing is set last */
		fail(program, "the program ended before the pictures did, with exit code %d", exit_code);
	else if (exit_code)
		fail(program, "the program ended with exit code %d", exit_code);
	else if (!was_asked)
		fail(program, "the program closed its stdout before the pictures ended");
}

/* Return whether it goes on. */
static bool listen_some(struct tracking *tracking, struct lines *lines)
{
	struct program *program = &tracking->program;
	char bytes[READ_BYTES];
	int64_t length = stream_read_some(&program->out, bytes, sizeof(bytes));

	if (length == -EAGAIN)
		return true;
	if (length <= 0) {
		see_end(program);
		return false;
	}
	program->said_bytes += (uint64_t)length;
	if (program->said_bytes > (uint64_t)PROGRAM_BYTES_A_PICTURE * (atomic_load(&program->given) + UINT64_C(1))) {
		fail(program, "the program floods: it said more than %d bytes a picture", PROGRAM_BYTES_A_PICTURE);
		return false;
	}
	for (int64_t i = 0; i < length; i++)
		if (lines_take(lines, bytes[i]))
			take_line(tracking, lines);
	return true;
}

static void listen_all(void *argument)
{
	struct tracking *tracking = argument;
	struct program *program = &tracking->program;
	struct lines lines = { .length_bytes = 0 };
	int64_t deadline_monotonic_ns = 0; /* once its stdin is closed */

	while (listen_some(tracking, &lines) && !port_stop_requested() && !atomic_load(&program->is_given_up)) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

		if (!atomic_load(&program->is_closing))
			continue;
		if (!deadline_monotonic_ns)
			deadline_monotonic_ns = now_monotonic_ns + program->timeout_ns;
		if (now_monotonic_ns < deadline_monotonic_ns)
			continue;
		fail(program, atomic_load(&program->has_closed_stdin) ? "the program closed its stdin before the pictures ended" :
									"the program hangs: it did not end behind the last picture");
		break;
	}
	if (lines_is_open(&lines) && !program->failed[0])
		refusals_add(&program->refused, "has no end of the line");
	atomic_store(&program->is_over, true);
}

int program_listen(struct tracking *tracking)
{
	return port_thread_start("answers", (int)tracking->side.options.priority, (int)tracking->side.options.cpu, listen_all, tracking,
				 &tracking->program.thread);
}

bool program_give(struct tracking *tracking, uint32_t number, const uint8_t *wire, size_t size_bytes)
{
	struct program *program = &tracking->program;
	int err;

	if (atomic_load(&program->is_over))
		return false;
	atomic_fetch_add(&program->given, 1);
	begun_add(&program->begun, number);
	atomic_store(&program->beyond, number + 1);
	err = stream_write(&program->in, wire, size_bytes, program->timeout_ns, &program->is_over);
	if (err == -ETIMEDOUT)
		tracking_fail(tracking, port_stop_requested() ? "stopped before its end" : "the program hangs: it took no picture in time", 0);
	else if (err && err != -ECANCELED)
		atomic_store(&program->has_closed_stdin, true);
	return err == 0;
}

void program_end(struct tracking *tracking)
{
	struct program *program = &tracking->program;

	atomic_store(&program->is_given_up, tracking->failed != NULL);
	atomic_store(&program->is_closing, true);
	stream_close(&program->in);
	if (program->thread)
		port_thread_join(program->thread);
	port_child_end(&program->child);
	stream_close(&program->out);
}
