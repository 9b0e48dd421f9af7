/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel is told of PTP pins and GPIO lines, held against its own headers: a recorder stands in the place of the
 * device files. It checks what the kernel's character devices check (reserved fields are zero, flags are known), and answers
 * as they do.
 */
#include <errno.h>
#include <linux/gpio.h>
#include <linux/ptp_clock.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "text_file.h"
#include "port/port_edge.h"
#include "port/linux/port_linux_device.h"

enum { DEVICE = 40, LINE = 41, CALLS_MAX = 16, WAITS_MAX = 1000 };

static struct {
	int open_files;
	int requests;
	unsigned long request[CALLS_MAX];
	struct ptp_pin_desc description;
	struct ptp_perout_request output;
	struct ptp_extts_request stamp;
	struct gpio_v2_line_request line;
	struct gpio_v2_line_values values;
	unsigned long fails; /* this request ... */
	int with;            /* ... with this error */
	const void *events;
	size_t events_bytes;
	int waits;
	int64_t now_monotonic_ns;
	int64_t apart_ns; /* between events that never end; 0: there are those of `events` */
} seen;

static void reset(void)
{
	memset(&seen, 0, sizeof(seen));
}

static int recorder_open(const char *path, int flags)
{
	(void)flags;
	if (strcmp(path, "/dev/there") != 0)
		return -ENOENT;
	seen.open_files++;
	return DEVICE;
}

static void recorder_close(int file)
{
	CHECK(file == DEVICE || file == LINE);
	seen.open_files--;
}

static int check_output(const struct ptp_perout_request *request)
{
	if (request->flags & ~(unsigned int)PTP_PEROUT_VALID_FLAGS)
		return -EINVAL;
	for (int i = 0; i < 4; i++) {
		if (!(request->flags & PTP_PEROUT_DUTY_CYCLE) && request->rsv[i])
			return -EINVAL;
	}
	return request->start.nsec < 1000000000 && request->period.nsec < 1000000000 ? 0 : -EINVAL;
}

static int check_stamp(const struct ptp_extts_request *request)
{
	if (request->flags & ~(unsigned int)PTP_EXTTS_VALID_FLAGS || request->rsv[0] || request->rsv[1])
		return -EINVAL;
	/* PTP_STRICT_FLAGS with the feature on: some edge has to be asked for. */
	return (request->flags & PTP_ENABLE_FEATURE) && !(request->flags & PTP_EXTTS_EDGES) ? -EINVAL : 0;
}

static int check_line(const struct gpio_v2_line_request *request)
{
	for (int i = 0; i < 5; i++) {
		if (request->padding[i] || request->config.padding[i])
			return -EINVAL;
	}
	return request->num_lines == 1 && request->config.num_attrs == 0 ? 0 : -EINVAL;
}

static int recorder_control(int file, unsigned long request, void *argument)
{
	CHECK(file == DEVICE || file == LINE);
	CHECK(seen.requests < CALLS_MAX);
	seen.request[seen.requests++] = request;
	if (request == seen.fails)
		return seen.with;
	switch (request) {
	case PTP_CLOCK_GETCAPS:
		*(struct ptp_clock_caps *)argument = (struct ptp_clock_caps){ .n_pins = 4, .n_per_out = 2, .n_ext_ts = 2 };
		return 0;
	case PTP_PIN_SETFUNC2:
		seen.description = *(struct ptp_pin_desc *)argument;
		for (int i = 0; i < 5; i++) {
			if (seen.description.rsv[i])
				return -EINVAL;
		}
		return 0;
	case PTP_PEROUT_REQUEST2:
		seen.output = *(struct ptp_perout_request *)argument;
		return check_output(&seen.output);
	case PTP_EXTTS_REQUEST2:
		seen.stamp = *(struct ptp_extts_request *)argument;
		return check_stamp(&seen.stamp);
	case GPIO_GET_CHIPINFO_IOCTL:
		((struct gpiochip_info *)argument)->lines = 32;
		return 0;
	case GPIO_V2_GET_LINE_IOCTL:
		seen.line = *(struct gpio_v2_line_request *)argument;
		((struct gpio_v2_line_request *)argument)->fd = LINE;
		seen.open_files++;
		return check_line(&seen.line);
	case GPIO_V2_LINE_SET_VALUES_IOCTL:
		CHECK_INT(file, LINE);
		seen.values = *(struct gpio_v2_line_values *)argument;
		return 0;
	default:
		return -ENOTTY;
	}
}

static ssize_t recorder_read(int file, void *data, size_t size_bytes)
{
	size_t bytes = seen.events_bytes;

	CHECK(file == DEVICE || file == LINE);
	CHECK(bytes <= size_bytes);
	memcpy(data, seen.events, bytes);
	if (!seen.apart_ns)
		seen.events_bytes = 0;
	return (ssize_t)bytes;
}

