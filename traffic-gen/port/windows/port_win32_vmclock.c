/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows 10 and later: it shows programs no page of a VMClock device. */
#include "port/port_vmclock.h"

#include <errno.h>

int port_vmclock_open(struct port_vmclock *vmclock)
{
	*vmclock = (struct port_vmclock){ NULL, 0 };
	return -ENOENT;
}

int port_vmclock_marker(const struct port_vmclock *vmclock, uint64_t *marker)
{
	(void)vmclock;
	(void)marker;
	return -EAGAIN;
}

void port_vmclock_close(struct port_vmclock *vmclock)
{
	(void)vmclock;
}
