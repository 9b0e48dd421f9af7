/* SPDX-License-Identifier: Apache-2.0 */
/* The verb tracker: its options, and what it answers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/time_units.h"
#include "loop/camera/world.h"
#include "loop/tracker/tracking.h"
#include "loop/verbs.h"

#define TOOL "bw-loop tracker"

enum { OWN_OPTIONS = 9, REASONS = 4 };

struct tracker_options {
	const char *camera, *control, *display, *commands, *program;
	int64_t margin_percent, radius_px, program_timeout_ms, timeout_ms;
};

static void write_program(struct json *json, const struct program *program)
{
	if (!program->argv)
		return;
	json_object_open(json, "program");
	json_uint(json, "given", atomic_load(&program->given));
	json_uint(json, "said_bytes", program->said_bytes);
	json_uint(json, "refused", program->refused.all);
	refusals_write(json, "refused_by_reason", &program->refused);
	json_object_close(json);
}

static void write_display(struct json *json, const struct forwarder *forwarder)
{
	if (!forwarder->is_wanted)
		return;
	json_object_open(json, "display");
	json_uint(json, "forwarded", forwarder->forwarded);
	json_uint(json, "discarded", forwarder->discarded);
	json_uint(json, "overrun", forwarder->queue.overrun);
	json_uint(json, "queue_most", forwarder->queue.most);
	json_object_close(json);
}

static int write_result(const struct tracking *tracking, const struct port_scheduling *scheduling)
{
	const struct program *program = &tracking->program;
	const char *reasons[REASONS];
	size_t count = 0;
	struct json json;

	if (program->failed[0] && !tracking->failed)
		reasons[count++] = program->failed;
	if (tracking->failed)
		reasons[count++] = tracking->failed;
	if (tracking->damaged.all)
		reasons[count++] = "pictures were damaged";
	if (program->refused.all)
		reasons[count++] = "lines of the program were no commands";
	json_init(&json, stdout);
	answer_result(&json, TOOL);
	json_uint(&json, "pictures", tracking->pictures);
	json_uint(&json, "of", tracking->of);
	json_uint(&json, "damaged", tracking->damaged.all);
	refusals_write(&json, "damaged_by_reason", &tracking->damaged);
	if (!program->argv) {
		json_uint(&json, "found", tracking->found);
		json_uint(&json, "not_found", tracking->not_found);
	}
	json_uint(&json, "commands", tracking->commands);
	write_program(&json, program);
	write_display(&json, &tracking->forwarder);
	answer_validity(&json, tracking->has_ended && !count, reasons, count);
	summary_scheduling(&json, scheduling);
	answer_end(&json);
	if (tracking->reader.detail)
		fprintf(stderr, TOOL ": what came %s\n", tracking->reader.detail);
	if (tracking->error)
		fprintf(stderr, TOOL ": %s: %s\n", tracking->failed, strerror(-tracking->error));
	return count ? EXIT_INVALID : EXIT_DONE;
}

static int run(struct tracking *tracking)
{
	struct port_scheduling scheduling;
	struct json json;
	int code, err;

	port_stop_install();
	err = picture_reader_make(&tracking->reader, &tracking->camera, tracking->timeout_ns);
	if (err)
		return side_fail(&tracking->side, "no memory for", "pictures", err);
	if (tracking->program.argv) {
		err = program_start(tracking);
		if (err == -ENOTSUP) {
			fprintf(stderr, TOOL ": --program: this system has none; Linux has\n");
			return EXIT_CAPABILITY;
		}
		if (err)
			return side_fail(&tracking->side, "cannot start", tracking->program.argv[0], err);
	}
	json_init(&json, stdout);
	answer_begin(&json, "ready", TOOL);
	answer_end(&json);
	code = side_run(&tracking->side, tracking_run, tracking, NULL, &scheduling);
	return code ? code : write_result(tracking, &scheduling);
}

static int run_with(const struct tracker_options *options, const struct side_options *chosen, char *const *program)
{
	static struct tracking tracking;
	int code;

	if (!options->camera || address_parse(options->camera, &tracking.camera_peer))
		return option_refuse(TOOL, "--camera", options->camera, ADDRESS_FORM);
	if (!options->control || address_parse(options->control, &tracking.control_peer))
		return option_refuse(TOOL, "--control", options->control, ADDRESS_FORM);
	if (options->display && address_parse(options->display, &tracking.forwarder.peer))
		return option_refuse(TOOL, "--display", options->display, ADDRESS_FORM);
	tracking.is_edge = strcmp(options->commands, "edge") == 0;
	if (!tracking.is_edge && strcmp(options->commands, "always") != 0)
		return option_refuse(TOOL, "--commands", options->commands, "always or edge");
	if (program && tracking.is_edge)
		return option_refuse(TOOL, "--commands", options->commands, "always: a program says itself when to look elsewhere");
	if (program && !program[0])
		return option_refuse(TOOL, "--program", NULL, "a program, and its words");
	tracking.side.tool = TOOL;
	tracking.side.options = *chosen;
	tracking.radius_px = (int32_t)options->radius_px;
	tracking.margin_percent = options->margin_percent;
	tracking.timeout_ns = tracking.forwarder.timeout_ns = options->timeout_ms * NS_PER_MS;
	tracking.forwarder.is_wanted = options->display != NULL;
	tracking.program.argv = program;
	tracking.program.timeout_ns = options->program_timeout_ms * NS_PER_MS;
	tracking.camera.sock = tracking.control.sock = tracking.forwarder.stream.sock = PORT_SOCKET_NONE;
	tracking.program.in.sock = tracking.program.out.sock = PORT_SOCKET_NONE;
	code = run(&tracking);
	picture_reader_free(&tracking.reader);
	return code;
}

int verb_tracker(int argc, char **argv)
{
	struct tracker_options chosen = { .commands = "always", .margin_percent = 25, .radius_px = TARGET_RADIUS_PX,
					  .program_timeout_ms = 2000, .timeout_ms = 10000 };
	struct side_options side = side_defaults;
	struct option options[OWN_OPTIONS + SIDE_SCHEDULING_OPTIONS + 1] = {
		{ .name = "camera", .kind = OPTION_TEXT, .target = &chosen.camera, .argument = "ADDRESS:PORT",
		  .help = "where a camera serves pictures" },
		{ .name = "control", .kind = OPTION_TEXT, .target = &chosen.control, .argument = "ADDRESS:PORT",
		  .help = "where it takes commands" },
		{ .name = "display", .kind = OPTION_TEXT, .target = &chosen.display, .argument = "ADDRESS:PORT",
		  .help = "send pictures on to one that listens there, with a box round the target (default: nobody)" },
		{ .name = "commands", .kind = OPTION_TEXT, .target = &chosen.commands, .argument = "always|edge",
		  .help = "for each picture, or where the target is near an edge (default always)" },
		{ .name = "margin-percent", .kind = OPTION_INT, .target = &chosen.margin_percent, .min = 0, .max = 50, .argument = "N",
		  .help = "of edge: of width and of height, 0..50 (default 25)" },
		{ .name = "radius-px", .kind = OPTION_INT, .target = &chosen.radius_px, .min = TARGET_RADIUS_MIN_PX,
		  .max = TARGET_RADIUS_MAX_PX, .argument = "N", .help = "of the target's disc, pixels of the world, 4..64 (default 12)" },
		{ .name = "program-timeout-ms", .kind = OPTION_INT, .target = &chosen.program_timeout_ms, .min = 1, .max = 3600000,
		  .argument = "N", .help = "for it to take a picture, and to end behind the last, 1..3600000 ms (default 2000)" },
		{ .name = "timeout-ms", .kind = OPTION_INT, .target = &chosen.timeout_ms, .min = 1, .max = 3600000, .argument = "N",
		  .help = "end if no picture comes, or no command goes, for so long, 1..3600000 ms (default 10000)" },
		{ .name = "program", .kind = OPTION_TEXT, .target = &chosen.program, .argument = "COMMAND...",
		  .help = "Linux; the last option: a tracker with pictures on stdin, commands on stdout (default: this one)" },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--camera ADDRESS:PORT --control ADDRESS:PORT [options] [--program COMMAND...]",
		.about = "Find the target in a camera's pictures, and say where to look. docs/control-loops.md has the formats of both.\n"
			 "bw-events records when each picture was there, and when its command was sent (points tracker).\n",
		.options = options,
	};
	int parsed, own;
	char *const *program = verb_command(argc, argv, "--program", &own);

	side_add_scheduling_options(options + OWN_OPTIONS, &side);
	parsed = options_parse(&command, own, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	return run_with(&chosen, &side, program);
}
