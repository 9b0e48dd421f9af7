/* SPDX-License-Identifier: Apache-2.0 */
/* The loops: no allocation, no output, no lock; each wait has an end. */
#include "edge/method/methods.h"

#include <errno.h>
#include <string.h>

#include "base/time_units.h"
#include "edge/method/read_filter.h"
#include "edge/device/registers.h"
#include "edge/method/software_edge.h"

#define PROGRAM_LEAD_MAX_NS (5 * NS_PER_MS)
#define RENEW_NS (100 * NS_PER_MS)
#define SETTLE_NS (5 * NS_PER_MS)       /* between the readings of the beginning */
#define FIRST_EDGE_NS (150 * NS_PER_MS) /* from the end of the preparation */
#define STEP_NS INT64_C(50000)
#define LATCH_TIMEOUT_NS (3 * NS_PER_S)
#define PREDICT_SPAN_NS (2 * NS_PER_S)
#define AGE_PHC_NS (2 * NS_PER_S)
#define AGE_CLOCK_NS (250 * NS_PER_MS)  /* its rate is changed by whoever disciplines it */
#define AGE_MAX_NS (10 * NS_PER_S)
#define END_NS (20 * NS_PER_MS)         /* until the device has counted it */

enum { SETTLE_READS = 40, LATCHES_MIN = 8, AGE_PERIODS = 8, LATCHED_AHEAD_MAX = 500 };

static int64_t ticks_of(const struct edge_run *run, int64_t ns)
{
	return correlation_scale(ns, (int64_t)run->clock.hz, NS_PER_S);
}

static int64_t ns_of(const struct edge_run *run, int64_t ticks)
{
	return correlation_scale(ticks, NS_PER_S, (int64_t)run->clock.hz);
}

static int64_t edge_clock_ns(const struct edge_run *run, int64_t k)
{
	return run->start_clock_ns + k * run->period_ns;
}

/* The first instant of the grid that is not before a moment. */
static int64_t on_grid(const struct edge_run *run, int64_t clock_ns)
{
	int64_t off = (clock_ns - run->grid_clock_ns) % run->period_ns;

	return off == 0 ? clock_ns : off < 0 ? clock_ns - off : clock_ns + run->period_ns - off;
}

static bool has_passed(uint64_t ticks)
{
	return (int64_t)(port_counter_after() - ticks) >= 0;
}

/* ---- readings ---------------------------------------------------------------------------------------------------- */

static int renew(struct edge_run *run)
{
	uint64_t ticks;
	int64_t clock_ns;
	int err = filtered_clock_read(&run->clock, &ticks, &clock_ns);

	if (!err)
		correlation_add(&run->correlation, ticks, clock_ns);
	return err;
}

/* Choose the threshold, and find offset and rate. */
static int correlate(struct edge_run *run, int64_t age_ns)
{
	int64_t periods_ns = AGE_PERIODS * run->period_ns;
	int err = filtered_clock_warm_up(&run->clock, run->filter_percent);

	if (age_ns < periods_ns)
		age_ns = periods_ns < AGE_MAX_NS ? periods_ns : AGE_MAX_NS;
	correlation_init(&run->correlation, run->clock.hz, age_ns, STEP_NS);
	for (int i = 0; i < SETTLE_READS && !err && !port_stop_requested(); i++) {
		err = renew(run);
		port_sleep_ns(SETTLE_NS);
	}
	return err;
}

static void start_soon(struct edge_run *run, int64_t now_clock_ns)
{
	run->start_clock_ns = on_grid(run, now_clock_ns + FIRST_EDGE_NS);
}

