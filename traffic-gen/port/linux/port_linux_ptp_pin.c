/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer for Linux: pins of PTP hardware clocks, through the character device (include/uapi/linux/ptp_clock.h and
 * Documentation/driver-api/ptp.rst of Linux). The second version of each request is used: it refuses flags that a driver does
 * not serve, where the first one ignores them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/ptp_clock.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time_units.h"
#include "port/port_edge.h"
#include "port/linux/port_linux_device.h"

#define ONE_SHOT_PERIOD_NS INT64_C(200000) /* of which the pulse is half; a period of 0 would mean: switch off */

enum { EVENTS = 16 };

struct port_ptp_pin {
	const struct device_calls *calls;
	int file;
	int pin, channel;
	int outputs, stamps; /* channels of the device */
	struct ptp_extts_event events[EVENTS]; /* read, not yet taken */
	size_t next, count;
};

static struct ptp_clock_time clock_time(int64_t phc_ns)
{
	return (struct ptp_clock_time){ .sec = phc_ns / NS_PER_S, .nsec = (uint32_t)(phc_ns % NS_PER_S) };
}

int ptp_pin_open_with(const struct device_calls *calls, const char *path, int pin, int channel, struct port_ptp_pin **pin_out)
{
	struct ptp_clock_caps caps;
	struct port_ptp_pin *opened;
	int file = calls->open(path, O_RDWR);

	if (file < 0)
		return file;
	memset(&caps, 0, sizeof(caps));
	if (calls->control(file, PTP_CLOCK_GETCAPS, &caps)) {
		calls->close(file);
		return -ENOTTY;
	}
	if (pin >= caps.n_pins) {
		calls->close(file);
		return -ENXIO;
	}
	opened = calloc(1, sizeof(*opened));
	if (!opened) {
		calls->close(file);
		return -ENOMEM;
	}
	opened->calls = calls;
	opened->file = file;
	opened->pin = pin;
	opened->channel = channel;
	opened->outputs = caps.n_per_out;
	opened->stamps = caps.n_ext_ts;
	*pin_out = opened;
	return 0;
}

int port_ptp_pin_open(const char *path, int pin, int channel, struct port_ptp_pin **pin_out)
{
	return ptp_pin_open_with(&device_calls_kernel, path, pin, channel, pin_out);
}

void port_ptp_pin_close(struct port_ptp_pin *pin)
{
	if (!pin)
		return;
	pin->calls->close(pin->file);
	free(pin);
}

int port_ptp_pin_now_ns(const struct port_ptp_pin *pin, int64_t *phc_ns)
{
	clockid_t clock = (clockid_t)((~(unsigned int)pin->file << 3) | 3); /* FD_TO_CLOCKID of the kernel's documentation */
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return -errno;
	*phc_ns = ts.tv_sec * NS_PER_S + ts.tv_nsec;
	return 0;
}

static int choose_function(struct port_ptp_pin *pin, enum ptp_pin_function function)
{
	struct ptp_pin_desc description;

	if (pin->pin < 0)
		return 0;
	memset(&description, 0, sizeof(description));
	description.index = (unsigned int)pin->pin;
	description.func = function;
	description.chan = (unsigned int)pin->channel;
	return pin->calls->control(pin->file, PTP_PIN_SETFUNC2, &description);
}

/* A driver without the feature. That a channel is not there is asked before: the kernel says EINVAL to that as to much else. */
static int meaning(int err)
{
	return err == -EOPNOTSUPP || err == -ENOTTY ? -ENOTSUP : err;
}

static int request_output(struct port_ptp_pin *pin, int64_t start_phc_ns, int64_t period_ns, unsigned int flags)
{
	struct ptp_perout_request request;
	int err = pin->channel < pin->outputs ? choose_function(pin, PTP_PF_PEROUT) : -ENXIO;

	if (err)
		return meaning(err);
	memset(&request, 0, sizeof(request));
	request.start = clock_time(start_phc_ns);
	request.period = clock_time(period_ns);
	request.index = (unsigned int)pin->channel;
	request.flags = flags;
	return meaning(pin->calls->control(pin->file, PTP_PEROUT_REQUEST2, &request));
}

int port_ptp_pin_periodic(struct port_ptp_pin *pin, int64_t start_phc_ns, int64_t period_ns)
{
	return request_output(pin, start_phc_ns, period_ns, 0);
}

int port_ptp_pin_one_shot(struct port_ptp_pin *pin, int64_t at_phc_ns)
{
	return request_output(pin, at_phc_ns, ONE_SHOT_PERIOD_NS, PTP_PEROUT_ONE_SHOT);
}

int port_ptp_pin_stop(struct port_ptp_pin *pin)
{
	int err = request_output(pin, 0, 0, 0);
	int freed = err == -ENXIO ? 0 : choose_function(pin, PTP_PF_NONE);

	return err ? err : meaning(freed);
}

int port_ptp_pin_capture(struct port_ptp_pin *pin, enum port_ptp_edges edges)
{
	struct ptp_extts_request request;
	int err = pin->channel < pin->stamps ? choose_function(pin, PTP_PF_EXTTS) : -ENXIO;

	if (err)
		return meaning(err);
	memset(&request, 0, sizeof(request));
	request.index = (unsigned int)pin->channel;
	request.flags = PTP_ENABLE_FEATURE | PTP_RISING_EDGE | PTP_STRICT_FLAGS;
	if (edges == PORT_PTP_BOTH)
		request.flags |= PTP_FALLING_EDGE;
	return meaning(pin->calls->control(pin->file, PTP_EXTTS_REQUEST2, &request));
}

/* Read what the kernel has. The queue is the device's: other channels' events may be in it. */
static int read_events(struct port_ptp_pin *pin, int64_t timeout_ns)
{
	int err = pin->calls->wait(pin->file, timeout_ns);
	ssize_t bytes;

	if (err)
		return err;
	bytes = pin->calls->read(pin->file, pin->events, sizeof(pin->events));
	if (bytes < 0)
		return (int)bytes;
	if (bytes == 0 || bytes % (ssize_t)sizeof(pin->events[0]))
		return -EIO;
	pin->next = 0;
	pin->count = (size_t)bytes / sizeof(pin->events[0]);
	return 0;
}

int port_ptp_pin_captured(struct port_ptp_pin *pin, int64_t *phc_ns, int64_t timeout_ns)
{
	int64_t deadline_monotonic_ns = pin->calls->now_monotonic_ns() + timeout_ns, left_ns = timeout_ns;

	for (;;) {
		while (pin->next < pin->count) {
			const struct ptp_extts_event *event = &pin->events[pin->next++];

			if (event->index == (unsigned int)pin->channel) {
				*phc_ns = event->t.sec * NS_PER_S + event->t.nsec;
				return 0;
			}
		}
		int err = left_ns < 0 ? -ETIMEDOUT : read_events(pin, left_ns);

		if (err)
			return err;
		left_ns = deadline_monotonic_ns - pin->calls->now_monotonic_ns();
	}
}

int port_ptp_pin_capture_end(struct port_ptp_pin *pin)
{
	struct ptp_extts_request request;
	int err, freed;

	memset(&request, 0, sizeof(request));
	request.index = (unsigned int)pin->channel;
	err = pin->calls->control(pin->file, PTP_EXTTS_REQUEST2, &request);
	freed = choose_function(pin, PTP_PF_NONE);
	pin->next = pin->count = 0;
	return meaning(err ? err : freed);
}
