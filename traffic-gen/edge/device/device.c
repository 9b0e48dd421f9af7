/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/device/device.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/time_units.h"

#define REACH_NS INT64_C(100000000000) /* instants further away wait for the next line */
#define TOLERANCE_NS INT64_C(50000)    /* by which a new line may move the next pulse without leaving any out */

enum { TAKEN_MAX = 4 * EDGE_RING_COMMANDS }; /* of one output at a time: a guest may add them without an end */

static const struct {
	enum edge_line line;
	enum edge_clock clock; /* of periodic outputs */
	bool periodic;
} wiring[EDGE_OUTPUTS] = {
	[EDGE_SDP_OUT] = { EDGE_LINE_REFERENCE, EDGE_CLOCK_PHC, true },
	[EDGE_CARD_PPS] = { EDGE_LINE_REFERENCE, EDGE_CLOCK_CARD, true },
	[EDGE_TGPIO_OUT] = { EDGE_LINE_OTHER, EDGE_CLOCKS, false },
	[EDGE_GPIO] = { EDGE_LINE_OTHER, EDGE_CLOCKS, false },
};

static const enum edge_line captured_line[EDGE_CAPTURES] = {
	[EDGE_TGPIO_IN] = EDGE_LINE_REFERENCE,
	[EDGE_SDP_IN] = EDGE_LINE_OTHER,
};

/* ---- time ---------------------------------------------------------------------------------------------------------- */

/* Whole nanoseconds that a clock has reached at a tick. */
static int64_t clock_at_ns(const struct card_line *line, uint64_t counter)
{
	return line->tai_ns + (int64_t)floor((double)(int64_t)(counter - line->counter) * line->ns_per_unit);
}

/* First cycle of the network card at or after an instant of a clock: it compares at its cycles only. */
static uint64_t cycle_of(const struct device *device, const struct card_line *line, int64_t instant_clock_ns)
{
	int64_t distance_ns;
	uint64_t tick;

	if (__builtin_sub_overflow(instant_clock_ns, line->tai_ns, &distance_ns) || distance_ns > REACH_NS ||
	    distance_ns < -REACH_NS)
		return EDGE_NEVER;
	tick = line->counter + (uint64_t)(int64_t)ceil((double)distance_ns / line->ns_per_unit);
	if ((int64_t)(tick - device->horizon) < 0)
		tick = device->horizon;
	return edge_grid_tick(edge_grid_from(tick, device->counter_hz, EDGE_SDP_HZ), device->counter_hz, EDGE_SDP_HZ);
}

static uint64_t pulse_ticks(const struct device *device, int64_t period_ns)
{
	int64_t pulse_ns = period_ns && period_ns / 2 < EDGE_PULSE_NS ? period_ns / 2 : EDGE_PULSE_NS;

	return (uint64_t)pulse_ns * device->counter_hz / NS_PER_S;
}

/* ---- periodic outputs ---------------------------------------------------------------------------------------------- */

/* Find the next pulse after the clock, the program or the line has changed. */
static void plan_pulse(const struct device *device, enum edge_output_id id, struct device_output *output)
{
	const struct card_line *line = &device->lines[wiring[id].clock];
	int64_t tolerance_ns = output->period_ns / 4 < TOLERANCE_NS ? output->period_ns / 4 : TOLERANCE_NS;
	int64_t now_clock_ns, away_ns;

	output->rise_at = EDGE_NEVER;
	if (!output->period_ns || !device->known[wiring[id].clock])
		return;
	now_clock_ns = clock_at_ns(line, device->horizon);
	if (output->start_clock_ns >= now_clock_ns) {
		/* Not begun; or begun, and the clock was set back by little. */
		if (output->next_clock_ns > output->start_clock_ns + output->period_ns ||
		    output->next_clock_ns < output->start_clock_ns)
			output->next_clock_ns = output->start_clock_ns;
	} else {
		away_ns = output->next_clock_ns - now_clock_ns; /* both lie in 0..2^61 */
		if (away_ns < -tolerance_ns || away_ns > output->period_ns + tolerance_ns)
			output->next_clock_ns = output->start_clock_ns +
						(now_clock_ns - output->start_clock_ns + output->period_ns - 1) /
							output->period_ns * output->period_ns;
	}
	output->rise_at = cycle_of(device, line, output->next_clock_ns);
}

static void start_periodic(struct device *device, enum edge_output_id id, const struct edge_command *command)
{
	struct device_output *output = &device->outputs[id];

	if (!wiring[id].periodic || command->first < 0 || command->first > INT64_MAX / 4 ||
	    command->second < EDGE_PERIOD_MIN_NS || command->second > EDGE_PERIOD_MAX_NS) {
		output->refused++;
		return;
	}
	output->start_clock_ns = output->next_clock_ns = command->first;
	output->period_ns = command->second;
	/* Passed is what lies before the command, not before the horizon; both are the same tick here. */
	if (device->known[wiring[id].clock]) {
		int64_t now_clock_ns = clock_at_ns(&device->lines[wiring[id].clock], command->at);

		if (now_clock_ns > output->start_clock_ns)
			output->next_clock_ns += (now_clock_ns - output->start_clock_ns + output->period_ns) /
						 output->period_ns * output->period_ns;
	}
	plan_pulse(device, id, output);
}

