/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins of the virtual bench's edge device: NAME[,PATH], PATH of the shared page (default: the ivshmem device). What is a
 * driver on real hardware is here: TSC to ART and back, as the kernel converts them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edge/device/mapping.h"
#include "edge/pins/pin.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "edge/device/registers.h"

#define NAP_NS INT64_C(200000)
#define DEAD_NS INT64_C(2000000000) /* the device does not move on: nobody serves it */
#define CHANGE_NS INT64_C(5000000)  /* until the host has seen that a capture of before has ended */

struct bench_pin {
	struct edge_mapping mapping;
	struct edge_output *output;   /* NULL: a capture */
	struct edge_capture *capture; /* NULL: an output */
	int id;
	uint64_t served;
	struct edge_pin_counts before; /* of the device when the pin was opened */
};

static const struct bench_pin *state_of(const struct edge_pin *pin)
{
	return pin->state;
}

static int find_name(const char *const *names, int count, const char *name, size_t length)
{
	for (int i = 0; i < count; i++) {
		if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
			return i;
	}
	return -1;
}

static void read_counts(const struct bench_pin *bench, struct edge_pin_counts *counts)
{
	memset(counts, 0, sizeof(*counts));
	if (bench->output) {
		counts->fired = atomic_load_explicit(&bench->output->fired, memory_order_relaxed);
		counts->not_fired = atomic_load_explicit(&bench->output->not_fired, memory_order_relaxed);
	} else {
		counts->overruns = atomic_load_explicit(&bench->capture->overruns, memory_order_relaxed);
	}
}

/* Take the pin for this process. */
static int claim(struct bench_pin *bench, int lock, char *error, size_t error_bytes)
{
	int err = port_page_lock(&bench->mapping.page, EDGE_LOCK_PINS + lock, 0);

	if (err) {
		snprintf(error, error_bytes, "%s", err == -EBUSY ? "another process has this pin" : strerror(-err));
		return err;
	}
	if (atomic_load(&bench->mapping.registers->horizon) == 0) {
		snprintf(error, error_bytes, "the edge device is not calibrated: bw-edge follow-phc does not run");
		return -ENODEV;
	}
	bench->served = atomic_load(&bench->mapping.registers->served);
	if (bench->output)
		edge_command_abandon(bench->output); /* of a writer that died */
	else
		edge_capture_stop(bench->capture);
	read_counts(bench, &bench->before);
	return 0;
}

static int bench_open(struct edge_pin *pin, const char *argument, char *error, size_t error_bytes)
{
	size_t length = strcspn(argument, ",");
	const char *path = argument[length] ? argument + length + 1 : NULL;
	int output = find_name(edge_output_names, EDGE_OUTPUTS, argument, length);
	int capture = find_name(edge_capture_names, EDGE_CAPTURES, argument, length);
	struct bench_pin *bench;
	bool counter;
	int err;

	if ((output < 0 && capture < 0) || (path && !*path)) {
		snprintf(error, error_bytes,
			 "\"%s\"; allowed: sdp-out, card-pps, tgpio-out, gpio, tgpio-in, sdp-in, then perhaps a comma and a page",
			 argument);
		return -EINVAL;
	}
	bench = calloc(1, sizeof(*bench));
	if (!bench) {
		snprintf(error, error_bytes, "out of memory");
		return -ENOMEM;
	}
	err = edge_mapping_open(&bench->mapping, path, error, error_bytes);
	if (!err) {
		bench->id = output >= 0 ? output : capture;
		bench->output = output >= 0 ? &bench->mapping.registers->outputs[output] : NULL;
		bench->capture = output >= 0 ? NULL : &bench->mapping.registers->captures[capture];
		err = claim(bench, output >= 0 ? output : EDGE_OUTPUTS + capture, error, error_bytes);
	}
	if (err) {
		edge_mapping_close(&bench->mapping);
		free(bench);
		return err;
	}
	counter = output == EDGE_TGPIO_OUT || output == EDGE_GPIO || capture == EDGE_TGPIO_IN;
	pin->state = bench;
	pin->axis = counter ? EDGE_AXIS_COUNTER : EDGE_AXIS_CLOCK_NS;
	pin->counter_hz = counter ? bench->mapping.counter_hz : 0;
	return 0;
}

/* ---- outputs ------------------------------------------------------------------------------------------------------- */

static bool is_output(const struct bench_pin *bench, enum edge_output_id id)
{
	return bench->output && bench->id == (int)id;
}

static int give(const struct bench_pin *bench, struct edge_command *command)
{
	int err = edge_command_begin(bench->output);

	if (err)
		return err;
	command->at = port_counter_read();
	edge_command_end(bench->output, command);
	return 0;
}

