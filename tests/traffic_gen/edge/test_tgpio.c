/* SPDX-License-Identifier: Apache-2.0 */
/* TGPIO behind a PTP clock of its own: its instants are ticks, the device's are ns. The device here is a straight line. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "edge/pins/pin.h"
#include "port/port_clock.h"
#include "clock/card/ticks.h"

#define HZ UINT64_C(2000000000)
#define EPOCH_NS INT64_C(700000000000000) /* the device's time long after its start */
#define NEAR_NS 2000.0                    /* half a reading of a machine that is not idle */

static uint64_t first_ticks;
static double rate = 3e-6; /* by which the device's clock is fast */
static struct {
	int64_t fired_phc_ns, captured_phc_ns;
	int opened, clocks;
	int open_error, read_error;
} device;

static int64_t time_at(uint64_t ticks)
{
	return EPOCH_NS + (int64_t)llround((double)(int64_t)(ticks - first_ticks) * (1e9 / (double)HZ) * (1 + rate));
}

/* ---- in the place of the device and its clock ---------------------------------------------------------------------- */

uint64_t ticks_hz(void)
{
	return HZ;
}

int port_phc_open(const char *path, struct port_phc **phc_out)
{
	CHECK(strcmp(path, "/dev/ptp7") == 0);
	*phc_out = (struct port_phc *)(void *)&device;
	device.clocks++;
	return 0;
}

void port_phc_close(struct port_phc *phc)
{
	CHECK((void *)phc == (void *)&device);
	device.clocks--;
}

int port_phc_now_ns(const struct port_phc *phc, int64_t *phc_ns)
{
	(void)phc;
	*phc_ns = time_at(port_counter_read());
	return device.read_error;
}

static int open_device(struct edge_pin *pin, const char *argument, char *error, size_t error_bytes)
{
	(void)pin;
	(void)error;
	(void)error_bytes;
	CHECK(strcmp(argument, "/dev/ptp7,pin=1,channel=0") == 0);
	device.opened += device.open_error == 0;
	return device.open_error;
}

static void close_device(struct edge_pin *pin)
{
	(void)pin;
	device.opened--;
}

static int fire_device(struct edge_pin *pin, int64_t instant)
{
	(void)pin;
	device.fired_phc_ns = instant;
	return 0;
}

static int nothing(struct edge_pin *pin)
{
	(void)pin;
	return 0;
}

static int captured(struct edge_pin *pin, uint64_t *sequence, int64_t *instant, int64_t timeout_ns)
{
	(void)pin;
	(void)timeout_ns;
	if (!device.captured_phc_ns)
		return -ETIMEDOUT;
	*sequence = 5;
	*instant = device.captured_phc_ns;
	return 0;
}

const struct edge_pin_kind edge_pin_ptp = {
	.name = "ptp", .open = open_device, .close = close_device, .fire_at = fire_device, .stop = nothing,
	.capture_begin = nothing, .capture_next = captured, .capture_end = nothing,
};

/* ---- tests --------------------------------------------------------------------------------------------------------- */

static int open_pin(struct edge_pin *pin)
{
	char error[EDGE_PIN_ERROR_BYTES] = "";
	int err;

	memset(pin, 0, sizeof(*pin));
	pin->kind = &edge_pin_tgpio;
	err = edge_pin_tgpio.open(pin, "/dev/ptp7,pin=1,channel=0", error, sizeof(error));
	CHECK(err == 0 || device.open_error || error[0]);
	return err;
}

static void test_ticks_become_device_time(void)
{
	struct edge_pin pin;
	uint64_t sequence = 0, soon;
	int64_t instant = 0;

	CHECK_INT(open_pin(&pin), 0);
	CHECK(pin.axis == EDGE_AXIS_COUNTER);
	CHECK(pin.counter_hz == HZ);
	soon = port_counter_read() + HZ / 100;
	CHECK_INT(pin.kind->fire_at(&pin, (int64_t)soon), 0);
	CHECK(fabs((double)(device.fired_phc_ns - time_at(soon))) < NEAR_NS);
	device.captured_phc_ns = time_at(soon);
	CHECK_INT(pin.kind->capture_next(&pin, &sequence, &instant, 0), 0);
	CHECK_INT((int)sequence, 5);
	CHECK(fabs((double)(instant - (int64_t)soon)) < NEAR_NS * (double)HZ / 1e9);
	device.captured_phc_ns = 0;
	CHECK_INT(pin.kind->capture_next(&pin, &sequence, &instant, 0), -ETIMEDOUT);
	pin.kind->close(&pin);
	CHECK_INT(device.opened, 0);
	CHECK_INT(device.clocks, 0);
}

static void test_a_clock_that_runs_otherwise_is_refused(void)
{
	struct edge_pin pin;

	rate = 0.01;
	CHECK_INT(open_pin(&pin), -EAGAIN);
	rate = 3e-6;
	device.read_error = -EIO;
	CHECK_INT(open_pin(&pin), -EIO);
	device.read_error = 0;
	device.open_error = -ENXIO;
	CHECK_INT(open_pin(&pin), -ENXIO);
	device.open_error = 0;
	CHECK_INT(device.opened, 0);
	CHECK_INT(device.clocks, 0);
}

int main(void)
{
	first_ticks = port_counter_read();
	test_ticks_become_device_time();
	test_a_clock_that_runs_otherwise_is_refused();
	return check_result();
}