static int recorder_wait(int file, int64_t timeout_ns)
{
	int64_t left_ns = seen.apart_ns - seen.now_monotonic_ns % (seen.apart_ns ? seen.apart_ns : 1);

	(void)file;
	CHECK(timeout_ns >= 0);
	if (!seen.apart_ns)
		return seen.events_bytes ? 0 : -ETIMEDOUT;
	if (++seen.waits > WAITS_MAX)
		return -EIO; /* for ever */
	seen.now_monotonic_ns += left_ns < timeout_ns ? left_ns : timeout_ns;
	return left_ns <= timeout_ns ? 0 : -ETIMEDOUT;
}

static int64_t recorder_now_monotonic_ns(void)
{
	return seen.now_monotonic_ns;
}

static const struct device_calls recorder = {
	.open = recorder_open, .control = recorder_control, .read = recorder_read, .wait = recorder_wait,
	.close = recorder_close, .now_monotonic_ns = recorder_now_monotonic_ns,
};

/* The last of the requests was this one. */
static void check_request(unsigned long request)
{
	CHECK(seen.requests > 0 && seen.request[seen.requests - 1] == request);
}

/* ---- PTP ----------------------------------------------------------------------------------------------------------- */

static struct port_ptp_pin *open_ptp(int number)
{
	struct port_ptp_pin *pin = NULL;

	CHECK_INT(ptp_pin_open_with(&recorder, "/dev/there", number, 1, &pin), 0);
	return pin;
}

static void test_ptp_open(void)
{
	struct port_ptp_pin *pin = NULL;

	reset();
	CHECK_INT(ptp_pin_open_with(&recorder, "/dev/elsewhere", 0, 0, &pin), -ENOENT);
	CHECK_INT(ptp_pin_open_with(&recorder, "/dev/there", 4, 0, &pin), -ENXIO);
	seen.fails = PTP_CLOCK_GETCAPS;
	seen.with = -EINVAL;
	CHECK_INT(ptp_pin_open_with(&recorder, "/dev/there", 0, 0, &pin), -ENOTTY);
	CHECK_INT(seen.open_files, 0);
}

static void test_ptp_output(void)
{
	struct port_ptp_pin *pin;

	reset();
	pin = open_ptp(2);
	CHECK_INT(port_ptp_pin_periodic(pin, INT64_C(1790000000000000008), 2000000), 0);
	CHECK_INT(seen.description.index, 2);
	CHECK_INT(seen.description.func, PTP_PF_PEROUT);
	CHECK_INT(seen.description.chan, 1);
	check_request(PTP_PEROUT_REQUEST2);
	CHECK_INT(seen.output.start.sec, 1790000000);
	CHECK_INT(seen.output.start.nsec, 8);
	CHECK_INT(seen.output.period.sec, 0);
	CHECK_INT(seen.output.period.nsec, 2000000);
	CHECK_INT(seen.output.index, 1);
	CHECK_INT(seen.output.flags, 0);

	CHECK_INT(port_ptp_pin_one_shot(pin, INT64_C(1790000001500000000)), 0);
	CHECK_INT(seen.output.flags, PTP_PEROUT_ONE_SHOT);
	CHECK_INT(seen.output.start.nsec, 500000000);
	CHECK(seen.output.period.sec || seen.output.period.nsec); /* a period of zero would switch it off */

	CHECK_INT(port_ptp_pin_stop(pin), 0);
	check_request(PTP_PIN_SETFUNC2);
	CHECK_INT(seen.output.period.sec, 0);
	CHECK_INT(seen.output.period.nsec, 0);
	CHECK_INT(seen.description.func, PTP_PF_NONE);

	seen.fails = PTP_PEROUT_REQUEST2;
	seen.with = -EOPNOTSUPP;
	CHECK_INT(port_ptp_pin_one_shot(pin, 1), -ENOTSUP);
	seen.fails = PTP_PIN_SETFUNC2;
	seen.with = -EBUSY;
	CHECK_INT(port_ptp_pin_periodic(pin, 1, 1), -EBUSY);
	port_ptp_pin_close(pin);
	CHECK_INT(seen.open_files, 0);
}

/* A device without pins that can be chosen: the channel is asked for at once. */
static void test_ptp_without_pins(void)
{
	struct port_ptp_pin *pin;

	reset();
	pin = open_ptp(-1);
	CHECK_INT(port_ptp_pin_periodic(pin, 1000000000, 1000000000), 0);
	for (int i = 0; i < seen.requests; i++)
		CHECK(seen.request[i] != PTP_PIN_SETFUNC2);
	port_ptp_pin_close(pin);
}

