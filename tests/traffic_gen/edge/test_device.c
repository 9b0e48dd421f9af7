/* SPDX-License-Identifier: Apache-2.0 */
/* The edge device: which edges come of commands and lines, at which ticks; rings; hostile registers. */
#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "edge/device/device.h"
#include "random.h"

#define HZ UINT64_C(2299998753)
#define BEGIN UINT64_C(1000000000000)
#define PHC_NS INT64_C(1800000000000000000)
#define PERIOD_NS INT64_C(2000000)

enum { EVENTS_MAX = 20000 };

static struct edge_registers registers;
static struct device device;
static struct edge_event events[EVENTS_MAX];
static int event_count;

static void keep(void *sink, const struct edge_event *event)
{
	(void)sink;
	if (event_count < EVENTS_MAX)
		events[event_count] = *event;
	event_count++;
}

static uint64_t ticks(int64_t ns)
{
	return (uint64_t)((double)ns * (double)HZ / 1e9);
}

static struct card_line line_at(uint64_t counter, int64_t clock_ns, double ppm)
{
	return (struct card_line){ .unit = CARD_UNIT_TSC, .counter = counter, .tai_ns = clock_ns,
				   .ns_per_unit = 1e9 / (double)HZ * (1 + ppm * 1e-6), .published = 1, .source = "phc" };
}

static void begin(void)
{
	memset(&registers, 0, sizeof(registers));
	event_count = 0;
	device_init(&device, &registers, HZ, keep, NULL);
	device_begin(&device, BEGIN);
}

static void set_phc(uint64_t counter, int64_t phc_ns)
{
	struct card_line line = line_at(counter, phc_ns, 0);

	device_set_line(&device, EDGE_CLOCK_PHC, &line);
}

static void command(enum edge_output_id id, uint64_t at, enum edge_command_kind kind, int64_t first, int64_t second)
{
	const struct edge_command given = { .at = at, .kind = kind, .first = first, .second = second };

	CHECK_INT(edge_command_begin(&registers.outputs[id]), 0);
	edge_command_end(&registers.outputs[id], &given);
}

/* Instant of the PHC at a tick, by the line that set_phc(BEGIN, PHC_NS) has set. */
static double phc_of(uint64_t counter)
{
	return (double)(int64_t)(counter - BEGIN) * 1e9 / (double)HZ;
}

static void test_grids(void)
{
	const uint64_t grids[] = { EDGE_ART_HZ, EDGE_SDP_HZ };
	const uint64_t rates[] = { 100000000, HZ, 2400000000, 9999999999 };
	struct random random = { 3 };

	for (int i = 0; i < 40000; i++) {
		uint64_t grid = grids[i % 2], hz = rates[i / 2 % 4];
		uint64_t counter = random_bits(&random) >> (10 + random_bits(&random) % 40);
		uint64_t value = edge_grid_at(counter, hz, grid), from = edge_grid_from(counter, hz, grid);

		if (hz < grid)
			continue; /* several values a tick */
		CHECK(edge_grid_tick(value, hz, grid) <= counter && edge_grid_tick(value + 1, hz, grid) > counter);
		CHECK(edge_grid_tick(from, hz, grid) >= counter);
		CHECK(from == 0 || edge_grid_tick(from - 1, hz, grid) < counter);
	}
	CHECK_INT(edge_grid_tick(EDGE_ART_HZ * 7, HZ, EDGE_ART_HZ), HZ * 7);
	CHECK_INT(edge_grid_at(HZ * 7 - 1, HZ, EDGE_ART_HZ), EDGE_ART_HZ * 7 - 1);
}

