/* SPDX-License-Identifier: Apache-2.0 */
/* The verb display: pictures in, each checked, some kept; a window is a program of somebody else. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/time_units.h"
#include "events/bwevents.h"
#include "loop/display/show.h"
#include "loop/refusals.h"
#include "loop/stream.h"
#include "loop/verbs.h"
#include "traffic/connection.h"
#include "traffic/roundtrip/side.h"

#define TOOL "bw-loop display"

enum { OWN_OPTIONS = 6, PATH_BYTES = 1024, REASONS = 3 };

BW_EVENT_POINT(display_picture, "display", "picture", "a picture was read whole; tag: its number");

struct display_options {
	const char *listen, *from, *keep, *show;
	int64_t every, timeout_ms;
};

struct display {
	struct side side;
	const struct display_options *options;
	struct address peer;
	port_socket listener;
	struct loop_stream stream;
	struct picture_reader reader;
	struct show show;
	struct refusals damaged;
	uint64_t pictures, kept;
	bool has_ended;
	uint32_t of; /* how many the camera has captured, by the end of the stream */
	const char *failed;
	int error;
};

static void fail(struct display *display, const char *why, int err)
{
	display->failed = why;
	display->error = err;
}

static void keep(struct display *display, const struct picture_header *header)
{
	char path[PATH_BYTES], head[PICTURE_PGM_HEAD_BYTES];
	FILE *file;
	bool is_written;

	snprintf(path, sizeof(path), "%s/picture-%08" PRIu32 ".pgm", display->options->keep, header->number);
	file = fopen(path, "wb");
	if (!file) {
		fail(display, "a picture could not be kept", -errno);
		return;
	}
	fwrite(head, 1, picture_pgm_head(header->width_px, header->height_px, head), file);
	fwrite(display->reader.wire + PICTURE_HEADER_BYTES, 1, picture_pixels_bytes(header), file);
	is_written = !ferror(file);
	if (fclose(file) || !is_written)
		fail(display, "a picture could not be kept", -EIO);
	display->kept++;
}

static void take(struct display *display, const struct picture_header *header)
{
	const char *damage = picture_pixels_check(header, display->reader.wire + PICTURE_HEADER_BYTES);

	if (damage) {
		refusals_add(&display->damaged, damage);
		return;
	}
	BW_EVENT(display_picture, header->number);
	display->pictures++;
	if (display->options->keep && header->number % display->options->every == 0)
		keep(display, header);
	if (display->show.argv)
		show_picture(&display->show, display->reader.wire, PICTURE_HEADER_BYTES + picture_pixels_bytes(header));
}

static int connect_stream(struct display *display)
{
	port_socket sock = PORT_SOCKET_NONE;
	int err = display->options->from ? connection_reach(&display->peer, display->reader.timeout_ns, &sock) :
					   connection_accept(&display->listener, INT64_MAX, &sock);

	return err ? err : stream_open(&display->stream, sock);
}

static void run_display(void *argument)
{
	struct display *display = argument;
	struct picture_header header = { 0 };
	int err = connect_stream(display);

	if (err)
		fail(display, err == -EINTR ? "stopped before its end" : "nobody could be reached", err == -EINTR ? 0 : err);
	while (!display->failed && !display->has_ended) {
		if (!picture_reader_next(&display->reader, &header, NULL)) {
			fail(display, display->reader.failed, display->reader.error);
		} else if (header.is_end) {
			display->has_ended = true;
			display->of = header.number;
		} else {
			take(display, &header);
		}
	}
	stream_close(&display->stream);
	atomic_store(&display->side.finished, true);
}

static int write_result(const struct display *display, const struct port_scheduling *scheduling)
{
	const char *reasons[REASONS];
	size_t count = 0;
	struct json json;

	if (display->failed)
		reasons[count++] = display->failed;
	if (display->damaged.all)
		reasons[count++] = "pictures were damaged";
	json_init(&json, stdout);
	answer_result(&json, TOOL);
	json_uint(&json, "pictures", display->pictures);
	json_uint(&json, "damaged", display->damaged.all);
	refusals_write(&json, "damaged_by_reason", &display->damaged);
	json_uint(&json, "of", display->of);
	json_uint(&json, "kept", display->kept);
	if (display->show.argv) {
		json_uint(&json, "shown", display->show.shown);
		json_uint(&json, "not_shown", show_missed(&display->show));
	}
	answer_validity(&json, display->has_ended && !count, reasons, count);
	summary_scheduling(&json, scheduling);
	answer_end(&json);
	if (display->reader.detail)
		fprintf(stderr, TOOL ": what came %s\n", display->reader.detail);
	if (display->error)
		fprintf(stderr, TOOL ": %s: %s\n", display->failed, strerror(-display->error));
	return count ? EXIT_INVALID : EXIT_DONE;
}

