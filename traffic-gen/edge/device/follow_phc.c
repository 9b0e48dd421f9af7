/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb follow-phc, in a guest of the virtual bench: the firmware of its edge device. It tells the device the guest's
 * PTP hardware clock, as a line over the guest's counter, and once the offset of the host's counter.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/json.h"
#include "clock/card/card.h"
#include "config/options.h"
#include "edge/device/mapping.h"
#include "edge/device/phc_fit.h"
#include "edge/edge_verbs.h"
#include "port/port.h"
#include "port/port_clock.h"

#define TOOL "bw-edge follow-phc"
#define PERIOD_NS INT64_C(50000000)
#define READY_TIMEOUT_NS INT64_C(20000000000)
#define RESIDUAL_MAX_NS INT64_C(100000000)
#define KEEP_FACTOR 4 /* a stored calibration stays unless the new one is this much better */

enum { BURST = 12 };

struct follower {
	const char *phc_path, *page_path;
	struct port_phc *phc;
	struct edge_mapping mapping;
	struct card card;
	struct phc_fit fit;
	struct histogram *residuals;
	int64_t calibration_bound_ns;
	bool calibration_kept;
	uint64_t failures; /* readings of the PHC that failed */
	bool ready;
	const char *reason; /* why it ended by itself */
};

static int open_all(struct follower *follower)
{
	char error[EDGE_ERROR_BYTES];
	int err = port_phc_open(follower->phc_path, &follower->phc);

	if (err) {
		fprintf(stderr, TOOL ": %s: %s\n", follower->phc_path,
			err == -ENOTSUP ? "this system has no PTP hardware clocks" :
			err == -ENOTTY  ? "no PTP hardware clock" :
					  strerror(-err));
		return err;
	}
	err = edge_mapping_open(&follower->mapping, follower->page_path, error, sizeof(error));
	if (!err)
		err = card_open(&follower->card, follower->page_path, error, sizeof(error));
	if (!err) {
		err = port_page_lock(&follower->mapping.page, EDGE_LOCK_FOLLOW, 0);
		if (err)
			snprintf(error, sizeof(error), "another process follows a PHC for this device");
	}
	if (err)
		fprintf(stderr, TOOL ": %s\n", error);
	return err;
}

static int64_t ticks_ns(const struct follower *follower, uint64_t ticks)
{
	return (int64_t)((double)ticks * 1e9 / (double)follower->mapping.counter_hz) + 1;
}

/* Calibrate, and store the offset. One that is there already and does not differ stays: the axis of edges must not move. */
static int calibrate(struct follower *follower)
{
	struct edge_calibration *stored = &follower->mapping.registers->calibration;
	struct calibration now, before = { 0 };
	int err = card_calibrate_well(&follower->card, &now);

	if (err)
		return err;
	follower->calibration_kept = edge_calibration_read(stored, &before.offset, &before.bound) == 0 &&
				     before.bound / KEEP_FACTOR <= now.bound && !calibration_differs(&before, &now);
	if (follower->calibration_kept)
		now = before;
	else
		edge_calibration_write(stored, now.offset, now.bound);
	follower->calibration_bound_ns = ticks_ns(follower, now.bound);
	return 0;
}

/* Whether the counters still are as far apart. Asked at the end only: it takes the CPU from what is measured. */
static void check_calibration(struct follower *follower)
{
	struct calibration stored = { 0 }, now;

	if (edge_calibration_read(&follower->mapping.registers->calibration, &stored.offset, &stored.bound) != 0 ||
	    card_calibrate(&follower->card, CARD_TRIAL_NS, &now) != 0)
		follower->reason = "the offset of the counters could not be checked at the end: nobody answers";
	else if (calibration_differs(&stored, &now))
		follower->reason = "the offset of the counters changed";
}

static void burst(struct follower *follower)
{
	for (int i = 0; i < BURST; i++) {
		int64_t phc_ns = 0;
		uint64_t before = port_counter_read();
		int err = port_phc_now_ns(follower->phc, &phc_ns);
		uint64_t after = port_counter_read();

		if (err || phc_fit_take(&follower->fit, before, phc_ns, after))
			follower->failures++;
	}
}

static void print_ready(struct json *json, const struct follower *follower)
{
	answer_begin(json, "ready", TOOL);
	json_string(json, "phc", follower->phc_path);
	json_uint(json, "counter_hz", follower->mapping.counter_hz);
	json_int(json, "calibration_bound_ns", follower->calibration_bound_ns);
	answer_end(json);
}

