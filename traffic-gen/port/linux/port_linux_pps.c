/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer for Linux: generators of pulses per second (Documentation/ABI/testing/sysfs-pps-gen of Linux, from 6.13 on; Intel's
 * TGPIO: drivers/pps/generators/pps_gen_tio.c, from 6.15 on).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "port/port_edge.h"

static int open_attribute(const char *folder, const char *name, int flags)
{
	char path[PATH_MAX];
	int file;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	file = open(path, flags | O_CLOEXEC);
	return file < 0 ? -errno : file;
}

int port_pps_check(const char *folder)
{
	char value = '\0';
	int file = open_attribute(folder, "system", O_RDONLY);
	ssize_t bytes;

	if (file < 0)
		return file == -ENOENT || file == -ENOTDIR ? -ENODEV : file;
	bytes = read(file, &value, 1);
	close(file);
	return bytes == 1 && value == '1' ? 0 : -ENOTSUP;
}

int port_pps_enable(const char *folder, bool on)
{
	int file = open_attribute(folder, "enable", O_WRONLY);
	int err;

	if (file < 0)
		return file;
	err = write(file, on ? "1" : "0", 1) == 1 ? 0 : -errno;
	close(file);
	return err;
}
