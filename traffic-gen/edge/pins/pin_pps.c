/* SPDX-License-Identifier: Apache-2.0 */
/* `tgpio-pps:/sys/class/pps-gen/pps-genN`: the kernel's own pulse at each full second of the system's clock. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "edge/pins/pin.h"
#include "edge/pins/pin_argument.h"
#include "port/port_edge.h"

struct pps_pin {
	char folder[PIN_PATH_BYTES];
	bool on;
};

static const char *failure(int err)
{
	switch (err) {
	case -ENODEV:
		return "no generator of pulses per second there";
	case -ENOTSUP:
		return "this generator does not follow the system's clock, or this system has none";
	default:
		return strerror(-err);
	}
}

static int open_pin(struct edge_pin *pin, const char *argument, char *error, size_t error_bytes)
{
	static const struct pin_key keys[] = { { .name = NULL } };
	struct pps_pin *opened = calloc(1, sizeof(*opened));
	int err = opened ? pin_argument_parse(argument, opened->folder, keys, error, error_bytes) : -ENOMEM;

	if (!err) {
		err = port_pps_check(opened->folder);
		if (err)
			snprintf(error, error_bytes, "%s", failure(err));
		err = err == -EINVAL ? -EIO : err;
	}
	if (err) {
		free(opened);
		return err;
	}
	pin->axis = EDGE_AXIS_CLOCK_NS;
	pin->state = opened;
	return 0;
}

static int stop(struct edge_pin *pin)
{
	struct pps_pin *opened = pin->state;
	int err = opened->on ? port_pps_enable(opened->folder, false) : 0;

	opened->on = false;
	return err;
}

static void close_pin(struct edge_pin *pin)
{
	stop(pin);
	free(pin->state);
}

/* TAI and UTC are full seconds apart: the seconds of both begin together. */
static int periodic(struct edge_pin *pin, int64_t start_tai_ns, int64_t period_ns)
{
	struct pps_pin *opened = pin->state;
	int err;

	if (period_ns != NS_PER_S || start_tai_ns % NS_PER_S)
		return -EINVAL;
	err = port_pps_enable(opened->folder, true);
	opened->on = err == 0;
	return err;
}

const struct edge_pin_kind edge_pin_pps = {
	.name = "tgpio-pps", .open = open_pin, .close = close_pin, .periodic = periodic, .stop = stop,
};
