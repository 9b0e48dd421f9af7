/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs card publish and card calibrate, in a guest. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "clock/card/card.h"
#include "clock/clock_verbs.h"
#include "base/json.h"
#include "base/time_units.h"
#include "config/options.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "clock/card/sampler.h"
#include "clock/card/ticks.h"

#define PUBLISH_TOOL "bw-clock card publish"
#define CALIBRATE_TOOL "bw-clock card calibrate"
#define PERIOD_NS (10 * NS_PER_MS)
#define CHECK_NS INT64_C(10000000000) /* between checks of the calibration */
#define CHECK_TRIAL_NS (5 * NS_PER_MS)

enum { BURST = 5, TRIALS_MAX = 100000 };

static int open_page(const char *tool, struct card *card, const char *path)
{
	char error[CARD_ERROR_BYTES];
	int err = card_open(card, path, error, sizeof(error));

	if (err)
		fprintf(stderr, "%s: %s\n", tool, error);
	return err;
}

static void print_ready(struct json *json, const char *tool, const struct card *card)
{
	answer_begin(json, "ready", tool);
	json_string(json, "unit", card->scale.nanoseconds ? "ns" : "ticks");
	json_uint(json, "counter_hz", card->scale.hz);
	answer_end(json);
}

/* ---- publish ----------------------------------------------------------------------------------------------------- */

struct publisher {
	struct card card;
	struct port_tai tai;
	struct sampler sampler;
	int64_t bound_max_ns;
	uint64_t published;
	const char *reason; /* why it ended by itself */
};

/* Publish this machine's TAI as a line over the host's counter. */
static int publish_once(struct publisher *publisher)
{
	struct card *card = &publisher->card;
	struct card_line line = { .unit = card->unit, .tai_utc_s = publisher->tai.tai_utc_s, .source = "guest" };
	int err;

	for (int i = 0; i < BURST; i++) {
		uint64_t before, after;
		int64_t tai_ns = ticks_bracket(&publisher->tai, &before, &after);

		before = counter_scale_units(&card->scale, before) + card->calibration.offset;
		/* The reading may be up to the counter's resolution before its instant. */
		after = counter_scale_units(&card->scale, after) + card->calibration.offset + card->scale.resolution;
		sampler_take(&publisher->sampler, before, tai_ns, after, 0);
	}
	err = sampler_line(&publisher->sampler, &line);
	if (err)
		return err;
	line.bound_ns += card_calibration_bound_ns(card);
	if (line.bound_ns > publisher->bound_max_ns)
		publisher->bound_max_ns = line.bound_ns;
	card_posting_write(&card->page->guest_line, &line);
	publisher->published++;
	return 0;
}

static bool calibration_holds(struct publisher *publisher)
{
	struct calibration check;

	if (card_calibrate(&publisher->card, CHECK_TRIAL_NS, &check)) {
		publisher->reason = "nobody answers calibrations any more";
		return false;
	}
	if (calibration_differs(&publisher->card.calibration, &check)) {
		publisher->reason = "the counter's offset changed";
		return false;
	}
	return true;
}

/* Publish until the end. A server that is away for a while is waited for: its readers see a stale line meanwhile. */
static void publish_all(struct publisher *publisher, int64_t end_monotonic_ns)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	int64_t next_monotonic_ns = now_monotonic_ns, check_monotonic_ns = now_monotonic_ns + CHECK_NS;

	while (!port_stop_requested() && now_monotonic_ns < end_monotonic_ns) {
		publish_once(publisher);
		if (now_monotonic_ns >= check_monotonic_ns) {
			if (!calibration_holds(publisher))
				return;
			check_monotonic_ns = now_monotonic_ns + CHECK_NS;
		}
		next_monotonic_ns += PERIOD_NS;
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		if (next_monotonic_ns < now_monotonic_ns)
			next_monotonic_ns = now_monotonic_ns; /* this machine stalled */
		port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, next_monotonic_ns);
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	}
}

static int print_published(struct json *json, const struct publisher *publisher, bool complete)
{
	answer_result(json, PUBLISH_TOOL);
	answer_valid_unless(json, complete, publisher->reason);
	json_uint(json, "published", publisher->published);
	json_uint(json, "steps", publisher->sampler.steps);
	json_int(json, "bound_max_ns", publisher->bound_max_ns);
	json_int(json, "calibration_bound_ns", card_calibration_bound_ns(&publisher->card));
	json_int(json, "tai_utc_s", publisher->tai.tai_utc_s);
	return answer_end(json);
}

static int run_publisher(struct publisher *publisher, int64_t duration_ms)
{
	struct card *card = &publisher->card;
	int64_t end_monotonic_ns = INT64_MAX;
	bool complete;
	struct json json;

	if (port_page_lock(&card->mapping, CARD_LOCK_PUBLISH, 0)) {
		fputs(PUBLISH_TOOL ": another process publishes on this page\n", stderr);
		return EXIT_CAPABILITY;
	}
	if (sampler_init(&publisher->sampler, counter_scale_ns_per_unit(&card->scale))) {
		fputs(PUBLISH_TOOL ": out of memory\n", stderr);
		return EXIT_CAPABILITY;
	}
	json_init(&json, stdout);
	if (card_calibrate_well(card, &card->calibration)) {
		publisher->reason = "the timecard cannot be calibrated: nobody answers";
		print_published(&json, publisher, false);
		return EXIT_INVALID;
	}
	print_ready(&json, PUBLISH_TOOL, card);
	if (duration_ms)
		end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + duration_ms * NS_PER_MS;
	publish_all(publisher, end_monotonic_ns);
	complete = !publisher->reason && (duration_ms == 0 || !port_stop_requested());
	if (print_published(&json, publisher, complete))
		return EXIT_CAPABILITY;
	return complete ? EXIT_DONE : EXIT_INVALID;
}

