/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hypervisor says of the counter of its guest: the page of the VMClock device, /dev/vmclock0 of Linux 6.13 and later
 * (linux/vmclock-abi.h). Its disruption marker changes when the guest was moved to another machine, or its counter did not go on as
 * it had. As in port.h, functions return 0 or -errno and never print.
 */
#ifndef BW_PORT_VMCLOCK_H
#define BW_PORT_VMCLOCK_H

#include <stddef.h>
#include <stdint.h>

struct port_vmclock {
	const void *page; /* NULL: not open */
	size_t size_bytes;
};

/**
 * Map the page, read-only: /dev/vmclock0, or what BWTIME_VMCLOCK names (not in privileged programs).
 *
 * @return 0; -ENOENT: there is none; -EPROTO: something else is there, or of another version; -EMSGSIZE: a file that is too
 *         short; or -errno
 */
int port_vmclock_open(struct port_vmclock *vmclock);
/** @return 0, or -EAGAIN: it is being changed, for longer than this waits: some microseconds */
int port_vmclock_marker(const struct port_vmclock *vmclock, uint64_t *marker);
void port_vmclock_close(struct port_vmclock *vmclock);

#endif