static void test_ptp_channels(void)
{
	struct port_ptp_pin *pin = NULL;

	reset();
	CHECK_INT(ptp_pin_open_with(&recorder, "/dev/there", 0, 2, &pin), 0);
	CHECK_INT(port_ptp_pin_periodic(pin, 1000000000, 1000000000), -ENXIO);
	CHECK_INT(port_ptp_pin_one_shot(pin, 1000000000), -ENXIO);
	CHECK_INT(port_ptp_pin_capture(pin, PORT_PTP_RISING), -ENXIO);
	CHECK_INT(seen.requests, 1); /* what the clock has */
	port_ptp_pin_close(pin);
}

static void test_ptp_capture(void)
{
	const struct ptp_extts_event events[] = {
		{ .t = { .sec = 5, .nsec = 16 }, .index = 1 },
		{ .t = { .sec = 6, .nsec = 24 }, .index = 0 }, /* of another channel */
		{ .t = { .sec = 7, .nsec = 999999999 }, .index = 1 },
	};
	struct port_ptp_pin *pin;
	int64_t phc_ns;

	reset();
	pin = open_ptp(3);
	CHECK_INT(port_ptp_pin_capture(pin, PORT_PTP_RISING), 0);
	CHECK_INT(seen.description.func, PTP_PF_EXTTS);
	check_request(PTP_EXTTS_REQUEST2);
	CHECK_INT(seen.stamp.index, 1);
	CHECK_INT(seen.stamp.flags, PTP_ENABLE_FEATURE | PTP_RISING_EDGE | PTP_STRICT_FLAGS);
	CHECK_INT(port_ptp_pin_captured(pin, &phc_ns, 0), -ETIMEDOUT);
	seen.events = events;
	seen.events_bytes = sizeof(events);
	CHECK_INT(port_ptp_pin_captured(pin, &phc_ns, 0), 0);
	CHECK_INT(phc_ns, 5000000016);
	CHECK_INT(port_ptp_pin_captured(pin, &phc_ns, 0), 0);
	CHECK_INT(phc_ns, 7999999999);
	CHECK_INT(port_ptp_pin_captured(pin, &phc_ns, 0), -ETIMEDOUT);
	seen.events_bytes = sizeof(events[0]) - 1;
	CHECK_INT(port_ptp_pin_captured(pin, &phc_ns, 0), -EIO);
	CHECK_INT(port_ptp_pin_capture(pin, PORT_PTP_BOTH), 0);
	CHECK_INT(seen.stamp.flags, PTP_ENABLE_FEATURE | PTP_EXTTS_EDGES | PTP_STRICT_FLAGS);
	CHECK_INT(port_ptp_pin_capture_end(pin), 0);
	CHECK_INT(seen.stamp.flags, 0);
	CHECK_INT(seen.description.func, PTP_PF_NONE);
	/* As igb says of an i210, which stamps both edges and cannot be asked for one. */
	seen.fails = PTP_EXTTS_REQUEST2;
	seen.with = -EOPNOTSUPP;
	CHECK_INT(port_ptp_pin_capture(pin, PORT_PTP_RISING), -ENOTSUP);
	port_ptp_pin_close(pin);
}

/* Another channel whose events never end does not hold up who waits for this one. */
static void test_ptp_capture_beside_a_busy_channel(void)
{
	const struct ptp_extts_event other = { .t = { .sec = 6, .nsec = 24 }, .index = 0 };
	struct port_ptp_pin *pin;
	int64_t phc_ns;

	reset();
	pin = open_ptp(3);
	CHECK_INT(port_ptp_pin_capture(pin, PORT_PTP_RISING), 0);
	seen.events = &other;
	seen.events_bytes = sizeof(other);
	seen.apart_ns = 2000000;
	seen.now_monotonic_ns = 1500000;
	CHECK_INT(port_ptp_pin_captured(pin, &phc_ns, 50000000), -ETIMEDOUT);
	CHECK_INT(seen.now_monotonic_ns, 51500000);
	CHECK_INT(port_ptp_pin_captured(pin, &phc_ns, 0), -ETIMEDOUT);
	CHECK_INT(seen.now_monotonic_ns, 51500000);
	seen.apart_ns = 10; /* it comes while the last one is read: looked at once */
	CHECK_INT(port_ptp_pin_captured(pin, &phc_ns, 1), -ETIMEDOUT);
	port_ptp_pin_close(pin);
}

/* ---- GPIO ---------------------------------------------------------------------------------------------------------- */

