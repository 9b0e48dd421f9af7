/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gpio:/dev/gpiochipN,line=N`: a line that software sets, or whose rising edges the kernel stamps in its interrupt. Captured
 * instants are TAI.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edge/pins/pin.h"
#include "edge/pins/pin_argument.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "port/port_edge.h"

enum { LINE_MAX = 65535, LINE_NONE = -1 };

struct gpio_pin {
	struct port_gpio_line *port;
	struct port_tai tai;
	bool is_output;
	uint32_t first_sequence;
	bool captured;
};

static const char *failure(int err)
{
	switch (err) {
	case -ENOENT:
		return "no such device";
	case -ENOTTY:
		return "not a GPIO chip";
	case -ENXIO:
		return "the chip has no such line";
	case -EACCES:
	case -EPERM:
		return "no permission to open the device for writing";
	case -ENOTSUP:
		return "this system has no GPIO chips";
	default:
		return strerror(-err);
	}
}

static int open_pin(struct edge_pin *pin, const char *argument, char *error, size_t error_bytes)
{
	int64_t line = LINE_NONE;
	const struct pin_key keys[] = {
		{ .name = "line", .value = &line, .min = 0, .max = LINE_MAX },
		{ .name = NULL },
	};
	char path[PIN_PATH_BYTES];
	struct gpio_pin *opened;
	int err = pin_argument_parse(argument, path, keys, error, error_bytes);

	if (!err && line == LINE_NONE) {
		snprintf(error, error_bytes, "line: is missing");
		err = -EINVAL;
	}
	if (err)
		return err;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	err = port_gpio_open(path, (unsigned int)line, &opened->port);
	if (err) {
		snprintf(error, error_bytes, "%s", failure(err));
		free(opened);
		return err == -EINVAL ? -EIO : err;
	}
	port_tai_init(&opened->tai, pin->tai_utc_s);
	pin->axis = EDGE_AXIS_CLOCK_NS;
	pin->state = opened;
	return 0;
}

static int stop(struct edge_pin *pin)
{
	struct gpio_pin *opened = pin->state;
	int err = opened->is_output ? port_gpio_set(opened->port, false) : 0;

	port_gpio_release(opened->port);
	opened->is_output = false;
	return err;
}

static void close_pin(struct edge_pin *pin)
{
	struct gpio_pin *opened = pin->state;

	stop(pin);
	port_gpio_close(opened->port);
	free(opened);
}

static int set(struct edge_pin *pin, bool high, uint64_t *before, uint64_t *after)
{
	struct gpio_pin *opened = pin->state;
	uint64_t first;
	int err;

	if (!opened->is_output) { /* with the first call, which sets it low */
		err = port_gpio_output(opened->port);
		if (err)
			return err;
		opened->is_output = true;
	}
	first = port_counter_read();
	err = port_gpio_set(opened->port, high);
	if (before)
		*before = first;
	if (after)
		*after = port_counter_read();
	return err;
}

static int capture_begin(struct edge_pin *pin)
{
	struct gpio_pin *opened = pin->state;

	opened->captured = false;
	opened->is_output = false;
	return port_gpio_capture(opened->port);
}

static int capture_next(struct edge_pin *pin, uint64_t *sequence, int64_t *instant, int64_t timeout_ns)
{
	struct gpio_pin *opened = pin->state;
	int64_t realtime_ns;
	uint32_t number;
	int err = port_gpio_captured(opened->port, &number, &realtime_ns, timeout_ns);

	if (err)
		return err;
	if (!opened->captured)
		opened->first_sequence = number;
	opened->captured = true;
	if (sequence)
		*sequence = number - opened->first_sequence;
	*instant = port_tai_from_realtime_ns(&opened->tai, realtime_ns);
	return 0;
}

static int capture_end(struct edge_pin *pin)
{
	struct gpio_pin *opened = pin->state;

	port_gpio_release(opened->port);
	return 0;
}

const struct edge_pin_kind edge_pin_gpio = {
	.name = "gpio", .open = open_pin, .close = close_pin, .set = set, .stop = stop,
	.capture_begin = capture_begin, .capture_next = capture_next, .capture_end = capture_end,
};