/* ---- edges --------------------------------------------------------------------------------------------------------- */

static void capture(struct device *device, enum edge_capture_id id, uint64_t counter)
{
	struct edge_capture *registers = &device->registers->captures[id];
	struct device_capture *state = &device->captures[id];
	uint64_t from = atomic_load_explicit(&registers->from, memory_order_acquire);
	uint64_t cycle;
	int64_t instant;

	if (from != state->from) {
		state->from = from;
		state->sequence = 0;
	}
	if (from == 0 || counter < from)
		return;
	if (id == EDGE_TGPIO_IN) {
		instant = (int64_t)edge_grid_at(counter, device->counter_hz, EDGE_ART_HZ);
	} else if (device->known[EDGE_CLOCK_PHC]) {
		cycle = edge_grid_tick(edge_grid_at(counter, device->counter_hz, EDGE_SDP_HZ), device->counter_hz, EDGE_SDP_HZ);
		instant = clock_at_ns(&device->lines[EDGE_CLOCK_PHC], cycle);
	} else {
		state->unknown++;
		state->sequence++;
		return;
	}
	if (edge_capture_put(registers, &state->head, state->sequence++, instant) == 0)
		state->made++;
	else
		atomic_store_explicit(&registers->overruns, ++state->overruns, memory_order_relaxed);
}

static bool line_high(const struct device *device, enum edge_line line)
{
	for (int id = 0; id < EDGE_OUTPUTS; id++) {
		if (wiring[id].line == line && device->outputs[id].high)
			return true;
	}
	return false;
}

static void set_level(struct device *device, enum edge_output_id id, bool high, uint64_t counter)
{
	struct device_output *output = &device->outputs[id];
	enum edge_line line = wiring[id].line;
	bool before = line_high(device, line);
	struct edge_event event = { .counter = counter, .line = line, .rising = high };

	if (output->high == high)
		return;
	output->high = high;
	output->fall_at = EDGE_NEVER;
	if (high)
		atomic_store_explicit(&device->registers->outputs[id].fired, ++output->fired, memory_order_relaxed);
	if (line_high(device, line) == before)
		return;
	device->sink(device->sink_argument, &event);
	for (int to = 0; to < EDGE_CAPTURES && high; to++) {
		if (captured_line[to] == line)
			capture(device, (enum edge_capture_id)to, counter);
	}
}

static void count_not_fired(struct device *device, enum edge_output_id id)
{
	atomic_store_explicit(&device->registers->outputs[id].not_fired, ++device->outputs[id].not_fired,
			      memory_order_relaxed);
}

static void rise(struct device *device, enum edge_output_id id)
{
	struct device_output *output = &device->outputs[id];
	uint64_t counter = output->rise_at;

	if (output->high)
		count_not_fired(device, id); /* the pulse before is not over: no edge */
	set_level(device, id, true, counter);
	output->fall_at = counter + pulse_ticks(device, output->period_ns);
	output->rise_at = EDGE_NEVER;
	if (output->period_ns) {
		output->next_clock_ns += output->period_ns;
		output->rise_at = cycle_of(device, &device->lines[wiring[id].clock], output->next_clock_ns);
	}
}

/* ---- commands ------------------------------------------------------------------------------------------------------ */

static void fire(struct device *device, const struct edge_command *command)
{
	struct device_output *output = &device->outputs[EDGE_TGPIO_OUT];
	uint64_t tick;

	/* A value of ART of which the guest's counter would have no tick. */
	if (command->first < 0 || (uint64_t)command->first > UINT64_MAX / 2 / (device->counter_hz / EDGE_ART_HZ + 1)) {
		output->refused++;
		return;
	}
	tick = edge_grid_tick((uint64_t)command->first, device->counter_hz, EDGE_ART_HZ);
	if (tick <= command->at) {
		count_not_fired(device, EDGE_TGPIO_OUT);
		return;
	}
	output->replaced += output->rise_at != EDGE_NEVER;
	output->rise_at = tick;
}

static void obey(struct device *device, enum edge_output_id id, const struct edge_command *command)
{
	struct device_output *output = &device->outputs[id];

	switch (command->kind) {
	case EDGE_STOP:
		output->rise_at = EDGE_NEVER;
		output->period_ns = 0;
		set_level(device, id, false, command->at);
		return;
	case EDGE_PERIODIC:
		start_periodic(device, id, command);
		return;
	case EDGE_FIRE:
		if (id == EDGE_TGPIO_OUT) {
			fire(device, command);
			return;
		}
		break;
	case EDGE_LEVEL:
		if (id == EDGE_GPIO && (command->first == 0 || command->first == 1)) {
			set_level(device, id, command->first == 1, command->at);
			return;
		}
		break;
	default:
		break;
	}
	output->refused++;
}