static void test_ring(void)
{
	struct edge_output *output = &registers.outputs[EDGE_GPIO];
	struct edge_command taken;
	uint32_t tail = 0;

	memset(&registers, 0, sizeof(registers));
	CHECK(!edge_command_pending(output));
	CHECK_INT(edge_command_take(output, &tail, &taken), -EAGAIN);
	for (int i = 0; i < EDGE_RING_COMMANDS; i++) {
		const struct edge_command given = { .at = (uint64_t)i, .kind = EDGE_LEVEL, .first = i % 2, .second = -i };

		CHECK_INT(edge_command_begin(output), 0);
		CHECK(edge_command_pending(output));
		edge_command_end(output, &given);
		CHECK(!edge_command_pending(output));
	}
	CHECK_INT(edge_command_begin(output), -EAGAIN);
	CHECK(!edge_command_pending(output));
	for (int i = 0; i < EDGE_RING_COMMANDS; i++) {
		CHECK_INT(edge_command_take(output, &tail, &taken), 0);
		CHECK(taken.at == (uint64_t)i && taken.kind == EDGE_LEVEL && taken.first == i % 2 && taken.second == -i);
	}
	/* A writer that died announces for ever, until the next one takes it back. */
	CHECK_INT(edge_command_begin(output), 0);
	CHECK(edge_command_pending(output));
	edge_command_abandon(output);
	CHECK(!edge_command_pending(output));
	/* Indices that cannot be: all is dropped. */
	atomic_store(&output->head, tail + EDGE_RING_COMMANDS + 1);
	CHECK_INT(edge_command_take(output, &tail, &taken), -EBADMSG);
	CHECK_INT(edge_command_take(output, &tail, &taken), -EAGAIN);
}

/* Pulses come at the first cycle of 8 ns at or after their instants, and end after half a period or 100 us. */
static void check_pulses(int64_t period_ns, int pulses)
{
	int64_t width_ns = period_ns / 2 < EDGE_PULSE_NS ? period_ns / 2 : EDGE_PULSE_NS;
	int64_t start_phc_ns = PHC_NS + 1000003;

	begin();
	set_phc(BEGIN, PHC_NS);
	command(EDGE_SDP_OUT, BEGIN + 1000, EDGE_PERIODIC, start_phc_ns, period_ns);
	device_advance(&device, BEGIN + ticks(1000003 + (pulses - 1) * period_ns + width_ns + 5000));
	CHECK_INT(event_count, 2 * pulses);
	for (int i = 0; i < event_count && i < EVENTS_MAX; i += 2) {
		int64_t due_after_ns = 1000003 + (int64_t)(i / 2) * period_ns;
		double late_ns = phc_of(events[i].counter) - (double)due_after_ns;

		CHECK(events[i].rising && !events[i + 1].rising && events[i].line == EDGE_LINE_REFERENCE);
		CHECK_THAT(late_ns >= -0.01 && late_ns < 8.5, "pulse %d is %f ns late", i / 2, late_ns);
		CHECK(edge_grid_tick(edge_grid_at(events[i].counter, HZ, EDGE_SDP_HZ), HZ, EDGE_SDP_HZ) == events[i].counter);
		CHECK_INT(events[i + 1].counter - events[i].counter, (uint64_t)width_ns * HZ / 1000000000);
	}
	CHECK_INT(atomic_load(&registers.outputs[EDGE_SDP_OUT].fired), pulses);
}

static void test_start_in_the_past(void)
{
	double first_ns;

	begin();
	set_phc(BEGIN, PHC_NS);
	command(EDGE_SDP_OUT, BEGIN + ticks(10 * PERIOD_NS + 5000), EDGE_PERIODIC, PHC_NS, PERIOD_NS);
	device_advance(&device, BEGIN + ticks(20 * PERIOD_NS - 5000));
	CHECK_INT(event_count, 18);
	first_ns = phc_of(events[0].counter);
	CHECK_THAT(first_ns >= 11.0 * PERIOD_NS - 0.01 && first_ns < 11.0 * PERIOD_NS + 8.5, "at %f", first_ns);
}

static int count_rises(enum edge_line line)
{
	int rises = 0;

	for (int i = 0; i < event_count; i++)
		rises += events[i].line == line && events[i].rising;
	return rises;
}

