/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tgpio:/dev/ptpN,pin=N,channel=N`: a pin of TGPIO whose driver makes it a PTP clock of its own, which shows ART. ART and the
 * processor's counter have one oscillator, so instants of this pin are ticks of the counter: they are turned into the device's
 * time, and back, by a line through bracketed readings of it (phc_fit.h), found when the pin is opened and kept up with use.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edge/device/phc_fit.h"
#include "edge/pins/pin.h"
#include "edge/pins/pin_argument.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "clock/card/ticks.h"

#define NAP_NS INT64_C(5000000)
#define RENEW_NS 100000000.0

enum { BURST = 12, BURSTS_MAX = 4 * PHC_FIT_SETTLED };

struct tgpio_pin {
	struct edge_pin device; /* the same pin in the device's own time */
	struct port_phc *clock;
	struct phc_fit fit;
	struct card_line line;
};

static int64_t device_phc_ns(const struct tgpio_pin *opened, int64_t ticks)
{
	int64_t since = (int64_t)((uint64_t)ticks - opened->line.counter);

	return opened->line.tai_ns + (int64_t)llround((double)since * opened->line.ns_per_unit);
}

static int64_t counter_ticks(const struct tgpio_pin *opened, int64_t phc_ns)
{
	int64_t since = (int64_t)llround((double)(phc_ns - opened->line.tai_ns) / opened->line.ns_per_unit);

	return (int64_t)(opened->line.counter + (uint64_t)since);
}

/* Read the device's clock a few times. Return 0; -EAGAIN: there are too few readings for a line; or -errno. */
static int read_clock(struct tgpio_pin *opened)
{
	int err = 0;

	for (int i = 0; i < BURST && !err; i++) {
		int64_t now_phc_ns = 0;
		uint64_t before = port_counter_read();

		err = port_phc_now_ns(opened->clock, &now_phc_ns);
		if (!err)
			err = phc_fit_take(&opened->fit, before, now_phc_ns, port_counter_read());
	}
	return err ? err : phc_fit_line(&opened->fit, &opened->line);
}

/* Keep the line up. That a reading contradicts it is no error yet: the fit starts anew by itself when they all do. */
static int renew(struct tgpio_pin *opened)
{
	double age_ns = (double)(int64_t)(port_counter_read() - opened->line.counter) * opened->line.ns_per_unit;
	int err = age_ns > RENEW_NS ? read_clock(opened) : 0;

	return err == -EAGAIN ? 0 : err;
}

static int find_line(struct tgpio_pin *opened, const char *argument)
{
	size_t length = strcspn(argument, ",");
	uint64_t hz = ticks_hz();
	char path[PIN_PATH_BYTES];
	int err;

	if (!hz)
		return -ENOTSUP;
	if (length >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, argument, length);
	path[length] = '\0';
	err = port_phc_open(path, &opened->clock);
	if (err)
		return err;
	phc_fit_init(&opened->fit, 1e9 / (double)hz, NULL);
	err = -EAGAIN;
	for (int i = 0; i < BURSTS_MAX && err == -EAGAIN; i++) {
		port_sleep_ns(NAP_NS);
		err = read_clock(opened);
	}
	return err;
}

static int open_pin(struct edge_pin *pin, const char *argument, char *error, size_t error_bytes)
{
	struct tgpio_pin *opened = calloc(1, sizeof(*opened));
	int err = opened ? edge_pin_ptp.open(&opened->device, argument, error, error_bytes) : -ENOMEM;

	if (err) {
		free(opened);
		return err;
	}
	err = find_line(opened, argument);
	if (err) {
		snprintf(error, error_bytes, "%s",
			 err == -ENOTSUP ? "this processor has no counter that a program can read" :
			 err == -EAGAIN  ? "its clock is not the processor's: it does not run evenly with the counter" :
					   strerror(-err));
		if (opened->clock)
			port_phc_close(opened->clock);
		edge_pin_ptp.close(&opened->device);
		free(opened);
		return err == -EINVAL ? -EIO : err;
	}
	pin->axis = EDGE_AXIS_COUNTER;
	pin->counter_hz = (uint64_t)llround(1e9 / opened->fit.ns_per_tick);
	pin->state = opened;
	return 0;
}

static void close_pin(struct edge_pin *pin)
{
	struct tgpio_pin *opened = pin->state;

	port_phc_close(opened->clock);
	edge_pin_ptp.close(&opened->device);
	free(opened);
}

static int fire_at(struct edge_pin *pin, int64_t instant)
{
	struct tgpio_pin *opened = pin->state;
	int err = renew(opened);

	return err ? err : edge_pin_ptp.fire_at(&opened->device, device_phc_ns(opened, instant));
}

static int stop(struct edge_pin *pin)
{
	struct tgpio_pin *opened = pin->state;

	return edge_pin_ptp.stop(&opened->device);
}

static int capture_begin(struct edge_pin *pin)
{
	struct tgpio_pin *opened = pin->state;

	return edge_pin_ptp.capture_begin(&opened->device);
}

static int capture_next(struct edge_pin *pin, uint64_t *sequence, int64_t *instant, int64_t timeout_ns)
{
	struct tgpio_pin *opened = pin->state;
	int64_t phc_ns;
	int err = edge_pin_ptp.capture_next(&opened->device, sequence, &phc_ns, timeout_ns);

	if (!err)
		err = renew(opened);
	if (!err)
		*instant = counter_ticks(opened, phc_ns);
	return err;
}

static int capture_end(struct edge_pin *pin)
{
	struct tgpio_pin *opened = pin->state;

	return edge_pin_ptp.capture_end(&opened->device);
}

const struct edge_pin_kind edge_pin_tgpio = {
	.name = "tgpio", .open = open_pin, .close = close_pin, .fire_at = fire_at, .stop = stop,
	.capture_begin = capture_begin, .capture_next = capture_next, .capture_end = capture_end,
};