static void follow(struct follower *follower, struct json *json)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), next_monotonic_ns = now_monotonic_ns;
	int64_t deadline_monotonic_ns = now_monotonic_ns + READY_TIMEOUT_NS;
	uint64_t served = atomic_load(&follower->mapping.registers->served);

	while (!port_stop_requested()) {
		struct card_line line;

		burst(follower);
		if (phc_fit_line(&follower->fit, &line) == 0) {
			card_posting_write(&follower->mapping.registers->phc_line, &line);
			if (!follower->ready)
				print_ready(json, follower);
			follower->ready = true;
		}
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		if (!follower->ready && now_monotonic_ns > deadline_monotonic_ns) {
			follower->reason = "the PHC shows no straight line";
			return;
		}
		if (atomic_load(&follower->mapping.registers->served) != served) {
			follower->reason = "the edge device was started anew";
			return;
		}
		next_monotonic_ns += PERIOD_NS;
		if (next_monotonic_ns < now_monotonic_ns)
			next_monotonic_ns = now_monotonic_ns; /* this machine stalled */
		port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, next_monotonic_ns);
	}
}

static int print_result(struct json *json, const struct follower *follower, bool complete)
{
	const struct phc_fit *fit = &follower->fit;
	const char *reason = follower->reason ? follower->reason : "ended before there was a line";

	answer_result(json, TOOL);
	answer_valid_unless(json, complete, complete ? NULL : reason);
	json_string(json, "phc", follower->phc_path);
	json_uint(json, "samples", fit->taken);
	json_uint(json, "failures", follower->failures);
	json_uint(json, "published", fit->published);
	json_uint(json, "restarts", fit->restarts);
	json_double(json, "rate_ppb", fit->fitted ? (fit->rate / fit->ns_per_tick - 1) * 1e9 : 0);
	json_double(json, "deviation_ns", fit->fitted ? fit->deviation_ns : 0);
	summary_histogram(json, "residual_ns", follower->residuals);
	json_int(json, "calibration_bound_ns", follower->calibration_bound_ns);
	json_bool(json, "calibration_kept", follower->calibration_kept);
	return answer_end(json);
}

static int run(struct follower *follower)
{
	struct json json;
	bool complete;
	int err = open_all(follower);

	if (err)
		return EXIT_CAPABILITY;
	json_init(&json, stdout);
	phc_fit_init(&follower->fit, 1e9 / (double)follower->mapping.counter_hz, follower->residuals);
	if (calibrate(follower))
		follower->reason = "the timecard cannot be calibrated: nobody answers";
	else
		follow(follower, &json);
	if (follower->ready && !follower->reason)
		check_calibration(follower);
	complete = follower->ready && !follower->reason;
	if (print_result(&json, follower, complete))
		return EXIT_CAPABILITY;
	return complete ? EXIT_DONE : EXIT_INVALID;
}

int verb_follow_phc(int argc, char **argv)
{
	struct follower *follower = calloc(1, sizeof(*follower));
	const char *phc = NULL, *page = NULL;
	const struct option options[] = {
		{ .name = "phc", .kind = OPTION_TEXT, .target = &phc, .argument = "/dev/ptpN", .help = "the clock" },
		{ .name = "page", .kind = OPTION_TEXT, .target = &page, .argument = "PATH",
		  .help = "the shared page (default: the ivshmem device)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--phc /dev/ptpN [--page PATH]",
		.about = "In a guest of the virtual bench: tell its edge device the PTP hardware clock, until SIGTERM.\n"
			 "Needs bw-edge serve and bw-clock card serve on the host.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL), code = EXIT_BAD_INPUT;

	if (parsed < 0) {
		free(follower);
		return options_exit_code(parsed);
	}
	if (follower)
		follower->residuals = histogram_create(-RESIDUAL_MAX_NS, RESIDUAL_MAX_NS);
	if (!phc) {
		fputs(TOOL ": --phc is missing (see --help)\n", stderr);
	} else if (!follower || !follower->residuals) {
		fputs(TOOL ": out of memory\n", stderr);
		code = EXIT_CAPABILITY;
	} else {
		follower->phc_path = phc;
		follower->page_path = page;
		port_stop_install();
		code = run(follower);
		card_close(&follower->card);
		edge_mapping_close(&follower->mapping);
		port_phc_close(follower->phc);
	}
	if (follower)
		histogram_destroy(follower->residuals);
	free(follower);
	return code;
}
