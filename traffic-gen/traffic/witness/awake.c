/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/witness/awake.h"

#include <errno.h>
#include <stdio.h>

#include "port/port_clock.h"

static void spin(void *argument)
{
	struct awake *awake = argument;

	while (!atomic_load_explicit(awake->over, memory_order_relaxed))
		port_counter_pause();
	awake->idle_ns = port_thread_cpu_ns();
}

int awake_start(struct awake *awake, int cpu, const atomic_bool *over)
{
	char name[16];
	int err;

	snprintf(name, sizeof(name), "awake-%d", cpu);
	awake->over = over;
	err = port_thread_start(name, PORT_PRIORITY_IDLE, cpu, spin, awake, &awake->thread);
	if (err)
		return err;
	return port_thread_scheduling(awake->thread)->cpu == cpu ? 0 : -ENODEV;
}

bool awake_join(struct awake *awake)
{
	bool was_idle;

	if (!awake->thread)
		return false;
	was_idle = port_thread_scheduling(awake->thread)->idle;
	port_thread_join(awake->thread);
	awake->thread = NULL;
	return was_idle;
}
