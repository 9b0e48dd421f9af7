/* SPDX-License-Identifier: Apache-2.0 */
/* The verb output: a pulse at an instant, or periodic ones until the process is told to end; then the pin is off. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "edge/edge_verbs.h"
#include "base/json.h"
#include "base/time_units.h"
#include "config/options.h"
#include "edge/pins/pin.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "edge/method/read_filter.h"
#include "edge/method/software_edge.h"
#include "clock/card/ticks.h"

#define TOOL "bw-edge output"
#define TICK_NS (20 * NS_PER_MS)
#define COUNT_TIMEOUT_NS (2 * NS_PER_S) /* after the instant */
#define PERIOD_MIN_NS INT64_C(20000)
#define SOFTWARE_PERIOD_MIN_NS INT64_C(500000)
#define FAR_NS (100 * NS_PER_S)

enum { BRACKETS = 16, AT_NONE = -1 };

struct output {
	struct edge_pin pin;
	struct port_tai tai;
	int64_t at_clock_ns, start_clock_ns; /* of the pin's clock, of TAI where it counts ticks; AT_NONE: periodic */
	int64_t period_ns, duration_ns;
	uint64_t hz;
	bool by_software;
	uint64_t made, late; /* by software */
	const char *reason;
	bool complete;
};

/* ---- one pulse --------------------------------------------------------------------------------------------------- */

/* Instant of TAI as a count: by the shortest of some brackets. */
static uint64_t ticks_at(const struct output *output, int64_t tai_ns)
{
	uint64_t shortest = UINT64_MAX, middle = 0;
	int64_t seen_tai_ns = 0;

	for (int i = 0; i < BRACKETS; i++) {
		uint64_t before, after;
		int64_t now_tai_ns = ticks_bracket(&output->tai, &before, &after);

		if (after - before < shortest) {
			shortest = after - before;
			middle = read_filter_middle(before, after);
			seen_tai_ns = now_tai_ns;
		}
	}
	return middle + (uint64_t)(int64_t)((double)(tai_ns - seen_tai_ns) * (double)output->hz * 1e-9);
}

/* Time that is left, by the clock that the instant is of. */
static int until_pulse(const struct output *output, int64_t *left_ns)
{
	int64_t now_clock_ns = 0;
	int err = 0;

	if (output->pin.kind->now_clock_ns)
		err = output->pin.kind->now_clock_ns(&output->pin, &now_clock_ns);
	else
		now_clock_ns = port_tai_now_ns(&output->tai);
	*left_ns = output->at_clock_ns - now_clock_ns;
	return err;
}

/* Wait until the pulse has been made. What counts its pulses says so; for all else its instant has to pass. */
static int await_pulse(struct output *output)
{
	struct edge_pin_counts counts;
	int64_t end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + COUNT_TIMEOUT_NS, left_ns;
	int err = until_pulse(output, &left_ns);

	if (left_ns > 0 && left_ns < FAR_NS)
		end_monotonic_ns += left_ns;
	while (!err && !port_stop_requested() && port_clock_now_ns(PORT_CLOCK_MONOTONIC) < end_monotonic_ns) {
		port_sleep_ns(TICK_NS);
		if (!output->pin.kind->counts) {
			err = until_pulse(output, &left_ns);
			output->complete = !err && left_ns < -TICK_NS;
			if (output->complete)
				return 0;
		} else if (output->pin.kind->counts(&output->pin, &counts) == 0 && (counts.fired || counts.not_fired)) {
			output->complete = true;
			if (!counts.fired)
				output->reason = "the instant had passed";
			return 0;
		}
	}
	output->reason = port_stop_requested() ? "ended before the instant" : "no edge came";
	return err;
}

/* By software, of TAI. */
static int make_pulse_by_software(struct output *output)
{
	int err = output->pin.kind->set ? output->pin.kind->set(&output->pin, false, NULL, NULL) : -ENOTSUP;

	if (err)
		return err;
	output->by_software = true;
	err = software_edge_make(&output->pin, &output->tai, output->hz, output->at_clock_ns,
				 SOFTWARE_EDGE_PULSE_NS * 4, SOFTWARE_EDGE_LEAD_MAX_NS);
	if (err && err != -ETIME && err != -EINTR)
		return err;
	if (err == -ETIME)
		output->reason = "the instant had passed";
	else if (err == -EINTR)
		output->reason = "ended before the instant";
	else
		output->made++;
	output->complete = err != -EINTR;
	return 0;
}

