/* SPDX-License-Identifier: Apache-2.0 */
#include "port_private.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/resource.h>

#include "port_libc.h"

enum { PRIVATE_FDS = 256 }; /* this library's descriptors are the last ones below the limit */

/* Where the library's own descriptors begin. */
static int first_private(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur <= (rlim_t)2 * PRIVATE_FDS)
		return PRIVATE_FDS;
	return limit.rlim_cur > INT_MAX / 2 ? INT_MAX / 2 : (int)limit.rlim_cur - PRIVATE_FDS;
}

static uint8_t owned[PRIVATE_FDS]; /* of the descriptors from the first private one on */
static int owned_first = -1;

int private_move(int fd)
{
	int high;

	if (fd < 0)
		return -1;
	if (owned_first < 0)
		owned_first = first_private();
	high = libc_calls()->fcntl64(fd, F_DUPFD_CLOEXEC, owned_first);
	if (high < 0)
		return fd;
	libc_calls()->close(fd);
	if (high - owned_first < PRIVATE_FDS)
		owned[high - owned_first] = 1;
	return high;
}

bool private_owns(int fd)
{
	return owned_first >= 0 && fd >= owned_first && fd - owned_first < PRIVATE_FDS && owned[fd - owned_first];
}

int private_next(int fd)
{
	for (int at = fd < owned_first ? 0 : fd - owned_first + 1; owned_first >= 0 && at < PRIVATE_FDS; at++) {
		if (owned[at])
			return owned_first + at;
	}
	return -1;
}

void private_close(int fd)
{
	if (private_owns(fd))
		owned[fd - owned_first] = 0;
	if (fd >= 0)
		libc_calls()->close(fd);
}