static void test_gpio_output(void)
{
	struct port_gpio_line *line = NULL;

	reset();
	CHECK_INT(gpio_open_with(&recorder, "/dev/there", 32, &line), -ENXIO);
	CHECK_INT(gpio_open_with(&recorder, "/dev/there", 17, &line), 0);
	CHECK_INT(port_gpio_output(line), 0);
	CHECK_INT(seen.line.offsets[0], 17);
	CHECK_INT(seen.line.config.flags, GPIO_V2_LINE_FLAG_OUTPUT);
	CHECK_TEXT(seen.line.consumer, "bw-edge");
	CHECK_INT(port_gpio_set(line, true), 0);
	CHECK_INT(seen.values.bits, 1);
	CHECK_INT(seen.values.mask, 1);
	CHECK_INT(port_gpio_set(line, false), 0);
	CHECK_INT(seen.values.bits, 0);
	seen.fails = GPIO_V2_GET_LINE_IOCTL;
	seen.with = -EBUSY;
	CHECK_INT(port_gpio_output(line), -EBUSY);
	port_gpio_close(line);
	CHECK_INT(seen.open_files, 0);
}

static void test_gpio_capture(void)
{
	const struct gpio_v2_line_event events[] = {
		{ .timestamp_ns = 1000, .id = GPIO_V2_LINE_EVENT_RISING_EDGE, .offset = 5, .line_seqno = 1 },
		{ .timestamp_ns = 2000, .id = GPIO_V2_LINE_EVENT_FALLING_EDGE, .offset = 5, .line_seqno = 2 },
		{ .timestamp_ns = 3000, .id = GPIO_V2_LINE_EVENT_RISING_EDGE, .offset = 5, .line_seqno = 4 },
	};
	struct port_gpio_line *line = NULL;
	int64_t realtime_ns;
	uint32_t sequence;

	reset();
	CHECK_INT(gpio_open_with(&recorder, "/dev/there", 5, &line), 0);
	CHECK_INT(port_gpio_capture(line), 0);
	CHECK_INT(seen.line.config.flags, GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING |
						  GPIO_V2_LINE_FLAG_EVENT_CLOCK_REALTIME);
	seen.events = events;
	seen.events_bytes = sizeof(events);
	CHECK_INT(port_gpio_captured(line, &sequence, &realtime_ns, 0), 0);
	CHECK_INT(sequence, 1);
	CHECK_INT(realtime_ns, 1000);
	CHECK_INT(port_gpio_captured(line, &sequence, &realtime_ns, 0), 0);
	CHECK_INT(sequence, 4);
	CHECK_INT(realtime_ns, 3000);
	CHECK_INT(port_gpio_captured(line, &sequence, &realtime_ns, 0), -ETIMEDOUT);
	port_gpio_close(line);
	CHECK_INT(seen.open_files, 0);
}

/* Nor do edges of a line that were not asked for. */
static void test_gpio_capture_beside_other_edges(void)
{
	const struct gpio_v2_line_event falling = { .timestamp_ns = 2000, .id = GPIO_V2_LINE_EVENT_FALLING_EDGE, .line_seqno = 2 };
	struct port_gpio_line *line = NULL;
	int64_t realtime_ns;
	uint32_t sequence;

	reset();
	CHECK_INT(gpio_open_with(&recorder, "/dev/there", 5, &line), 0);
	CHECK_INT(port_gpio_capture(line), 0);
	seen.events = &falling;
	seen.events_bytes = sizeof(falling);
	seen.apart_ns = 2000000;
	CHECK_INT(port_gpio_captured(line, &sequence, &realtime_ns, 49000000), -ETIMEDOUT);
	CHECK_INT(seen.now_monotonic_ns, 49000000);
	port_gpio_close(line);
}

/* ---- pulses per second --------------------------------------------------------------------------------------------- */

static int read_character(const char *folder, const char *name)
{
	char path[256];
	FILE *file;
	int character;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "r");
	if (!file)
		return -1;
	character = fgetc(file);
	fclose(file);
	return character;
}

static void test_pps(void)
{
	char folder[] = "/tmp/bw-edge-pps-XXXXXX", path[256];

	CHECK(mkdtemp(folder) != NULL);
	CHECK_INT(port_pps_check(folder), -ENODEV);
	write_text(folder, "system", "0\n"); /* a generator with a clock of its own */
	CHECK_INT(port_pps_check(folder), -ENOTSUP);
	write_text(folder, "system", "1\n");
	CHECK_INT(port_pps_check(folder), 0);
	CHECK_INT(port_pps_enable(folder, true), -ENOENT);
	write_text(folder, "enable", "");
	CHECK_INT(port_pps_enable(folder, true), 0);
	CHECK_INT(read_character(folder, "enable"), '1');
	CHECK_INT(port_pps_enable(folder, false), 0);
	CHECK_INT(read_character(folder, "enable"), '0');
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, i ? "system" : "enable");
		unlink(path);
	}
	CHECK_INT(rmdir(folder), 0);
}

int main(void)
{
	test_ptp_open();
	test_ptp_output();
	test_ptp_without_pins();
	test_ptp_channels();
	test_ptp_capture();
	test_ptp_capture_beside_a_busy_channel();
	test_gpio_output();
	test_gpio_capture();
	test_gpio_capture_beside_other_edges();
	test_pps();
	return check_result();
}