static void test_lines(void)
{
	uint64_t at = BEGIN + ticks(10 * PERIOD_NS + 500000);

	begin();
	command(EDGE_SDP_OUT, BEGIN, EDGE_PERIODIC, PHC_NS + PERIOD_NS, PERIOD_NS);
	device_advance(&device, BEGIN + 1000);
	CHECK_INT(event_count, 0); /* its clock is not known yet */
	set_phc(BEGIN, PHC_NS);
	device_advance(&device, at);
	CHECK_INT(count_rises(EDGE_LINE_REFERENCE), 10);
	/* New lines that move the clock by some nanoseconds to and fro: no pulse twice, none left out. */
	for (int i = 1; i <= 1000; i++) {
		set_phc(at, PHC_NS + 10 * PERIOD_NS + 500000 + (i % 2 ? 40 : -40));
		device_advance(&device, at + ticks((int64_t)i * 40000));
	}
	CHECK_INT(count_rises(EDGE_LINE_REFERENCE), 30);
	for (int i = 0; i + 2 < event_count; i += 2) {
		int64_t interval_ns = llround((double)(events[i + 2].counter - events[i].counter) * 1e9 / (double)HZ);

		CHECK_THAT(llabs(interval_ns - PERIOD_NS) <= 80 + 8 + 1, "interval %" PRId64, interval_ns);
	}
	/* The clock is set forward by 100.25 periods: what lies between is left out. */
	at += ticks(40000000);
	set_phc(at, PHC_NS + 30 * PERIOD_NS + 500000 + 100 * PERIOD_NS + PERIOD_NS / 4);
	device_advance(&device, at + ticks(2 * PERIOD_NS));
	CHECK_INT(count_rises(EDGE_LINE_REFERENCE), 32);
	CHECK_THAT(llabs(llround((double)(events[60].counter - at) * 1e9 / (double)HZ) - PERIOD_NS / 2 - 0) <= 9,
		   "%" PRIu64, events[60].counter - at);
	/* Unknown: a pause. Set back by an hour: it goes on at the instants of the clock that it has now. */
	device_set_line(&device, EDGE_CLOCK_PHC, NULL);
	device_advance(&device, at + ticks(10 * PERIOD_NS));
	CHECK_INT(count_rises(EDGE_LINE_REFERENCE), 32);
	at += ticks(10 * PERIOD_NS);
	set_phc(at, PHC_NS - INT64_C(3600000000000));
	device_advance(&device, at + ticks(10 * PERIOD_NS));
	CHECK_INT(count_rises(EDGE_LINE_REFERENCE), 32); /* its start is to come again */
	at += ticks(10 * PERIOD_NS);
	set_phc(at, PHC_NS - 5 * PERIOD_NS);
	device_advance(&device, at + ticks(10 * PERIOD_NS + 5000));
	CHECK_INT(count_rises(EDGE_LINE_REFERENCE), 37);
	command(EDGE_SDP_OUT, device.horizon, EDGE_STOP, 0, 0);
	device_advance(&device, device.horizon + ticks(10 * PERIOD_NS));
	CHECK_INT(count_rises(EDGE_LINE_REFERENCE), 37);
	CHECK_INT(event_count, 74);
}