static int make_pulse(struct output *output)
{
	int64_t instant = output->pin.axis == EDGE_AXIS_COUNTER ? (int64_t)ticks_at(output, output->at_clock_ns) :
								  output->at_clock_ns;
	int64_t left_ns;
	int err;

	if (!output->pin.kind->counts && output->pin.kind->now_clock_ns) {
		err = until_pulse(output, &left_ns);
		if (err || left_ns <= 0) {
			/* Drivers differ in what they do with an instant in the past: give them none. */
			output->reason = "the instant had passed";
			output->complete = true;
			return err;
		}
	}
	err = output->pin.kind->fire_at ? output->pin.kind->fire_at(&output->pin, instant) : -ENOTSUP;
	if (err == -ENOTSUP)
		return make_pulse_by_software(output);
	return err ? err : await_pulse(output);
}

/* ---- periodic pulses --------------------------------------------------------------------------------------------- */

static bool is_over(struct output *output, int64_t end_monotonic_ns)
{
	if (output->duration_ns && port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= end_monotonic_ns)
		output->complete = true;
	else if (port_stop_requested())
		output->complete = !output->duration_ns;
	else
		return false;
	return true;
}

/* By software, of TAI. Where wake-ups come too late, it is awake earlier from then on: some machines know no others. */
static int make_periodic(struct output *output, int64_t end_monotonic_ns)
{
	int64_t now_tai_ns = port_tai_now_ns(&output->tai) + NS_PER_MS, at_tai_ns = output->start_clock_ns;
	int64_t lead_ns = software_edge_lead_ns(output->period_ns);
	int err = 0;

	if (at_tai_ns < now_tai_ns)
		at_tai_ns += (now_tai_ns - at_tai_ns + output->period_ns - 1) / output->period_ns * output->period_ns;
	while (!err && !is_over(output, end_monotonic_ns)) {
		err = software_edge_make(&output->pin, &output->tai, output->hz, at_tai_ns, output->period_ns, lead_ns);
		if (err == -ETIME) {
			output->late++;
			lead_ns = software_edge_longer_lead_ns(lead_ns, output->period_ns);
		} else if (!err) {
			output->made++;
		}
		if (err == -ETIME || err == -EINTR)
			err = 0;
		at_tai_ns += output->period_ns;
	}
	return err;
}

/* Begin. What no pin makes by itself software makes, if it can set it. */
static int begin_periodic(struct output *output)
{
	const struct edge_pin_kind *kind = output->pin.kind;
	int err = kind->periodic ? kind->periodic(&output->pin, output->start_clock_ns, output->period_ns) : -ENOTSUP;

	if (err != -ENOTSUP || !kind->set)
		return err;
	output->by_software = true;
	return output->period_ns < SOFTWARE_PERIOD_MIN_NS ? -EINVAL : kind->set(&output->pin, false, NULL, NULL);
}

