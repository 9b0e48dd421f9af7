/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on device files, as a table, so that tests can see what the kernel would be told. Private to port_linux_*.c and
 * their tests.
 */
#ifndef BW_PORT_LINUX_DEVICE_H
#define BW_PORT_LINUX_DEVICE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct port_gpio_line;
struct port_ptp_pin;

struct device_calls {
	int (*open)(const char *path, int flags);                      /* file or -errno */
	int (*control)(int file, unsigned long request, void *argument); /* 0 or -errno */
	ssize_t (*read)(int file, void *data, size_t size_bytes);      /* bytes or -errno */
	int (*wait)(int file, int64_t timeout_ns);                     /* 0, -ETIMEDOUT, -EINTR or -errno */
	void (*close)(int file);
	int64_t (*now_monotonic_ns)(void);
};

/* Those of the kernel. */
extern const struct device_calls device_calls_kernel;

int ptp_pin_open_with(const struct device_calls *calls, const char *path, int pin, int channel, struct port_ptp_pin **pin_out);
int gpio_open_with(const struct device_calls *calls, const char *path, unsigned int line, struct port_gpio_line **line_out);

#endif
