/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who had a CPU between two wake-ups of a watcher: what a target ran there, and what nobody claims. The rest of that time a
 * hypervisor took, or a process outside of the target, by the scheduler's own account.
 */
#ifndef BW_CPU_SHARES_H
#define BW_CPU_SHARES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"
#include "traffic/witness/stall.h"

struct cpu_share {
	int64_t counter_ns; /* at the last reading */
	int64_t untold_ns;  /* what belongs to a later wake-up */
};

struct cpu_shares {
	int cpu;
	const struct port_cpu_account *target;          /* of the target's processes; NULL: none is read */
	_Atomic(const struct port_thread *) idle;       /* keeps the CPU awake; NULL: not yet, or nothing does */
	const struct port_thread *idle_read;            /* the one whose time of_nobody has */
	bool interrupts_apart;                          /* the system counts them apart from threads */
	bool target_lost;                               /* a reading failed */
	bool unclaimed_lost;                            /* the same */
	int64_t wake_monotonic_ns;                      /* the last wake-up */
	struct cpu_share of_target, of_nobody, of_interrupts;
};

/** Begin to count, in the thread that is asked from then on, at its wake-up. */
void cpu_shares_begin(struct cpu_shares *shares, int64_t wake_monotonic_ns);

/**
 * Return the shares of the time since the wake-up before. Real-time safe.
 *
 * What has run between the stamp of a wake-up and this reading is more than fits there: it delays the next wake-up, and is
 * told with that. Until something keeps the CPU awake nobody claims any of it: it may have slept.
 *
 * @param is_stall  read what is read for a stall alone: interrupts that are counted apart from threads
 */
struct stall_shares cpu_shares_read(struct cpu_shares *shares, int64_t wake_monotonic_ns, bool is_stall);

#endif
