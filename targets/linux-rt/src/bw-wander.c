/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-wander - make a clock wrong by an unknown, wandering frequency, as a real oscillator is
 *
 * All guests of a virtual bench share one oscillator: a client that lost its server would keep time by what is that very
 * server's oscillator. This program gives a server (or, with --phc, the clock of a network card) an error of its own: a base
 * frequency drawn at random, and a random walk. Each setting goes to stdout as NDJSON: the truth, for the report afterwards.
 * At its end, by SIGTERM, SIGINT or SIGHUP too, the former frequency is set again.
 *
 * With --steps-ms the frequency is left alone, and the clock is stepped instead, often, by what the error amounts to meanwhile.
 * QEMU's igb needs that: the time of its PHC jumps when its frequency is set, by all that it would have gained since power-up.
 * So does a clock whose frequency a servo sets: the error stays, whatever is set, as that of an oscillator does.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "base/json.h"
#include "base/time_units.h"
#include "config/options.h"
#include "port/port_frequency.h"
#include "port/port.h"
#include "port/port_wait.h"
#include "random_walk.h"

#define TOOL "bw-wander"
#define BASE_MAX_PPB 500000

enum { INTERVAL_DEFAULT_MS = 1000, SIMULATED_STEPS_MAX = 10000000 };

struct wander {
	const char *phc;
	int64_t base_max_ppb, base_ppb, walk_ppb, seed, interval_ms, duration_ms, steps_ms, simulate_steps;
	struct frequency_clock clock;
	double former_ppb;
	struct random_walk walk;
	struct json json;
	int64_t settings;
	int64_t stepped_at_monotonic_ns; /* --steps-ms: of the last step */
	double left_ns;                  /* and what was less than a nanosecond then */
};

static const char *clock_name(const struct wander *wander)
{
	return wander->phc ? wander->phc : "realtime";
}

static int log_ready(struct wander *wander)
{
	struct json *json = &wander->json;

	answer_begin(json, "ready", TOOL);
	json_string(json, "clock", clock_name(wander));
	json_int(json, "seed", wander->seed);
	json_int(json, "base_ppb_max", wander->base_max_ppb);
	json_int(json, "walk_ppb_per_sqrt_s", wander->walk_ppb);
	json_int(json, "interval_ms", wander->interval_ms);
	json_int(json, "steps_ms", wander->steps_ms);
	json_double(json, "former_ppb", wander->former_ppb);
	json_double(json, "base_ppb", wander->walk.base_ppb);
	return answer_end(json);
}

static int log_setting(struct wander *wander, bool simulated)
{
	struct json *json = &wander->json;
	struct port_tai tai;

	json_object_open(json, NULL);
	json_string(json, "type", "setting");
	if (!simulated) {
		/* TAI as this machine's own clock, which may be the one that wanders, has it. */
		port_tai_init(&tai, TAI_UTC_DEFAULT_S);
		json_int(json, "time_tai_ns", port_tai_now_ns(&tai));
		json_int(json, "monotonic_ns", port_clock_now_ns(PORT_CLOCK_MONOTONIC));
	}
	json_int(json, "number", wander->settings);
	json_double(json, "error_ppb", wander->walk.error_ppb);
	json_double(json, "frequency_ppb", wander->former_ppb + wander->walk.error_ppb);
	json_bool(json, "clipped", wander->walk.clipped);
	json_object_close(json);
	return json_line_end(json);
}

static int log_result(struct wander *wander, bool complete)
{
	struct json *json = &wander->json;
	double now_ppb;
	int err = frequency_get(&wander->clock, &now_ppb);

	answer_begin(json, "result", TOOL);
	json_bool(json, "complete", complete);
	json_int(json, "settings", wander->settings);
	if (err)
		json_null(json, "restored_ppb");
	else
		json_double(json, "restored_ppb", now_ppb);
	return answer_end(json);
}

/* Step the clock by what it has to have gained since the last step. Returns 0 or -errno. */
static int step_make(struct wander *wander)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	double passed_ns = (double)(now_monotonic_ns - wander->stepped_at_monotonic_ns);
	double gain_ns = wander->left_ns + wander->walk.error_ppb * passed_ns / 1e9;
	int64_t step_ns = (int64_t)gain_ns;

	wander->stepped_at_monotonic_ns = now_monotonic_ns;
	wander->left_ns = gain_ns - (double)step_ns;
	return step_ns ? frequency_clock_step(&wander->clock, step_ns) : 0;
}

/* Put what the walk says now into force, and log it. Returns 0 or -errno. */
static int setting_make(struct wander *wander)
{
	int err = 0;

	if (!wander->steps_ms)
		err = frequency_set(&wander->clock, wander->former_ppb + wander->walk.error_ppb);

	if (err)
		return err;
	err = log_setting(wander, false);
	wander->settings++;
	return err;
}

static void walk_begin(struct wander *wander)
{
	/* The former correction stands: what is added is the error. */
	double bound_ppb = wander->clock.max_ppb - (wander->former_ppb < 0 ? -wander->former_ppb : wander->former_ppb);

	random_walk_init(&wander->walk, (uint64_t)wander->seed, (double)wander->base_max_ppb, (double)wander->walk_ppb,
			 (double)wander->interval_ms / 1000.0, bound_ppb);
	random_walk_shift(&wander->walk, (double)wander->base_ppb);
}

static int simulate(struct wander *wander)
{
	int err;

	wander->clock = (struct frequency_clock){ .fd = -1, .max_ppb = BASE_MAX_PPB };
	walk_begin(wander);
	err = log_ready(wander);
	for (; !err && wander->settings < wander->simulate_steps; wander->settings++) {
		if (wander->settings)
			random_walk_step(&wander->walk);
		err = log_setting(wander, true);
	}
	return err;
}