static void test_tgpio(void)
{
	uint64_t art = edge_grid_from(BEGIN, HZ, EDGE_ART_HZ);
	uint64_t at = BEGIN + 5;
	struct edge_output *output = &registers.outputs[EDGE_TGPIO_OUT];

	begin();
	command(EDGE_TGPIO_OUT, at, EDGE_FIRE, (int64_t)art + 38400, 0);
	device_advance(&device, BEGIN + ticks(500000));
	command(EDGE_TGPIO_OUT, BEGIN + ticks(600000), EDGE_FIRE, (int64_t)art + 76800, 0); /* replaces it */
	device_advance(&device, BEGIN + ticks(3000000));
	CHECK_INT(event_count, 2);
	CHECK(events[0].line == EDGE_LINE_OTHER && events[0].rising && !events[1].rising);
	CHECK_INT(events[0].counter, edge_grid_tick(art + 76800, HZ, EDGE_ART_HZ));
	CHECK_INT(device.outputs[EDGE_TGPIO_OUT].replaced, 1);
	/* A value that has passed, also by one tick of the counter only, never fires. */
	at = edge_grid_tick(art + 153600, HZ, EDGE_ART_HZ);
	command(EDGE_TGPIO_OUT, at, EDGE_FIRE, (int64_t)art + 153600, 0);
	command(EDGE_TGPIO_OUT, at + 1, EDGE_FIRE, (int64_t)art, 0);
	command(EDGE_TGPIO_OUT, at + 2, EDGE_FIRE, -1, 0);
	command(EDGE_TGPIO_OUT, at + 3, EDGE_FIRE, INT64_MAX, 0);
	command(EDGE_TGPIO_OUT, at + 4, EDGE_PERIODIC, 1, PERIOD_NS);
	device_advance(&device, at + ticks(10000000));
	CHECK_INT(event_count, 2);
	CHECK_INT(atomic_load(&output->not_fired), 2);
	CHECK_INT(device.outputs[EDGE_TGPIO_OUT].refused, 3);
	/* While a pulse lasts there is no other. */
	at = device.horizon + 10;
	art = edge_grid_from(at, HZ, EDGE_ART_HZ);
	command(EDGE_TGPIO_OUT, at, EDGE_FIRE, (int64_t)art + 1, 0);
	command(EDGE_TGPIO_OUT, at + ticks(1000), EDGE_FIRE, (int64_t)art + 1920, 0); /* 50 us later */
	device_advance(&device, at + ticks(1000000));
	CHECK_INT(event_count, 4);
	CHECK_INT(atomic_load(&output->not_fired), 3);
	CHECK_INT(atomic_load(&output->fired), 2);
}

static void test_gpio_and_captures(void)
{
	struct edge_capture *capture = &registers.captures[EDGE_SDP_IN];
	uint64_t sequence, cycle;
	int64_t instant;

	begin();
	set_phc(BEGIN, PHC_NS);
	command(EDGE_GPIO, BEGIN + 100, EDGE_LEVEL, 1, 0); /* nobody captures yet */
	command(EDGE_GPIO, BEGIN + 200, EDGE_LEVEL, 0, 0);
	device_advance(&device, BEGIN + 300);
	edge_capture_start(capture, BEGIN + 400);
	command(EDGE_GPIO, BEGIN + 350, EDGE_LEVEL, 1, 0); /* before it began */
	command(EDGE_GPIO, BEGIN + 360, EDGE_LEVEL, 0, 0);
	for (uint64_t i = 0; i < 3; i++) {
		command(EDGE_GPIO, BEGIN + 1000 + i * 2777, EDGE_LEVEL, 1, 0);
		command(EDGE_GPIO, BEGIN + 1001 + i * 2777, EDGE_LEVEL, 1, 0); /* is high already */
		command(EDGE_GPIO, BEGIN + 1700 + i * 2777, EDGE_LEVEL, 0, 0);
	}
	command(EDGE_GPIO, BEGIN + 50000, EDGE_LEVEL, 2, 0);
	device_advance(&device, BEGIN + 100000);
	CHECK_INT(event_count, 10);
	CHECK_INT(device.outputs[EDGE_GPIO].refused, 1);
	for (uint64_t i = 0; i < 3; i++) {
		CHECK_INT(events[4 + 2 * i].counter, BEGIN + 1000 + i * 2777);
		CHECK_INT(edge_capture_take(capture, &sequence, &instant), 0);
		CHECK_INT(sequence, i);
		cycle = edge_grid_tick(edge_grid_at(BEGIN + 1000 + i * 2777, HZ, EDGE_SDP_HZ), HZ, EDGE_SDP_HZ);
		CHECK_INT(instant, PHC_NS + (int64_t)floor(phc_of(cycle)));
	}
	CHECK_INT(edge_capture_take(capture, &sequence, &instant), -EAGAIN);
	/* What is not taken in time is lost and counted; a new capture begins from 0. */
	for (uint64_t i = 0; i < 300; i++) {
		command(EDGE_GPIO, device.horizon + 10, EDGE_LEVEL, 1, 0);
		command(EDGE_GPIO, device.horizon + 20, EDGE_LEVEL, 0, 0);
		device_advance(&device, device.horizon + 30);
	}
	CHECK_INT(atomic_load(&capture->overruns), 300 - EDGE_RING_CAPTURES);
	CHECK_INT(edge_capture_take(capture, &sequence, &instant), 0);
	CHECK_INT(sequence, 3);
	edge_capture_start(capture, device.horizon);
	CHECK_INT(edge_capture_take(capture, &sequence, &instant), -EAGAIN);
	command(EDGE_GPIO, device.horizon + 10, EDGE_LEVEL, 1, 0);
	device_advance(&device, device.horizon + 30);
	CHECK_INT(edge_capture_take(capture, &sequence, &instant), 0);
	CHECK_INT(sequence, 0);
	edge_capture_stop(capture);
	command(EDGE_GPIO, device.horizon + 10, EDGE_LEVEL, 0, 0);
	command(EDGE_GPIO, device.horizon + 20, EDGE_LEVEL, 1, 0);
	device_advance(&device, device.horizon + 30);
	CHECK_INT(edge_capture_take(capture, &sequence, &instant), -EAGAIN);
	/* A command of a tick that is decided comes too late. */
	command(EDGE_GPIO, device.horizon - 1, EDGE_LEVEL, 0, 0);
	device_advance(&device, device.horizon + 30);
	CHECK_INT(device.outputs[EDGE_GPIO].refused, 2);
}

