/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/witness/cpu_shares.h"

/* Take a counter's new value. Return how much of what is untold fits between two wake-ups; the rest is told later. */
static int64_t take(struct cpu_share *share, int64_t counter_ns, int64_t between_ns)
{
	int64_t untold_ns = share->untold_ns + counter_ns - share->counter_ns;
	int64_t told_ns = untold_ns < between_ns ? untold_ns : between_ns;

	share->counter_ns = counter_ns;
	share->untold_ns = untold_ns - told_ns;
	return told_ns;
}

static int64_t read_target_ns(struct cpu_shares *shares, int64_t between_ns)
{
	int64_t cpu_ns;

	if (!shares->target || shares->target_lost)
		return 0;
	if (port_cpu_account_read(shares->target, shares->cpu, &cpu_ns)) {
		shares->target_lost = true;
		return 0;
	}
	return take(&shares->of_target, cpu_ns, between_ns);
}

/* Read what the thread that keeps the CPU awake has run, and the calling one, at whose cost interrupts ran. */
static int64_t read_nobody_ns(struct cpu_shares *shares, const struct port_thread *idle, int64_t between_ns)
{
	int64_t cpu_ns;

	if (shares->unclaimed_lost || port_thread_ran_ns(idle, &cpu_ns)) {
		shares->unclaimed_lost = true;
		return between_ns;
	}
	cpu_ns += port_thread_cpu_ns();
	if (shares->idle_read != idle) {
		shares->idle_read = idle;
		shares->of_nobody = (struct cpu_share){ .counter_ns = cpu_ns };
		return between_ns;
	}
	return take(&shares->of_nobody, cpu_ns, between_ns);
}

static int64_t read_interrupts_ns(struct cpu_shares *shares, int64_t between_ns)
{
	int64_t interrupts_ns, told_ns;

	if (!shares->interrupts_apart || port_cpu_interrupts_ns(shares->cpu, &interrupts_ns))
		return 0;
	told_ns = take(&shares->of_interrupts, interrupts_ns, between_ns);
	shares->of_interrupts.untold_ns = 0; /* what ran since the stall before, too: most of it is nobody's delay */
	return told_ns;
}

void cpu_shares_begin(struct cpu_shares *shares, int64_t wake_monotonic_ns)
{
	read_target_ns(shares, 0);
	shares->of_target.untold_ns = 0; /* from here on it counts */
	shares->interrupts_apart = !port_cpu_interrupts_ns(shares->cpu, &shares->of_interrupts.counter_ns);
	shares->wake_monotonic_ns = wake_monotonic_ns;
}

struct stall_shares cpu_shares_read(struct cpu_shares *shares, int64_t wake_monotonic_ns, bool is_stall)
{
	int64_t between_ns = wake_monotonic_ns - shares->wake_monotonic_ns;
	const struct port_thread *idle = atomic_load_explicit(&shares->idle, memory_order_acquire);
	struct stall_shares read = { .target_ran_ns = read_target_ns(shares, between_ns), .unclaimed_ns = between_ns };

	shares->wake_monotonic_ns = wake_monotonic_ns;
	if (idle)
		read.unclaimed_ns = read_nobody_ns(shares, idle, between_ns);
	if (is_stall)
		read.unclaimed_ns += read_interrupts_ns(shares, between_ns);
	if (read.unclaimed_ns > between_ns)
		read.unclaimed_ns = between_ns;
	return read;
}