static int bench_set(struct edge_pin *pin, bool high, uint64_t *before, uint64_t *after)
{
	const struct bench_pin *bench = state_of(pin);
	struct edge_command command = { .kind = EDGE_LEVEL, .first = high };
	uint64_t first;
	int err;

	if (!is_output(bench, EDGE_GPIO))
		return -ENOTSUP;
	err = edge_command_begin(bench->output);
	if (err)
		return err;
	first = port_counter_read();
	atomic_store_explicit(&bench->output->level, high, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* the line changes for everybody */
	command.at = port_counter_read();
	edge_command_end(bench->output, &command);
	if (before)
		*before = first;
	if (after)
		*after = command.at;
	return 0;
}

static int bench_fire_at(struct edge_pin *pin, int64_t instant)
{
	const struct bench_pin *bench = state_of(pin);
	struct edge_command command = { .kind = EDGE_FIRE };

	if (!is_output(bench, EDGE_TGPIO_OUT))
		return -ENOTSUP;
	if (instant < 0)
		return -EINVAL;
	command.first = (int64_t)edge_grid_from((uint64_t)instant, bench->mapping.counter_hz, EDGE_ART_HZ);
	return give(bench, &command);
}

static int bench_periodic(struct edge_pin *pin, int64_t start_clock_ns, int64_t period_ns)
{
	const struct bench_pin *bench = state_of(pin);
	struct edge_command command = { .kind = EDGE_PERIODIC, .first = start_clock_ns, .second = period_ns };

	if (!is_output(bench, EDGE_SDP_OUT) && !is_output(bench, EDGE_CARD_PPS))
		return -ENOTSUP;
	if (start_clock_ns < 0 || start_clock_ns > INT64_MAX / 4 || period_ns < EDGE_PERIOD_MIN_NS ||
	    period_ns > EDGE_PERIOD_MAX_NS)
		return -EINVAL;
	return give(bench, &command);
}

static int bench_stop(struct edge_pin *pin)
{
	struct edge_command command = { .kind = EDGE_STOP };

	return state_of(pin)->output ? give(state_of(pin), &command) : -ENOTSUP;
}

/* ---- captures ------------------------------------------------------------------------------------------------------ */

static int bench_capture_begin(struct edge_pin *pin)
{
	const struct bench_pin *bench = state_of(pin);

	if (!bench->capture)
		return -ENOTSUP;
	edge_capture_stop(bench->capture);
	port_sleep_ns(CHANGE_NS);
	edge_capture_start(bench->capture, port_counter_read());
	return 0;
}

static int bench_capture_end(struct edge_pin *pin)
{
	if (!state_of(pin)->capture)
		return -ENOTSUP;
	edge_capture_stop(state_of(pin)->capture);
	return 0;
}

static int take(const struct bench_pin *bench, uint64_t *sequence, int64_t *instant)
{
	int err = edge_capture_take(bench->capture, sequence, instant);

	if (!err && bench->id == EDGE_TGPIO_IN)
		*instant = (int64_t)edge_grid_tick((uint64_t)*instant, bench->mapping.counter_hz, EDGE_ART_HZ);
	return err;
}

static int bench_capture_next(struct edge_pin *pin, uint64_t *sequence, int64_t *instant, int64_t timeout_ns)
{
	const struct bench_pin *bench = state_of(pin);
	const struct edge_registers *registers = bench->mapping.registers;
	int64_t begin_monotonic_ns, moved_monotonic_ns, now_monotonic_ns;
	uint64_t horizon;

	if (!bench->capture)
		return -ENOTSUP;
	if (take(bench, sequence, instant) == 0)
		return 0;
	begin_monotonic_ns = moved_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	horizon = atomic_load_explicit(&registers->horizon, memory_order_relaxed);
	for (;;) {
		uint64_t moved = atomic_load_explicit(&registers->horizon, memory_order_relaxed);

		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		if (moved != horizon) {
			horizon = moved;
			moved_monotonic_ns = now_monotonic_ns;
		}
		if (now_monotonic_ns - moved_monotonic_ns > DEAD_NS ||
		    atomic_load_explicit(&registers->served, memory_order_relaxed) != bench->served)
			return -ENODEV;
		if (now_monotonic_ns - begin_monotonic_ns >= timeout_ns)
			return -ETIMEDOUT;
		if (port_stop_requested())
			return -EINTR;
		port_sleep_ns(NAP_NS);
		if (take(bench, sequence, instant) == 0)
			return 0;
	}
}

/* ---- all ----------------------------------------------------------------------------------------------------------- */

static int bench_counts(struct edge_pin *pin, struct edge_pin_counts *counts)
{
	const struct bench_pin *bench = state_of(pin);

	if (atomic_load(&bench->mapping.registers->served) != bench->served)
		return -ENODEV;
	read_counts(bench, counts);
	counts->fired -= bench->before.fired;
	counts->not_fired -= bench->before.not_fired;
	counts->overruns -= bench->before.overruns;
	return 0;
}

static void bench_close(struct edge_pin *pin)
{
	struct bench_pin *bench = pin->state;

	if (bench->output)
		bench_stop(pin);
	else
		bench_capture_end(pin);
	edge_mapping_close(&bench->mapping);
	free(bench);
	pin->state = NULL;
}

const struct edge_pin_kind edge_pin_bench = {
	.name = "bench",
	.open = bench_open,
	.close = bench_close,
	.set = bench_set,
	.fire_at = bench_fire_at,
	.periodic = bench_periodic,
	.stop = bench_stop,
	.capture_begin = bench_capture_begin,
	.capture_next = bench_capture_next,
	.capture_end = bench_capture_end,
	.counts = bench_counts,
};