/* Have the next command of an output at hand. Return its tick, or EDGE_NEVER. */
static uint64_t next_command(struct device *device, enum edge_output_id id)
{
	struct device_output *output = &device->outputs[id];

	while (!output->command_held) {
		int err;

		if (output->taken == TAKEN_MAX)
			return EDGE_NEVER;
		output->taken++;
		err = edge_command_take(&device->registers->outputs[id], &output->tail, &output->command);
		if (err == -EAGAIN)
			return EDGE_NEVER;
		/* Too late, or of a future that no guest can have read from its counter. */
		if (err || output->command.at < device->horizon || output->command.at - device->horizon > device->counter_hz * 60)
			output->refused++;
		else
			output->command_held = true;
	}
	return output->command.at;
}

/* What an output does next. */
enum step { STEP_NONE, STEP_COMMAND, STEP_FALL, STEP_RISE };

static enum step next_step(struct device *device, enum edge_output_id id, uint64_t *at)
{
	const struct device_output *output = &device->outputs[id];
	uint64_t command_at = next_command(device, id);
	enum step step = STEP_NONE;

	/* Of one tick: what the device does by itself comes before a command of that tick; a fall before a rise. */
	*at = EDGE_NEVER;
	if (command_at < *at) {
		*at = command_at;
		step = STEP_COMMAND;
	}
	if (output->rise_at != EDGE_NEVER && output->rise_at <= *at) {
		*at = output->rise_at;
		step = STEP_RISE;
	}
	if (output->fall_at != EDGE_NEVER && output->fall_at <= *at) {
		*at = output->fall_at;
		step = STEP_FALL;
	}
	return step;
}

/* Do what comes next before a tick. Return false when there is nothing. */
static bool step_once(struct device *device, uint64_t horizon)
{
	enum step first = STEP_NONE;
	int first_id = 0;
	uint64_t first_at = horizon;

	for (int id = 0; id < EDGE_OUTPUTS; id++) {
		uint64_t at;
		enum step step = next_step(device, (enum edge_output_id)id, &at);

		if (step != STEP_NONE && at < first_at) {
			first = step;
			first_id = id;
			first_at = at;
		}
	}
	if (first == STEP_NONE)
		return false;
	device->horizon = first_at;
	if (first == STEP_COMMAND) {
		device->outputs[first_id].command_held = false;
		obey(device, (enum edge_output_id)first_id, &device->outputs[first_id].command);
	} else if (first == STEP_FALL) {
		set_level(device, (enum edge_output_id)first_id, false, first_at);
	} else {
		rise(device, (enum edge_output_id)first_id);
	}
	return true;
}

/* ---- interface ----------------------------------------------------------------------------------------------------- */

void device_init(struct device *device, struct edge_registers *registers, uint64_t counter_hz, edge_sink *sink,
		 void *sink_argument)
{
	memset(device, 0, sizeof(*device));
	device->registers = registers;
	device->counter_hz = counter_hz;
	device->sink = sink;
	device->sink_argument = sink_argument;
	for (int id = 0; id < EDGE_OUTPUTS; id++) {
		struct edge_output *output = &registers->outputs[id];

		device->outputs[id].rise_at = device->outputs[id].fall_at = EDGE_NEVER;
		device->outputs[id].tail = atomic_load_explicit(&output->head, memory_order_acquire);
		atomic_store_explicit(&output->tail, device->outputs[id].tail, memory_order_release);
		atomic_store_explicit(&output->fired, 0, memory_order_relaxed);
		atomic_store_explicit(&output->not_fired, 0, memory_order_relaxed);
	}
	for (int id = 0; id < EDGE_CAPTURES; id++) {
		/* The guest's index is as good as any to begin with. */
		device->captures[id].head = atomic_load_explicit(&registers->captures[id].tail, memory_order_acquire);
		atomic_store_explicit(&registers->captures[id].head, device->captures[id].head, memory_order_release);
		atomic_store_explicit(&registers->captures[id].overruns, 0, memory_order_relaxed);
	}
}

void device_begin(struct device *device, uint64_t horizon)
{
	device->horizon = horizon;
}

void device_set_line(struct device *device, enum edge_clock clock, const struct card_line *line)
{
	device->known[clock] = line != NULL;
	if (line)
		device->lines[clock] = *line;
	for (int id = 0; id < EDGE_OUTPUTS; id++) {
		if (wiring[id].periodic && wiring[id].clock == clock)
			plan_pulse(device, (enum edge_output_id)id, &device->outputs[id]);
	}
}

void device_advance(struct device *device, uint64_t horizon)
{
	if (horizon <= device->horizon)
		return;
	for (int id = 0; id < EDGE_OUTPUTS; id++)
		device->outputs[id].taken = 0;
	while (step_once(device, horizon))
		;
	device->horizon = horizon;
}