static void test_latched_art(void)
{
	struct edge_capture *capture = &registers.captures[EDGE_TGPIO_IN];
	uint64_t sequence;
	int64_t instant;

	begin();
	set_phc(BEGIN, PHC_NS);
	edge_capture_start(capture, BEGIN);
	command(EDGE_SDP_OUT, BEGIN + 1, EDGE_PERIODIC, PHC_NS + 1000, PERIOD_NS);
	device_advance(&device, BEGIN + ticks(100 * PERIOD_NS));
	for (int i = 0; i < 100; i++) {
		uint64_t rise = events[2 * (size_t)i].counter;

		CHECK_INT(edge_capture_take(capture, &sequence, &instant), 0);
		CHECK_INT(sequence, i);
		CHECK(edge_grid_tick((uint64_t)instant, HZ, EDGE_ART_HZ) <= rise &&
		      edge_grid_tick((uint64_t)instant + 1, HZ, EDGE_ART_HZ) > rise);
	}
}

/* Two outputs drive one line: it is high while one of them is. */
static void test_wired_or(void)
{
	struct card_line card = line_at(BEGIN, PHC_NS, 0);

	begin();
	set_phc(BEGIN, PHC_NS);
	device_set_line(&device, EDGE_CLOCK_CARD, &card);
	command(EDGE_SDP_OUT, BEGIN + 1, EDGE_PERIODIC, PHC_NS + PERIOD_NS, PERIOD_NS);
	command(EDGE_CARD_PPS, BEGIN + 1, EDGE_PERIODIC, PHC_NS + PERIOD_NS + 40000, PERIOD_NS);
	device_advance(&device, BEGIN + ticks(11 * PERIOD_NS - 5000));
	CHECK_INT(event_count, 20);
	for (int i = 0; i < event_count; i += 2)
		CHECK(fabs(phc_of(events[i + 1].counter) - phc_of(events[i].counter) - 140000) < 9);
}

