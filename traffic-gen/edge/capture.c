/* SPDX-License-Identifier: Apache-2.0 */
/* The verb capture: instants of the rising edges of an input. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "edge/edge_verbs.h"
#include "base/json.h"
#include "base/time_units.h"
#include "config/options.h"
#include "edge/pins/pin.h"
#include "port/port.h"

#define TOOL "bw-edge capture"
#define TICK_NS (50 * NS_PER_MS)

enum { KEPT_MAX = 100000 };

struct captured {
	uint64_t sequence;
	int64_t instant;
};

struct capture {
	struct edge_pin pin;
	int64_t count, duration_ns; /* 0: no end of this kind */
	struct captured *kept;      /* KEPT_MAX */
	size_t kept_count;
	uint64_t seen, missed;      /* missed: gaps in the numbers */
	uint64_t next_sequence;
	int error;
	bool complete;
};

static void take(struct capture *capture, uint64_t sequence, int64_t instant)
{
	if (sequence > capture->next_sequence)
		capture->missed += sequence - capture->next_sequence;
	capture->next_sequence = sequence + 1;
	if (capture->kept_count < KEPT_MAX)
		capture->kept[capture->kept_count++] = (struct captured){ sequence, instant };
	capture->seen++;
}

static void print_ready(struct json *json, const struct capture *capture)
{
	answer_begin(json, "ready", TOOL);
	json_string(json, "pin", capture->pin.text);
	answer_end(json);
}

static void print_progress(struct json *json, const struct capture *capture)
{
	answer_begin(json, "progress", TOOL);
	json_uint(json, "count", capture->seen);
	answer_end(json);
}

static int print_result(struct json *json, const struct capture *capture, const struct edge_pin_counts *counts)
{
	const char *reason = NULL;

	if (capture->error)
		reason = capture->error == -ENODEV ? "nobody serves the pin any more" : strerror(-capture->error);
	answer_result(json, TOOL);
	answer_valid_unless(json, capture->complete, reason);
	json_string(json, "pin", capture->pin.text);
	json_string(json, "axis", capture->pin.axis == EDGE_AXIS_COUNTER ? "counter" : "clock-ns");
	if (capture->pin.axis == EDGE_AXIS_COUNTER)
		json_uint(json, "counter_hz", capture->pin.counter_hz);
	else
		json_null(json, "counter_hz");
	json_uint(json, "count", capture->seen);
	json_uint(json, "missed", capture->missed);
	if (counts)
		json_uint(json, "overruns", counts->overruns);
	else
		json_null(json, "overruns");
	json_array_open(json, "captures");
	for (size_t i = 0; i < capture->kept_count; i++) {
		json_array_open(json, NULL);
		json_uint(json, NULL, capture->kept[i].sequence);
		json_int(json, NULL, capture->kept[i].instant);
		json_array_close(json);
	}
	json_array_close(json);
	return answer_end(json);
}

static void capture_all(struct capture *capture, struct json *json)
{
	const struct edge_pin_kind *kind = capture->pin.kind;
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	int64_t next_monotonic_ns = begin_monotonic_ns + NS_PER_S;

	for (;;) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), left_ns = TICK_NS, instant;
		uint64_t sequence;
		int err;

		if (port_stop_requested()) {
			capture->complete = !capture->count && !capture->duration_ns;
			return;
		}
		if (capture->duration_ns && now_monotonic_ns - begin_monotonic_ns >= capture->duration_ns) {
			capture->complete = true;
			return;
		}
		if (now_monotonic_ns >= next_monotonic_ns) {
			print_progress(json, capture);
			next_monotonic_ns += NS_PER_S;
		}
		if (capture->duration_ns && capture->duration_ns - (now_monotonic_ns - begin_monotonic_ns) < left_ns)
			left_ns = capture->duration_ns - (now_monotonic_ns - begin_monotonic_ns);
		err = kind->capture_next(&capture->pin, &sequence, &instant, left_ns);
		if (!err) {
			take(capture, sequence, instant);
			capture->complete = capture->count && capture->seen >= (uint64_t)capture->count;
			if (capture->complete)
				return;
		} else if (err != -ETIMEDOUT && err != -EINTR) {
			capture->error = err;
			return;
		}
	}
}

static int run(struct capture *capture)
{
	const struct edge_pin_kind *kind = capture->pin.kind;
	struct edge_pin_counts counts;
	struct json json;
	bool counted;
	int err = kind->capture_next ? kind->capture_begin(&capture->pin) : -ENOTSUP;

	if (err) {
		fprintf(stderr, TOOL ": pin \"%s\": %s\n", capture->pin.text,
			err == -ENOTSUP ? "this pin, or its driver, captures no such edges" :
			err == -ENXIO	? "the clock has no such channel" :
					  strerror(-err));
		return EXIT_CAPABILITY;
	}
	json_init(&json, stdout);
	print_ready(&json, capture);
	capture_all(capture, &json);
	kind->capture_end(&capture->pin);
	counted = kind->counts && kind->counts(&capture->pin, &counts) == 0;
	if (print_result(&json, capture, counted ? &counts : NULL))
		return EXIT_CAPABILITY;
	return capture->complete && !capture->error ? EXIT_DONE : EXIT_INVALID;
}

int verb_capture(int argc, char **argv)
{
	struct capture capture = { .count = 0 };
	char error[2 * EDGE_PIN_ERROR_BYTES];
	const char *pin = NULL;
	int64_t duration_ms = 0, tai_utc_s = TAI_UTC_DEFAULT_S;
	const struct option options[] = {
		{ .name = "pin", .kind = OPTION_TEXT, .target = &pin, .argument = "PIN", .help = "the input" },
		{ .name = "count", .kind = OPTION_INT, .target = &capture.count, .min = 0, .max = INT64_C(1000000000),
		  .argument = "N", .help = "edges at most (default 0: however many)" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &duration_ms, .min = 0, .max = INT64_C(604800000),
		  .argument = "N", .help = "time at most (default 0: until SIGTERM)" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &tai_utc_s, .min = 0, .max = 1000, .argument = "N",
		  .help = "TAI - UTC where the kernel does not know it (default 37)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--pin PIN [--count N] [--duration-ms N] [--tai-utc-s N]",
		.about = "Note when the edges of an input come, in the clock that the pin has. The first 100000 are kept.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL), code, err;

	if (parsed < 0)
		return options_exit_code(parsed);
	if (!pin) {
		fputs(TOOL ": --pin is missing (see --help)\n", stderr);
		return EXIT_BAD_INPUT;
	}
	port_stop_install();
	capture.duration_ns = duration_ms * NS_PER_MS;
	capture.kept = calloc(KEPT_MAX, sizeof(*capture.kept));
	if (!capture.kept) {
		fputs(TOOL ": out of memory\n", stderr);
		return EXIT_CAPABILITY;
	}
	err = edge_pin_open(&capture.pin, pin, (int)tai_utc_s, error, sizeof(error));
	if (err)
		fprintf(stderr, TOOL ": --pin: %s\n", error);
	code = err ? edge_pin_exit_code(err) : run(&capture);
	edge_pin_close(&capture.pin);
	free(capture.kept);
	return code;
}
