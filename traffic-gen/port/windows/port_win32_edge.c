/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: it has neither PTP pins nor GPIO lines nor pulse generators that a program can use. */
#include <errno.h>
#include <stddef.h>

#include "port/port_edge.h"

int port_ptp_pin_open(const char *path, int pin, int channel, struct port_ptp_pin **pin_out)
{
	(void)path;
	(void)pin;
	(void)channel;
	*pin_out = NULL;
	return -ENOTSUP;
}

void port_ptp_pin_close(struct port_ptp_pin *pin)
{
	(void)pin;
}

int port_ptp_pin_now_ns(const struct port_ptp_pin *pin, int64_t *phc_ns)
{
	(void)pin;
	(void)phc_ns;
	return -ENOTSUP;
}

int port_ptp_pin_periodic(struct port_ptp_pin *pin, int64_t start_phc_ns, int64_t period_ns)
{
	(void)pin;
	(void)start_phc_ns;
	(void)period_ns;
	return -ENOTSUP;
}

int port_ptp_pin_one_shot(struct port_ptp_pin *pin, int64_t at_phc_ns)
{
	(void)pin;
	(void)at_phc_ns;
	return -ENOTSUP;
}

int port_ptp_pin_stop(struct port_ptp_pin *pin)
{
	(void)pin;
	return -ENOTSUP;
}

int port_ptp_pin_capture(struct port_ptp_pin *pin, enum port_ptp_edges edges)
{
	(void)pin;
	(void)edges;
	return -ENOTSUP;
}

int port_ptp_pin_captured(struct port_ptp_pin *pin, int64_t *phc_ns, int64_t timeout_ns)
{
	(void)pin;
	(void)phc_ns;
	(void)timeout_ns;
	return -ENOTSUP;
}

int port_ptp_pin_capture_end(struct port_ptp_pin *pin)
{
	(void)pin;
	return -ENOTSUP;
}

int port_gpio_open(const char *path, unsigned int line, struct port_gpio_line **line_out)
{
	(void)path;
	(void)line;
	*line_out = NULL;
	return -ENOTSUP;
}

void port_gpio_close(struct port_gpio_line *line)
{
	(void)line;
}

int port_gpio_output(struct port_gpio_line *line)
{
	(void)line;
	return -ENOTSUP;
}

int port_gpio_set(struct port_gpio_line *line, bool high)
{
	(void)line;
	(void)high;
	return -ENOTSUP;
}

int port_gpio_capture(struct port_gpio_line *line)
{
	(void)line;
	return -ENOTSUP;
}

int port_gpio_captured(struct port_gpio_line *line, uint32_t *sequence, int64_t *realtime_ns, int64_t timeout_ns)
{
	(void)line;
	(void)sequence;
	(void)realtime_ns;
	(void)timeout_ns;
	return -ENOTSUP;
}

void port_gpio_release(struct port_gpio_line *line)
{
	(void)line;
}

int port_pps_check(const char *folder)
{
	(void)folder;
	return -ENOTSUP;
}

int port_pps_enable(const char *folder, bool on)
{
	(void)folder;
	(void)on;
	return -ENOTSUP;
}
