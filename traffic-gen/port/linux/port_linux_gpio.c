/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer for Linux: lines of GPIO chips, through the character device, version 2 of its interface (include/uapi/linux/gpio.h,
 * Documentation/userspace-api/gpio/chardev.rst of Linux).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/port_edge.h"
#include "port/linux/port_linux_device.h"

enum { EVENTS = 16, EVENT_BUFFER = 1024, NO_FILE = -1 };

struct port_gpio_line {
	const struct device_calls *calls;
	int chip, line_file;
	unsigned int line;
	struct gpio_v2_line_event events[EVENTS]; /* read, not yet taken */
	size_t next, count;
};

int gpio_open_with(const struct device_calls *calls, const char *path, unsigned int line, struct port_gpio_line **line_out)
{
	struct gpiochip_info info;
	struct port_gpio_line *opened;
	int chip = calls->open(path, O_RDWR);

	if (chip < 0)
		return chip;
	memset(&info, 0, sizeof(info));
	if (calls->control(chip, GPIO_GET_CHIPINFO_IOCTL, &info)) {
		calls->close(chip);
		return -ENOTTY;
	}
	if (line >= info.lines) {
		calls->close(chip);
		return -ENXIO;
	}
	opened = calloc(1, sizeof(*opened));
	if (!opened) {
		calls->close(chip);
		return -ENOMEM;
	}
	opened->calls = calls;
	opened->chip = chip;
	opened->line_file = NO_FILE;
	opened->line = line;
	*line_out = opened;
	return 0;
}

int port_gpio_open(const char *path, unsigned int line, struct port_gpio_line **line_out)
{
	return gpio_open_with(&device_calls_kernel, path, line, line_out);
}

void port_gpio_close(struct port_gpio_line *line)
{
	if (!line)
		return;
	port_gpio_release(line);
	line->calls->close(line->chip);
	free(line);
}

void port_gpio_release(struct port_gpio_line *line)
{
	if (line->line_file != NO_FILE)
		line->calls->close(line->line_file);
	line->line_file = NO_FILE;
	line->next = line->count = 0;
}

static int request_line(struct port_gpio_line *line, uint64_t flags, uint32_t event_buffer)
{
	struct gpio_v2_line_request request;
	int err;

	port_gpio_release(line);
	memset(&request, 0, sizeof(request));
	request.offsets[0] = line->line;
	request.num_lines = 1;
	request.config.flags = flags;
	request.event_buffer_size = event_buffer;
	snprintf(request.consumer, sizeof(request.consumer), "bw-edge");
	err = line->calls->control(line->chip, GPIO_V2_GET_LINE_IOCTL, &request);
	if (err)
		return err == -EOPNOTSUPP || err == -ENOTTY ? -ENOTSUP : err;
	line->line_file = request.fd;
	return 0;
}

int port_gpio_output(struct port_gpio_line *line)
{
	return request_line(line, GPIO_V2_LINE_FLAG_OUTPUT, 0); /* without a value of its own a line begins inactive */
}

int port_gpio_set(struct port_gpio_line *line, bool high)
{
	struct gpio_v2_line_values values = { .bits = high ? 1 : 0, .mask = 1 };

	return line->calls->control(line->line_file, GPIO_V2_LINE_SET_VALUES_IOCTL, &values);
}

int port_gpio_capture(struct port_gpio_line *line)
{
	return request_line(line, GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_EVENT_CLOCK_REALTIME,
			    EVENT_BUFFER);
}

static int read_events(struct port_gpio_line *line, int64_t timeout_ns)
{
	int err = line->calls->wait(line->line_file, timeout_ns);
	ssize_t bytes;

	if (err)
		return err;
	bytes = line->calls->read(line->line_file, line->events, sizeof(line->events));
	if (bytes < 0)
		return (int)bytes;
	if (bytes == 0 || bytes % (ssize_t)sizeof(line->events[0]))
		return -EIO;
	line->next = 0;
	line->count = (size_t)bytes / sizeof(line->events[0]);
	return 0;
}

int port_gpio_captured(struct port_gpio_line *line, uint32_t *sequence, int64_t *realtime_ns, int64_t timeout_ns)
{
	int64_t deadline_monotonic_ns = line->calls->now_monotonic_ns() + timeout_ns, left_ns = timeout_ns;

	for (;;) {
		while (line->next < line->count) {
			const struct gpio_v2_line_event *event = &line->events[line->next++];

			if (event->id != GPIO_V2_LINE_EVENT_RISING_EDGE)
				continue;
			*sequence = event->line_seqno;
			*realtime_ns = (int64_t)event->timestamp_ns;
			return 0;
		}
		int err = left_ns < 0 ? -ETIMEDOUT : read_events(line, left_ns);

		if (err)
			return err;
		left_ns = deadline_monotonic_ns - line->calls->now_monotonic_ns();
	}
}
