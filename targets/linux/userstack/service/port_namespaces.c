/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "service/port_service.h"

int namespaces_enter(int descriptor)
{
	return setns(descriptor, CLONE_NEWNET) ? -errno : 0;
}

int namespaces_without_ipv6(const char *interface)
{
	char path[128];
	int file, err = 0;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", interface);
	file = open(path, O_WRONLY | O_CLOEXEC);
	if (file < 0)
		return errno == ENOENT ? 0 : -errno; /* there is no IPv6 */
	if (write(file, "1", 1) < 0)
		err = -errno;
	close(file);
	return err;
}

static int this_namespace(void)
{
	int descriptor = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	return descriptor < 0 ? -errno : descriptor;
}

int namespaces_open(struct namespaces *namespaces)
{
	int err;

	namespaces->own = -1;
	namespaces->home = this_namespace();
	if (namespaces->home < 0)
		return namespaces->home;
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	namespaces->own = this_namespace();
	err = namespaces->own < 0 ? namespaces->own : namespaces_without_ipv6("default");
	return namespaces_enter(namespaces->home) ? -EIO : err;
}
