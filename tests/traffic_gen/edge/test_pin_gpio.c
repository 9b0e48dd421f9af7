/* SPDX-License-Identifier: Apache-2.0 */
/* Stamps of a GPIO line, which the test plays, in TAI: by what the command line says where the kernel does not know it. */
#include <errno.h>

#include "../check.h"
#include "base/time_units.h"
#include "config/options.h"
#include "edge/pins/pin.h"
#include "port/port.h"
#include "port/port_edge.h"

#define REALTIME_NS INT64_C(1795284915000000000)

static int place; /* its address stands for a line */
static int kernel_tai_utc_s;

void port_tai_init(struct port_tai *tai, int fallback_tai_utc_s)
{
	tai->kernel_tai_utc_s = kernel_tai_utc_s;
	tai->tai_utc_s = kernel_tai_utc_s ? kernel_tai_utc_s : fallback_tai_utc_s;
}

int64_t port_tai_from_realtime_ns(const struct port_tai *tai, int64_t realtime_ns)
{
	return realtime_ns + tai->tai_utc_s * NS_PER_S;
}

int port_gpio_open(const char *path, unsigned int line, struct port_gpio_line **line_out)
{
	CHECK_TEXT(path, "/dev/gpiochip0");
	CHECK_INT(line, 17);
	*line_out = (struct port_gpio_line *)&place;
	return 0;
}

void port_gpio_close(struct port_gpio_line *line)
{
	CHECK(line == (struct port_gpio_line *)&place);
}

int port_gpio_output(struct port_gpio_line *line)
{
	(void)line;
	return -EBUSY;
}

int port_gpio_set(struct port_gpio_line *line, bool high)
{
	(void)line;
	(void)high;
	return -EBUSY;
}

int port_gpio_capture(struct port_gpio_line *line)
{
	(void)line;
	return 0;
}

int port_gpio_captured(struct port_gpio_line *line, uint32_t *sequence, int64_t *realtime_ns, int64_t timeout_ns)
{
	(void)line;
	(void)timeout_ns;
	*sequence = 5;
	*realtime_ns = REALTIME_NS;
	return 0;
}

void port_gpio_release(struct port_gpio_line *line)
{
	(void)line;
}

/* @return TAI - UTC by which an edge is stamped */
static int64_t stamped_by_s(int told_s)
{
	struct edge_pin pin = { .kind = &edge_pin_gpio, .tai_utc_s = told_s };
	int64_t instant_tai_ns = 0;
	uint64_t sequence = 9;
	char error[EDGE_PIN_ERROR_BYTES];

	CHECK_INT(pin.kind->open(&pin, "/dev/gpiochip0,line=17", error, sizeof(error)), 0);
	CHECK_INT(pin.kind->capture_begin(&pin), 0);
	CHECK_INT(pin.kind->capture_next(&pin, &sequence, &instant_tai_ns, 0), 0);
	CHECK_INT(sequence, 0);
	pin.kind->close(&pin);
	return (instant_tai_ns - REALTIME_NS) / NS_PER_S;
}

int main(void)
{
	kernel_tai_utc_s = 0;
	CHECK_INT(stamped_by_s(TAI_UTC_DEFAULT_S), TAI_UTC_DEFAULT_S);
	CHECK_INT(stamped_by_s(38), 38);
	kernel_tai_utc_s = 39;
	CHECK_INT(stamped_by_s(38), 39);
	return check_result();
}