static int prepare_correlated(struct edge_run *run, int64_t age_ns, const char **what)
{
	int err = correlate(run, age_ns);

	*what = run->clock.phc ? "reading the PHC" : "reading the clock";
	if (!err)
		start_soon(run, correlation_ns_at(&run->correlation, port_counter_read()));
	return err;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Sleep until a count. */
static void sleep_until(const struct edge_run *run, uint64_t ticks)
{
	int64_t left = (int64_t)(ticks - port_counter_read());

	if (left > 0)
		port_sleep_ns(ns_of(run, left));
}

/* Sleep until so long before an edge, and renew the correlation meanwhile where that takes long. */
static int wait_correlated(struct edge_run *run, int64_t at_clock_ns, int64_t lead_ns)
{
	while (!port_stop_requested()) {
		uint64_t now = port_counter_read();
		uint64_t wake = correlation_ticks_at(&run->correlation, at_clock_ns - lead_ns);
		int64_t left_ns = ns_of(run, (int64_t)(wake - now));
		int err;

		if (left_ns <= RENEW_NS) {
			sleep_until(run, wake);
			return 0;
		}
		port_sleep_ns(RENEW_NS);
		err = renew(run);
		if (err)
			return err;
	}
	return -EINTR;
}

static int64_t program_lead_ns(const struct edge_run *run)
{
	int64_t lead_ns = run->period_ns / 4 * 3;

	return lead_ns < PROGRAM_LEAD_MAX_NS ? lead_ns : PROGRAM_LEAD_MAX_NS;
}

/* ---- what software does itself ----------------------------------------------------------------------------------- */

static int prepare_gettime(struct edge_run *run, const char **what)
{
	*what = "the output";
	start_soon(run, port_tai_now_ns(&run->tai));
	return run->output->kind->set(run->output, false, NULL, NULL);
}

static int make_gettime(struct edge_run *run, int64_t k)
{
	return software_edge_make(run->output, &run->tai, run->clock.hz,
				  edge_clock_ns(run, k) + run->correlation_error_ns, run->period_ns,
				  software_edge_lead_ns(run->period_ns));
}

static int prepare_rdtsc(struct edge_run *run, const char **what)
{
	int err = run->output->kind->set(run->output, false, NULL, NULL);

	*what = "the output";
	return err ? err : prepare_correlated(run, AGE_PHC_NS, what);
}

static int make_rdtsc(struct edge_run *run, int64_t k)
{
	uint64_t at;
	int err = wait_correlated(run, edge_clock_ns(run, k), software_edge_lead_ns(run->period_ns));

	if (err)
		return err;
	at = correlation_ticks_at(&run->correlation, edge_clock_ns(run, k)) + (uint64_t)run->error_ticks;
	if (has_passed(at))
		return -ETIME;
	while (!has_passed(at)) /* software_edge_lead_ns() at most: the counter does not go back */
		;
	err = run->output->kind->set(run->output, true, NULL, NULL);
	if (!err)
		err = software_edge_end(run->output, run->period_ns);
	if (!err && ns_of(run, (int64_t)(port_counter_read() - run->correlation.points[run->correlation.newest].ticks)) >= RENEW_NS)
		err = renew(run);
	return err;
}

/* ---- what TGPIO does --------------------------------------------------------------------------------------------- */

/* Program an edge at a count. */
static int program(struct edge_run *run, uint64_t ticks)
{
	uint64_t at = ticks + (uint64_t)run->error_ticks - (uint64_t)run->output_shift_ticks;
	int err;

	if (has_passed(at))
		return -ETIME;
	err = run->output->kind->fire_at(run->output, (int64_t)at);
	if (err == -EAGAIN)
		return -ETIME; /* the device is behind */
	return err ? err : has_passed(at) ? -ETIME : 0;
}

static int prepare_filtered(struct edge_run *run, const char **what)
{
	return prepare_correlated(run, AGE_PHC_NS, what);
}

static int prepare_clock(struct edge_run *run, const char **what)
{
	return prepare_correlated(run, AGE_CLOCK_NS, what);
}

static int make_filtered(struct edge_run *run, int64_t k)
{
	int err = wait_correlated(run, edge_clock_ns(run, k), program_lead_ns(run));

	if (err)
		return err;
	if (has_passed(correlation_ticks_at(&run->correlation, edge_clock_ns(run, k))))
		return -ETIME;
	err = renew(run);
	return err ? err : program(run, correlation_ticks_at(&run->correlation, edge_clock_ns(run, k)));
}

/* Take the latches that are there, or wait for one. */
static int take_latches(struct edge_run *run, int64_t timeout_ns)
{
	int64_t half_art = (int64_t)(run->clock.hz / EDGE_ART_HZ / 2), instant;
	int err;

	do {
		err = run->latch->kind->capture_next(run->latch, NULL, &instant, timeout_ns);
		if (err)
			break;
		/* The edge came within the tick of ART that was latched: its middle is right on average. */
		predictor_add(&run->predictor, (uint64_t)(instant + half_art));
		run->latches++;
		timeout_ns = 0;
	} while (!port_stop_requested());
	return err == -ETIMEDOUT ? 0 : err;
}

/* Which time the predictor's edge 0 has: by one reading of the PHC, to the nearest instant of the grid. */
static void number_latches(struct edge_run *run)
{
	int64_t edge = predictor_newest_edge(&run->predictor);
	int64_t seen_clock_ns = correlation_ns_at(&run->correlation, predictor_ticks_at(&run->predictor, edge));

	run->latched_edge_clock_ns = on_grid(run, seen_clock_ns - run->period_ns / 2) - edge * run->period_ns;
}

static int prepare_latch(struct edge_run *run, const char **what)
{
	int64_t room = PREDICT_SPAN_NS / run->period_ns, begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	int err = correlate(run, AGE_PHC_NS);

	*what = "reading the PHC";
	if (err)
		return err;
	*what = "the latch";
	predictor_init(&run->predictor, ticks_of(run, run->period_ns),
		       room < LATCHES_MIN ? LATCHES_MIN : room > PREDICTOR_LATCHES ? PREDICTOR_LATCHES : (size_t)room);
	err = run->latch->kind->capture_begin(run->latch);
	while (!err && run->latches < LATCHES_MIN && !port_stop_requested()) {
		err = take_latches(run, RENEW_NS);
		if (!err && port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns >
				    LATCH_TIMEOUT_NS + INT64_C(2) * LATCHES_MIN * run->period_ns)
			err = -ENODATA;
	}
	if (!err && !predictor_ready(&run->predictor))
		err = port_stop_requested() ? -EINTR : -ENODATA;
	if (err)
		return err;
	err = renew(run);
	number_latches(run);
	start_soon(run, correlation_ns_at(&run->correlation, port_counter_read()));
	return err;
}

static int make_latched(struct edge_run *run, int64_t k)
{
	int64_t edge = (edge_clock_ns(run, k) - run->latched_edge_clock_ns) / run->period_ns;

	while (!port_stop_requested()) {
		uint64_t at;
		int64_t left_ns;
		int err = take_latches(run, 0);

		if (err)
			return err;
		if (edge - predictor_newest_edge(&run->predictor) > LATCHED_AHEAD_MAX)
			return -ENODATA;
		at = predictor_ticks_at(&run->predictor, edge);
		left_ns = ns_of(run, (int64_t)(at - port_counter_read())) - program_lead_ns(run);
		if (left_ns <= 0)
			return program(run, at);
		port_sleep_ns(left_ns < RENEW_NS ? left_ns : RENEW_NS);
	}
	return -EINTR;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const struct edge_method methods[] = {
	{ .name = "gettime-software", .software = true, .prepare = prepare_gettime, .make = make_gettime },
	{ .name = "rdtsc-software", .software = true, .reads_phc = true, .prepare = prepare_rdtsc, .make = make_rdtsc },
	{ .name = "tgpio-filtered-read", .reads_phc = true, .prepare = prepare_filtered, .make = make_filtered },
	{ .name = "tgpio-latch", .latches = true, .reads_phc = true, .prepare = prepare_latch, .make = make_latched },
	{ .name = "clock-edge", .reads_clock = true, .prepare = prepare_clock, .make = make_filtered },
};

const struct edge_method *edge_method_at(int index)
{
	return index < (int)(sizeof(methods) / sizeof(methods[0])) ? &methods[index] : NULL;
}

const struct edge_method *edge_method_find(const char *name)
{
	for (int i = 0; edge_method_at(i); i++) {
		if (strcmp(edge_method_at(i)->name, name) == 0)
			return edge_method_at(i);
	}
	return NULL;
}

static void make_all(struct edge_run *run)
{
	for (int64_t k = 0; run->count == 0 || k < run->count; k++) {
		int err = port_stop_requested() ? -EINTR : run->method->make(run, k);

		if (err == -EINTR && port_stop_requested()) {
			run->complete = run->count == 0;
			return;
		}
		if (err == 0) {
			tally_add(&run->programmed, 1);
		} else if (err == -ETIME || err == -EINTR) {
			tally_add(&run->late, 1);
		} else {
			run->error = err;
			run->failed = "making an edge";
			return;
		}
	}
	run->complete = true;
}

/* Let the last edge happen, then switch off. */
static void end_run(struct edge_run *run)
{
	port_sleep_ns((run->method->software ? 0 : program_lead_ns(run)) + END_NS);
	if (run->latch)
		run->latch->kind->capture_end(run->latch);
	if (run->output->kind->counts)
		run->counted = run->output->kind->counts(run->output, &run->counts) == 0;
	if (run->output->kind->stop)
		run->output->kind->stop(run->output);
	if (run->reference)
		run->reference->kind->stop(run->reference);
}

void edge_run_thread(void *argument)
{
	struct edge_run *run = argument;

	run->error_ticks = ticks_of(run, run->correlation_error_ns);
	/* TGPIO fires at the first tick of ART at or after its value: half a tick earlier is right on average. */
	run->output_shift_ticks = (int64_t)(run->clock.hz / EDGE_ART_HZ / 2);
	run->error = run->method->prepare(run, &run->failed);
	if (!run->error && !port_stop_requested()) {
		atomic_store(&run->prepared, true);
		make_all(run);
	}
	end_run(run);
	atomic_store(&run->finished, true);
}