/* However the way is cut into steps, the edges are the same. */
static void test_steps_do_not_matter(void)
{
	static struct edge_event first[EVENTS_MAX];
	int first_count = 0;

	for (int run = 0; run < 20; run++) {
		struct random random = { 77 }, cuts = { (uint64_t)run };
		uint64_t end = BEGIN + ticks(100 * PERIOD_NS), at = BEGIN;

		begin();
		set_phc(BEGIN, PHC_NS);
		command(EDGE_SDP_OUT, BEGIN + 1, EDGE_PERIODIC, PHC_NS + PERIOD_NS, PERIOD_NS / 3);
		for (int i = 0; i < 60; i++) {
			at += (uint64_t)random_between(&random, 1, (int64_t)ticks(PERIOD_NS));
			command(EDGE_GPIO, at, EDGE_LEVEL, (int64_t)(random_bits(&random) % 2), 0);
			command(EDGE_TGPIO_OUT, at + 1, EDGE_FIRE,
				(int64_t)edge_grid_from(at + (uint64_t)random_between(&random, -9999, 9999999), HZ, EDGE_ART_HZ), 0);
		}
		while (device.horizon < end) {
			uint64_t next = device.horizon + (run ? random_bits(&cuts) % ticks(PERIOD_NS) + 1 : end);

			device_advance(&device, next < end ? next : end);
		}
		if (run == 0) {
			first_count = event_count;
			memcpy(first, events, sizeof(first));
		}
		CHECK_INT(event_count, first_count);
		CHECK(memcmp(first, events, (size_t)first_count * sizeof(first[0])) == 0);
		CHECK(event_count > 300);
	}
}

/* Registers full of garbage, commands of a liar: edges stay in order, within what was decided, and an end comes. */
static void test_hostile(void)
{
	struct random random = { 41 };
	unsigned char *bytes = (unsigned char *)&registers;

	for (int run = 0; run < 300; run++) {
		begin();
		for (int step = 0; step < 30; step++) {
			uint64_t before = device.horizon;

			for (int i = 0; i < 200; i++)
				bytes[random_bits(&random) % sizeof(registers)] = (unsigned char)random_bits(&random);
			for (int id = 0; id < EDGE_OUTPUTS; id++) {
				struct edge_output *output = &registers.outputs[id];
				struct edge_command lie = {
					.at = before + random_bits(&random) % 3000000 - 1000, .kind = random_bits(&random) % 6,
					.first = (int64_t)(random_bits(&random) >> random_bits(&random) % 64),
					.second = (int64_t)(random_bits(&random) >> random_bits(&random) % 64),
				};

				if (run % 2)
					atomic_store(&output->head, device.outputs[id].tail + (uint32_t)(random_bits(&random) % 100));
				edge_command_end(output, &lie);
			}
			if (random_bits(&random) % 2)
				set_phc(before, PHC_NS + random_between(&random, -1000000000, 1000000000));
			event_count = 0;
			device_advance(&device, before + 2300000);
			for (int i = 0; i < event_count && i < EVENTS_MAX; i++) {
				CHECK(events[i].counter >= (i ? events[i - 1].counter : before));
				CHECK(events[i].counter < before + 2300000);
			}
			CHECK(event_count < 1000);
		}
	}
}

static void test_calibration(void)
{
	uint64_t offset = 1, bound = 1;

	memset(&registers, 0, sizeof(registers));
	CHECK_INT(edge_calibration_read(&registers.calibration, &offset, &bound), -ENODATA);
	edge_calibration_write(&registers.calibration, UINT64_MAX - 5, 300);
	CHECK_INT(edge_calibration_read(&registers.calibration, &offset, &bound), 0);
	CHECK(offset == UINT64_MAX - 5 && bound == 300);
	atomic_fetch_add(&registers.calibration.sequence, 1); /* its writer was killed half-way */
	CHECK_INT(edge_calibration_read(&registers.calibration, &offset, &bound), -EAGAIN);
	edge_calibration_write(&registers.calibration, 7, 8);
	CHECK_INT(edge_calibration_read(&registers.calibration, &offset, &bound), 0);
	CHECK_INT(offset, 7);
}

int main(void)
{
	test_grids();
	test_ring();
	check_pulses(PERIOD_NS, 200);
	check_pulses(EDGE_PERIOD_MIN_NS, 1000);
	check_pulses(150001, 100);
	test_start_in_the_past();
	test_lines();
	test_tgpio();
	test_gpio_and_captures();
	test_latched_art();
	test_wired_or();
	test_steps_do_not_matter();
	test_hostile();
	test_calibration();
	return check_result();
}
