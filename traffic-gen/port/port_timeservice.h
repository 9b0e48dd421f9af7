/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port layer of the time service's page: a file that one process writes and all others map read-only, and what tells
 * one boot from another. As in port.h, functions return 0 or -errno and never print.
 */
#ifndef BW_PORT_TIMESERVICE_H
#define BW_PORT_TIMESERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct port_timepage {
	const void *readable;
	void *writable; /* NULL: mapped by a reader */
	size_t size_bytes;
	intptr_t file, lock; /* internal */
};

/**
 * Name this boot of the machine: differs after every boot, the same in all processes until then.
 *
 * @return 0 or -errno
 */
int port_boot_id(uint64_t id[2]);
/** Where the page is when a caller names no place: what BWTIME_PAGE says (not in privileged programs), or the system's place. */
const char *port_timepage_default_path(void);
/**
 * Make the file, if there is none, readable by all; map it and lock it (PATH.lock) against a second writer. What stands in
 * it stays.
 *
 * @param path  NULL: port_timepage_default_path()
 * @return 0; -EBUSY: locked; -EPERM: the file is of another user, no regular file, or others may write to it; or -errno
 */
int port_timepage_create(const char *path, size_t size_bytes, struct port_timepage *page);
/**
 * Put a new file of zeros in the place of the one that is mapped. Who has mapped that keeps it, as it is.
 *
 * @return as port_timepage_create; on failure it is closed
 */
int port_timepage_renew(const char *path, size_t size_bytes, struct port_timepage *page);
/**
 * Look whether the file that is mapped, and its lock, are still where they were made.
 *
 * @return 1; 0: they were taken away, or others are in their place; or -errno
 */
int port_timepage_is_there(const char *path, const struct port_timepage *page);
/**
 * Make file and lock anew, where they were taken away. Who has mapped the old file keeps it.
 *
 * @param old  receives the mapping of before, for port_timepage_close()
 * @return as port_timepage_create; on failure nothing has changed
 */
int port_timepage_remake(const char *path, size_t size_bytes, struct port_timepage *page, struct port_timepage *old);
/**
 * Map a page read-only.
 *
 * @return 0; -EMSGSIZE: shorter than size_bytes; -EPERM: no regular file, or others than its owner may write to it (who may write,
 *         may cut it off under the mapping); or -errno
 */
int port_timepage_open(const char *path, size_t size_bytes, struct port_timepage *page);
/** Unmap and unlock; the file stays. A page of zeros is left alone. */
void port_timepage_close(struct port_timepage *page);

/** The system's CLOCK_REALTIME in ns, as its kernel stamps by. Real-time safe. */
int64_t port_timepage_realtime_ns(void);

/**
 * Say whether the processor promises that its counter runs at one rate in all states of power: x86's "invariant TSC" (CPUID
 * 0x80000007, EDX bit 8); ARM's generic timer always does.
 */
bool port_counter_invariant(void);
/** How long this machine was suspended since its boot, to some microseconds; 0 where the system does not tell. */
int64_t port_suspended_ns(void);

#endif