/* Let the setting work until a time of CLOCK_MONOTONIC. Returns 0 or -errno; *ended: a signal to end came first. */
static int setting_keep(struct wander *wander, struct waiter *waiter, int64_t end_monotonic_ns, bool *ended)
{
	for (;;) {
		int64_t next_monotonic_ns =
			wander->steps_ms ? wander->stepped_at_monotonic_ns + wander->steps_ms * NS_PER_MS :
					   end_monotonic_ns;
		int64_t wake_monotonic_ns = next_monotonic_ns < end_monotonic_ns ? next_monotonic_ns : end_monotonic_ns;
		int event = waiter_wait(waiter, wake_monotonic_ns, NULL), err = 0;

		if (event < 0)
			return event;
		*ended = event == WAIT_END;
		if (wander->steps_ms)
			err = step_make(wander);
		if (err || *ended || next_monotonic_ns >= end_monotonic_ns)
			return err;
	}
}

/* Make settings until the end. Returns 0 or -errno; *complete: the duration has passed, no signal came. */
static int settings_run(struct wander *wander, struct waiter *waiter, bool *complete)
{
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	for (int64_t number = 1;; number++) {
		int64_t elapsed_ms = number * wander->interval_ms;
		bool last = wander->duration_ms && elapsed_ms >= wander->duration_ms, ended;
		int64_t until_monotonic_ns = begin_monotonic_ns + (last ? wander->duration_ms : elapsed_ms) * NS_PER_MS;
		int err = setting_keep(wander, waiter, until_monotonic_ns, &ended);

		if (err || ended)
			return err;
		if (last) {
			*complete = true;
			return 0;
		}
		random_walk_step(&wander->walk);
		err = setting_make(wander);
		if (err)
			return err;
	}
}

/* Make settings until the end, and set the former correction again. Returns 0 or -errno. */
static int clock_wander(struct wander *wander, struct waiter *waiter)
{
	bool complete = wander->duration_ms == 0; /* without an end a signal is the regular one */
	int err, restored;

	err = setting_make(wander);
	if (!err)
		err = settings_run(wander, waiter, &complete);
	restored = wander->steps_ms ? 0 : frequency_set(&wander->clock, wander->former_ppb);
	if (!err)
		err = restored;
	return err ? err : log_result(wander, complete);
}

static int wander_run(struct wander *wander)
{
	struct waiter waiter;
	int err = waiter_open(&waiter, false);

	wander->clock.fd = -1;
	if (!err)
		err = frequency_open(&wander->clock, wander->phc);
	if (!err)
		err = frequency_get(&wander->clock, &wander->former_ppb);
	if (!err) {
		walk_begin(wander);
		wander->stepped_at_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		err = log_ready(wander);
	}
	if (!err)
		err = clock_wander(wander, &waiter);
	frequency_close(&wander->clock);
	waiter_close(&waiter);
	return err;
}

int main(int argc, char **argv)
{
	struct wander wander = { .seed = -1, .interval_ms = INTERVAL_DEFAULT_MS };
	const struct option options[] = {
		{ "base-ppb-max", OPTION_INT, &wander.base_max_ppb, 0, BASE_MAX_PPB, "N",
		  "base error: uniform within plus or minus N ppb (0)", false },
		{ "base-ppb", OPTION_INT, &wander.base_ppb, -BASE_MAX_PPB, BASE_MAX_PPB, "N",
		  "a known base error of N ppb, beside what is drawn (0)", false },
		{ "walk-ppb-per-sqrt-s", OPTION_INT, &wander.walk_ppb, 0, 100000, "N",
		  "random walk: standard deviation after one second, in ppb (0)", false },
		{ "seed", OPTION_INT, &wander.seed, 0, INT64_MAX, "N", "repeat a run (default: a random seed, logged)", false },
		{ "interval-ms", OPTION_INT, &wander.interval_ms, 10, 3600000, "N", "between two settings (1000)", false },
		{ "duration-ms", OPTION_INT, &wander.duration_ms, 0, INT64_C(1000000000000), "N",
		  "end after N ms; 0: at SIGTERM (0)", false },
		{ "phc", OPTION_TEXT, &wander.phc, 0, 0, "PATH", "the clock of a network card, not CLOCK_REALTIME", false },
		{ "steps-ms", OPTION_INT, &wander.steps_ms, 0, 1000, "N",
		  "step the clock every N ms instead of setting its frequency; 0: set it (0)", false },
		{ "simulate-steps", OPTION_INT, &wander.simulate_steps, 0, SIMULATED_STEPS_MAX, "N",
		  "only print N settings; touch no clock", false },
		{ 0 },
	};
	const struct command command = {
		TOOL, "--base-ppb-max N --walk-ppb-per-sqrt-s N [options]",
		"Makes CLOCK_REALTIME wrong by a random frequency that wanders, and logs each setting as NDJSON.\n"
		"The error is added to the correction found; SIGTERM ends it, and the former correction is set again.\n"
		"ppb positive: the clock runs fast. Exit codes: 0 done, 2 bad input, 3 not permitted or no such clock.\n",
		options, 0, 0,
	};
	int parsed = options_parse(&command, argc, argv, NULL);
	int err;

	if (parsed < 0)
		return options_exit_code(parsed);
	err = wander.seed < 0 ? port_seed_draw(&wander.seed) : 0;
	if (err) {
		fprintf(stderr, TOOL ": no random seed: %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	json_init(&wander.json, stdout);
	err = wander.simulate_steps ? simulate(&wander) : wander_run(&wander);
	if (err) {
		fprintf(stderr, TOOL ": %s: %s\n", clock_name(&wander), strerror(-err));
		return EXIT_CAPABILITY;
	}
	return EXIT_DONE;
}
