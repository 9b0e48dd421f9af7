/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "port/linux/port_linux_device.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/time_units.h"

static int kernel_open(const char *path, int flags)
{
	int file = open(path, flags | O_CLOEXEC);

	return file < 0 ? -errno : file;
}

static int kernel_control(int file, unsigned long request, void *argument)
{
	return ioctl(file, request, argument) ? -errno : 0;
}

static ssize_t kernel_read(int file, void *data, size_t size_bytes)
{
	ssize_t bytes = read(file, data, size_bytes);

	return bytes < 0 ? -errno : bytes;
}

static int kernel_wait(int file, int64_t timeout_ns)
{
	struct timespec timeout = { .tv_sec = (time_t)(timeout_ns / NS_PER_S), .tv_nsec = (long)(timeout_ns % NS_PER_S) };
	struct pollfd one = { .fd = file, .events = POLLIN | POLLPRI };
	int ready = ppoll(&one, 1, &timeout, NULL);

	if (ready < 0)
		return -errno;
	if (ready == 0)
		return -ETIMEDOUT;
	return one.revents & (POLLIN | POLLPRI) ? 0 : -ENODEV;
}

static void kernel_close(int file)
{
	close(file);
}

static int64_t kernel_now_monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

const struct device_calls device_calls_kernel = {
	.open = kernel_open, .control = kernel_control, .read = kernel_read, .wait = kernel_wait, .close = kernel_close,
	.now_monotonic_ns = kernel_now_monotonic_ns,
};