static void write_ready(const struct display *display)
{
	char text[ADDRESS_TEXT_BYTES];
	struct address local;
	struct json json;

	json_init(&json, stdout);
	answer_begin(&json, "ready", TOOL);
	if (display->options->listen && !port_socket_local(display->listener, &local))
		json_string(&json, "address", address_format(&local, text));
	answer_end(&json);
}

static int start_show(struct display *display)
{
	int err = display->show.argv ? show_start(&display->show) : 0;

	if (!err)
		return EXIT_DONE;
	if (err != -ENOTSUP)
		return side_fail(&display->side, "cannot start", display->show.argv[0], err);
	fprintf(stderr, TOOL ": --show: this system has none; Linux has\n");
	return EXIT_CAPABILITY;
}

static int run(struct display *display)
{
	const struct display_options *options = display->options;
	struct port_scheduling scheduling;
	int err, code;

	port_stop_install();
	if (options->keep) {
		err = port_directory_create(options->keep);
		if (err && err != -EEXIST)
			return side_fail(&display->side, "cannot make", options->keep, err);
	}
	if (options->listen) {
		err = port_tcp_listen(&display->peer, 1, &display->listener);
		if (err)
			return side_fail(&display->side, "cannot listen at", options->listen, err);
	}
	err = picture_reader_make(&display->reader, &display->stream, options->timeout_ms * NS_PER_MS);
	if (err)
		return side_fail(&display->side, "no memory for", "pictures", err);
	code = start_show(display);
	if (code)
		return code;
	write_ready(display);
	code = side_run(&display->side, run_display, display, NULL, &scheduling);
	if (display->show.argv)
		show_end(&display->show);
	return code ? code : write_result(display, &scheduling);
}

static int run_with(const struct display_options *options, const struct side_options *chosen, char *const *show)
{
	static struct display display;
	const char *where = options->listen ? options->listen : options->from;
	int code;

	if (!options->listen == !options->from)
		return option_refuse(TOOL, "--listen, --from", NULL, "one of them");
	if (address_parse(where, &display.peer))
		return option_refuse(TOOL, options->listen ? "--listen" : "--from", where, ADDRESS_FORM);
	if (show && !show[0])
		return option_refuse(TOOL, "--show", NULL, "a program, and its words");
	display.options = options;
	display.show.argv = show;
	display.side.tool = TOOL;
	display.side.options = *chosen;
	display.listener = display.stream.sock = display.show.in.sock = PORT_SOCKET_NONE;
	code = run(&display);
	if (show)
		show_end(&display.show);
	if (display.listener != PORT_SOCKET_NONE)
		port_socket_close(display.listener);
	picture_reader_free(&display.reader);
	return code;
}

int verb_display(int argc, char **argv)
{
	struct display_options chosen = { .every = 1, .timeout_ms = 10000 };
	struct side_options side = side_defaults;
	struct option options[OWN_OPTIONS + SIDE_SCHEDULING_OPTIONS + 1] = {
		{ .name = "listen", .kind = OPTION_TEXT, .target = &chosen.listen, .argument = "ADDRESS:PORT",
		  .help = "take the pictures of the first who connects there, a tracker" },
		{ .name = "from", .kind = OPTION_TEXT, .target = &chosen.from, .argument = "ADDRESS:PORT",
		  .help = "take those of a camera that serves there" },
		{ .name = "keep", .kind = OPTION_TEXT, .target = &chosen.keep, .argument = "FOLDER",
		  .help = "keep pictures there, as PGM (default: none)" },
		{ .name = "every", .kind = OPTION_INT, .target = &chosen.every, .min = 1, .max = 1000000, .argument = "N",
		  .help = "those whose number is a multiple of it, 1..1000000 (default 1)" },
		{ .name = "timeout-ms", .kind = OPTION_INT, .target = &chosen.timeout_ms, .min = 1, .max = 3600000, .argument = "N",
		  .help = "end if no picture comes for so long, 1..3600000 ms (default 10000)" },
		{ .name = "show", .kind = OPTION_TEXT, .target = &chosen.show, .argument = "COMMAND...",
		  .help = "Linux; the last option: a program that shows pictures, as PGM on its stdin (default: none)" },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--listen ADDRESS:PORT | --from ADDRESS:PORT [options] [--show COMMAND...]",
		.about = "Receive pictures, check each and keep some. A window is a program that shows them: --show mpv -. What it does not take\n"
			 "is dropped and counted. bw-events records when each picture was there (display).\n"
			 "A listener waits for its first connection as long as it takes; --timeout-ms holds from then on.\n",
		.options = options,
	};
	int parsed, own;
	char *const *show = verb_command(argc, argv, "--show", &own);

	side_add_scheduling_options(options + OWN_OPTIONS, &side);
	parsed = options_parse(&command, own, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	return run_with(&chosen, &side, show);
}