int card_publish(int argc, char **argv)
{
	struct publisher publisher = { .reason = NULL };
	const char *path = NULL;
	int64_t duration_ms = 0, tai_utc_s = TAI_UTC_DEFAULT_S;
	const struct option options[] = {
		{ .name = "page", .kind = OPTION_TEXT, .target = &path, .argument = "PATH",
		  .help = "the shared page (default: the ivshmem device)" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &duration_ms, .min = 0, .max = INT64_C(604800000),
		  .argument = "N", .help = "how long (default 0: until SIGTERM)" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &tai_utc_s, .min = 0, .max = 1000,
		  .argument = "N", .help = "TAI - UTC where the kernel does not know it (default 37)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = PUBLISH_TOOL,
		.usage = "[--page PATH] [--duration-ms N]",
		.about = "In a guest: publish this machine's own TAI on its page, every 10 ms a line with its bound.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL), code;

	if (parsed < 0)
		return options_exit_code(parsed);
	port_tai_init(&publisher.tai, (int)tai_utc_s);
	port_stop_install();
	if (open_page(PUBLISH_TOOL, &publisher.card, path))
		return EXIT_CAPABILITY;
	code = run_publisher(&publisher, duration_ms);
	sampler_release(&publisher.sampler);
	card_close(&publisher.card);
	return code;
}

/* ---- calibrate --------------------------------------------------------------------------------------------------- */

static int64_t to_ns(const struct card *card, uint64_t units)
{
	return (int64_t)((double)units * counter_scale_ns_per_unit(&card->scale) + 0.999);
}

static int print_trials(struct json *json, const struct card *card, const struct calibration *trials, int64_t done,
			const char *reason, bool complete)
{
	answer_result(json, CALIBRATE_TOOL);
	answer_valid_unless(json, complete, reason);
	json_string(json, "unit", card->scale.nanoseconds ? "ns" : "ticks");
	json_uint(json, "counter_hz", card->scale.hz);
	json_array_open(json, "trials");
	for (int64_t i = 0; i < done; i++) {
		json_array_open(json, NULL);
		json_int(json, NULL, (int64_t)trials[i].offset);
		json_int(json, NULL, to_ns(card, trials[i].bound));
		json_int(json, NULL, to_ns(card, trials[i].round_trip));
		json_array_close(json);
	}
	json_array_close(json);
	return answer_end(json);
}

static int run_trials(struct card *card, int64_t count, int64_t trial_ms)
{
	struct calibration *trials = calloc((size_t)count, sizeof(*trials));
	const char *reason = NULL;
	int64_t done = 0;
	struct json json;
	int code;

	if (!trials) {
		fputs(CALIBRATE_TOOL ": out of memory\n", stderr);
		return EXIT_CAPABILITY;
	}
	json_init(&json, stdout);
	print_ready(&json, CALIBRATE_TOOL, card);
	while (done < count && !reason && !port_stop_requested()) {
		if (card_calibrate(card, trial_ms * NS_PER_MS, &trials[done]))
			reason = "the timecard cannot be calibrated: nobody answers";
		else if (done && calibration_differs(&trials[0], &trials[done]))
			reason = "the counter's offset changed between the trials";
		done += reason == NULL;
	}
	code = done == count ? EXIT_DONE : EXIT_INVALID;
	if (print_trials(&json, card, trials, done, reason, done == count))
		code = EXIT_CAPABILITY;
	free(trials);
	return code;
}

int card_trials(int argc, char **argv)
{
	const char *path = NULL;
	int64_t count = 10, trial_ms = CARD_TRIAL_NS / NS_PER_MS;
	const struct option options[] = {
		{ .name = "page", .kind = OPTION_TEXT, .target = &path, .argument = "PATH",
		  .help = "the shared page (default: the ivshmem device)" },
		{ .name = "trials", .kind = OPTION_INT, .target = &count, .min = 1, .max = TRIALS_MAX,
		  .argument = "N", .help = "how many (default 10)" },
		{ .name = "trial-ms", .kind = OPTION_INT, .target = &trial_ms, .min = 0, .max = 60000,
		  .argument = "N", .help = "time of each (default 20); 0: one exchange" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = CALIBRATE_TOOL,
		.usage = "[--page PATH] [--trials N] [--trial-ms N]",
		.about = "In a guest: the offset of the host's counter to this machine's, trial by trial, with its bound.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL), code;
	struct card card;

	if (parsed < 0)
		return options_exit_code(parsed);
	port_stop_install();
	if (open_page(CALIBRATE_TOOL, &card, path))
		return EXIT_CAPABILITY;
	code = run_trials(&card, count, trial_ms);
	card_close(&card);
	return code;
}
