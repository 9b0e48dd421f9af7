/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CPU that never halts: a thread there spins when nothing else wants to run. A virtual CPU that has halted comes back
 * late on a shared machine. The thread's CPU time is what nobody else wanted.
 */
#ifndef BW_AWAKE_H
#define BW_AWAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

struct awake {
	const atomic_bool *over;
	struct port_thread *thread;
	int64_t idle_ns; /* CPU time of the thread, once it has ended */
};

/**
 * Keep a CPU awake until *over; then call awake_join(). A refusal of the idle class is noted in the thread's scheduling:
 * the thread does not run then.
 *
 * @return 0, -ENODEV when it cannot be pinned there (it runs; join it), or -errno
 */
int awake_start(struct awake *awake, int cpu, const atomic_bool *over);
/** Wait for the end. Needs *over. @return true: the CPU was kept awake and idle_ns is known */
bool awake_join(struct awake *awake);

#endif
