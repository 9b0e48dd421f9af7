/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: files that nobody else may read, and memory that is wiped. */
#define _GNU_SOURCE
#include "port/port_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *port_secret_allowed(void)
{
	return "a regular file of this user or of root, mode 0400 or 0600";
}

/*
 * A credential of systemd (systemd.exec(5), LoadCredential=) is root's, and an access control list lets the service read it: the
 * bits of the group then show the list's mask. Members of root's own group can read root's files by that, nobody else.
 */
static bool is_secret(const struct stat *status)
{
	mode_t others = status->st_mode & (S_IRWXG | S_IRWXO);

	if (!S_ISREG(status->st_mode) || (status->st_uid != 0 && status->st_uid != geteuid()))
		return false;
	return others == 0 || (others == S_IRGRP && status->st_uid == 0 && status->st_gid == 0);
}

static int64_t read_all(int fd, char *data, size_t size_bytes)
{
	size_t length = 0;

	while (length < size_bytes) {
		ssize_t done = read(fd, data + length, size_bytes - length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (done == 0)
			return (int64_t)length;
		length += (size_t)done;
	}
	return -EFBIG;
}

int64_t port_secret_read(const char *path, void *data, size_t size_bytes)
{
	/* A FIFO in its place must not hold the service up. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	int64_t length;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status))
		length = -errno;
	else
		length = is_secret(&status) ? read_all(fd, data, size_bytes) : -EPERM;
	close(fd);
	if (length < 0)
		port_secret_wipe(data, size_bytes);
	return length;
}

void port_secret_wipe(void *data, size_t size_bytes)
{
	explicit_bzero(data, size_bytes);
}