static int run_periodic(struct output *output)
{
	int64_t end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + output->duration_ns;

	if (output->by_software)
		return make_periodic(output, end_monotonic_ns);
	while (!is_over(output, end_monotonic_ns))
		port_sleep_ns(TICK_NS);
	return 0;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static void print_ready(struct json *json, const struct output *output)
{
	answer_begin(json, "ready", TOOL);
	json_string(json, "pin", output->pin.text);
	if (output->at_clock_ns == AT_NONE) {
		json_int(json, "start_ns", output->start_clock_ns);
		json_int(json, "period_ns", output->period_ns);
	} else {
		json_int(json, "at_ns", output->at_clock_ns);
	}
	answer_end(json);
}

static int print_result(struct json *json, struct output *output)
{
	struct edge_pin_counts counts;
	bool counted = output->pin.kind->counts && output->pin.kind->counts(&output->pin, &counts) == 0;

	answer_result(json, TOOL);
	answer_valid_unless(json, output->complete, output->reason);
	json_string(json, "pin", output->pin.text);
	if (output->by_software) {
		json_uint(json, "fired", output->made);
		json_uint(json, "not_fired", output->late);
	} else if (counted) {
		json_uint(json, "fired", counts.fired);
		json_uint(json, "not_fired", counts.not_fired);
	} else {
		json_null(json, "fired");
		json_null(json, "not_fired");
	}
	return answer_end(json);
}

static const char *failure(int err)
{
	switch (err) {
	case -ENOTSUP:
		return "this pin, or its driver, makes no such edges";
	case -EINVAL:
		return "the pin cannot make edges at these instants";
	case -ENXIO:
		return "the clock has no such channel";
	case -EAGAIN:
		return "the device is behind";
	default:
		return strerror(-err);
	}
}

static int run(struct output *output)
{
	const struct edge_pin_kind *kind = output->pin.kind;
	bool is_periodic = output->at_clock_ns == AT_NONE;
	struct json json;
	int err = 0;

	json_init(&json, stdout);
	if (is_periodic)
		err = begin_periodic(output);
	if (!err) {
		print_ready(&json, output);
		err = is_periodic ? run_periodic(output) : make_pulse(output);
	}
	if (err) {
		fprintf(stderr, TOOL ": pin \"%s\": %s\n", output->pin.text, failure(err));
		return err == -EINVAL ? EXIT_BAD_INPUT : EXIT_CAPABILITY;
	}
	err = print_result(&json, output);
	if (kind->stop)
		kind->stop(&output->pin);
	if (err)
		return EXIT_CAPABILITY;
	return output->complete && !output->reason ? EXIT_DONE : EXIT_INVALID;
}

/* What was asked for. Return 0 or an exit code. */
static int check(struct output *output, const char *pin, bool periodic, const char *start)
{
	char error[2 * EDGE_PIN_ERROR_BYTES];
	int err;

	if (!pin || periodic == (output->at_clock_ns != AT_NONE)) {
		fputs(pin ? TOOL ": either --periodic or --at-ns (see --help)\n" : TOOL ": --pin is missing (see --help)\n", stderr);
		return EXIT_BAD_INPUT;
	}
	if (periodic && output->period_ns == 0) {
		fputs(TOOL ": --period-ns is missing (see --help)\n", stderr);
		return EXIT_BAD_INPUT;
	}
	/* next: the full periods of the pin's clock, of which the past ones are left out */
	output->start_clock_ns = output->period_ns;
	if (strcmp(start, "next") != 0 && option_parse_int(start, 0, INT64_MAX / 2, &output->start_clock_ns)) {
		fprintf(stderr, TOOL ": --start-ns: must be next or a number of ns, found \"%s\"\n", start);
		return EXIT_BAD_INPUT;
	}
	err = edge_pin_open(&output->pin, pin, output->tai.tai_utc_s, error, sizeof(error));
	if (err) {
		fprintf(stderr, TOOL ": --pin: %s\n", error);
		return edge_pin_exit_code(err);
	}
	output->hz = output->pin.counter_hz ? output->pin.counter_hz : ticks_hz();
	return 0;
}

int verb_output(int argc, char **argv)
{
	struct output output = { .at_clock_ns = AT_NONE };
	const char *pin = NULL, *start = "next";
	int64_t duration_ms = 0, tai_utc_s = TAI_UTC_DEFAULT_S;
	bool periodic = false;
	const struct option options[] = {
		{ .name = "pin", .kind = OPTION_TEXT, .target = &pin, .argument = "PIN", .help = "the output" },
		{ .name = "at-ns", .kind = OPTION_INT, .target = &output.at_clock_ns, .min = 0,
		  .max = INT64_MAX / 2, .argument = "N",
		  .help = "one pulse at this instant of the pin's clock; of TAI where the pin counts ticks" },
		{ .name = "periodic", .kind = OPTION_FLAG, .target = &periodic, .help = "pulses until SIGTERM" },
		{ .name = "start-ns", .kind = OPTION_TEXT, .target = &start, .argument = "N|next",
		  .help = "instant of one of them (default next: full periods of the pin's clock)" },
		{ .name = "period-ns", .kind = OPTION_INT, .target = &output.period_ns, .min = PERIOD_MIN_NS, .max = 3600 * NS_PER_S,
		  .argument = "N", .help = "from pulse to pulse" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &duration_ms, .min = 1, .max = INT64_C(604800000),
		  .argument = "N", .help = "periodic: how long (default: until SIGTERM)" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &tai_utc_s, .min = 0, .max = 1000, .argument = "N",
		  .help = "TAI - UTC where the kernel does not know it (default 37)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--pin PIN --at-ns N | --pin PIN --periodic --period-ns N [--start-ns N|next] [--duration-ms N]",
		.about = "Make a pulse at an instant, or periodic ones; the pin is off at the end.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL), code;

	if (parsed < 0)
		return options_exit_code(parsed);
	port_stop_install();
	output.duration_ns = duration_ms * NS_PER_MS;
	port_tai_init(&output.tai, (int)tai_utc_s);
	code = check(&output, pin, periodic, start);
	if (!code)
		code = run(&output);
	edge_pin_close(&output.pin);
	return code;
}
