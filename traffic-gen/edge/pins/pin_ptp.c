/* SPDX-License-Identifier: Apache-2.0 */
/* `ptp:/dev/ptpN,pin=N,channel=N`: a pin of a PTP hardware clock, of a network card or of TGPIO where a driver makes it one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "edge/pins/pin.h"
#include "edge/pins/pin_argument.h"
#include "port/port.h"
#include "port/port_edge.h"

#define LEAD_NS INT64_C(100000000) /* a start that is nearer is moved on: drivers take their time */
#define PERIOD_MAX_NS (3600 * NS_PER_S)

enum { NUMBER_MAX = 255, PIN_NONE = -1 };

struct ptp_pin {
	struct port_ptp_pin *port;
	enum port_ptp_edges edges;
	uint64_t captures;
};

static const char *const edge_words[] = { [PORT_PTP_RISING] = "rising", [PORT_PTP_BOTH] = "both", NULL };

static const char *failure(int err)
{
	switch (err) {
	case -ENOENT:
		return "no such device";
	case -ENOTTY:
		return "not a PTP hardware clock";
	case -ENXIO:
		return "the clock has no such pin";
	case -EACCES:
	case -EPERM:
		return "no permission to open the device for writing";
	case -ENOTSUP:
		return "this system has no pins of PTP clocks";
	default:
		return strerror(-err);
	}
}

static int open_pin(struct edge_pin *pin, const char *argument, char *error, size_t error_bytes)
{
	int64_t number = PIN_NONE, channel = 0, edges = PORT_PTP_RISING;
	const struct pin_key keys[] = {
		{ .name = "pin", .value = &number, .min = 0, .max = NUMBER_MAX },
		{ .name = "channel", .value = &channel, .min = 0, .max = NUMBER_MAX },
		{ .name = "edges", .value = &edges, .words = edge_words },
		{ .name = NULL },
	};
	char path[PIN_PATH_BYTES];
	struct ptp_pin *opened;
	int err = pin_argument_parse(argument, path, keys, error, error_bytes);

	if (err)
		return err;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	err = port_ptp_pin_open(path, (int)number, (int)channel, &opened->port);
	if (err) {
		snprintf(error, error_bytes, "%s", failure(err));
		free(opened);
		return err == -EINVAL ? -EIO : err;
	}
	opened->edges = (enum port_ptp_edges)edges;
	pin->axis = EDGE_AXIS_CLOCK_NS;
	pin->state = opened;
	return 0;
}

static void close_pin(struct edge_pin *pin)
{
	struct ptp_pin *opened = pin->state;

	port_ptp_pin_close(opened->port);
	free(opened);
}

static int periodic(struct edge_pin *pin, int64_t start_phc_ns, int64_t period_ns)
{
	struct ptp_pin *opened = pin->state;
	int64_t now_phc_ns;
	int err;

	if (period_ns < 1 || period_ns > PERIOD_MAX_NS || start_phc_ns < 0)
		return -EINVAL;
	err = port_ptp_pin_now_ns(opened->port, &now_phc_ns);
	if (err)
		return err;
	/* Drivers differ in what they do with a start in the past: give them none. */
	if (start_phc_ns < now_phc_ns + LEAD_NS)
		start_phc_ns += (now_phc_ns + LEAD_NS - start_phc_ns + period_ns - 1) / period_ns * period_ns;
	return port_ptp_pin_periodic(opened->port, start_phc_ns, period_ns);
}

static int fire_at(struct edge_pin *pin, int64_t instant)
{
	struct ptp_pin *opened = pin->state;

	return instant < 0 ? -EINVAL : port_ptp_pin_one_shot(opened->port, instant);
}

static int now_clock_ns(const struct edge_pin *pin, int64_t *now_phc_ns)
{
	const struct ptp_pin *opened = pin->state;

	return port_ptp_pin_now_ns(opened->port, now_phc_ns);
}

static int stop(struct edge_pin *pin)
{
	struct ptp_pin *opened = pin->state;

	return port_ptp_pin_stop(opened->port);
}

static int capture_begin(struct edge_pin *pin)
{
	struct ptp_pin *opened = pin->state;

	opened->captures = 0;
	return port_ptp_pin_capture(opened->port, opened->edges);
}

/* The kernel does not say how many events it has lost: the number counts those that were delivered. */
static int capture_next(struct edge_pin *pin, uint64_t *sequence, int64_t *instant, int64_t timeout_ns)
{
	struct ptp_pin *opened = pin->state;
	int err = port_ptp_pin_captured(opened->port, instant, timeout_ns);

	if (err)
		return err;
	if (sequence)
		*sequence = opened->captures;
	opened->captures++;
	return 0;
}

static int capture_end(struct edge_pin *pin)
{
	struct ptp_pin *opened = pin->state;

	return port_ptp_pin_capture_end(opened->port);
}

const struct edge_pin_kind edge_pin_ptp = {
	.name = "ptp", .open = open_pin, .close = close_pin, .periodic = periodic, .fire_at = fire_at,
	.now_clock_ns = now_clock_ns, .stop = stop,
	.capture_begin = capture_begin, .capture_next = capture_next, .capture_end = capture_end,
};
