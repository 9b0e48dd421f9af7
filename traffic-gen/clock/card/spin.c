/* SPDX-License-Identifier: Apache-2.0 */
#include "clock/card/spin.h"

#include <string.h>

#include "base/time_units.h"
#include "port/port.h"

#define LINGER_NS INT64_C(400000)    /* look all the time for so long after an answer */
#define PER_S_MAX_NS (NS_PER_S / 2)  /* and never longer than this in a second */
#define WINDOW_NS (10 * NS_PER_MS)
#define WINDOW_ANSWERS_MIN 200       /* of a guest on another CPU: thousands */
#define CALIBRATION_OVER_NS (50 * NS_PER_MS)

void spin_init(struct spin *spin, bool may_move)
{
	memset(spin, 0, sizeof(*spin));
	spin->cpu_count = port_cpu_count();
	if (spin->cpu_count > SPIN_CPUS_MAX)
		spin->cpu_count = SPIN_CPUS_MAX;
	for (int i = 0; i < spin->cpu_count; i++)
		spin->cpus[i] = port_cpu_at(i);
	spin->may_move = may_move && spin->cpu_count > 1;
}

static void pin(struct spin *spin, int64_t now_monotonic_ns)
{
	spin->pinned = port_thread_set_cpus(&spin->cpus[spin->preferred], 1) == 0;
	spin->window_monotonic_ns = now_monotonic_ns;
	spin->window_answers = 0;
}

/* Choose a CPU by how many answers are given there. */
static void place(struct spin *spin, int64_t now_monotonic_ns, uint64_t answers)
{
	if (!spin->pinned) {
		if (answers)
			pin(spin, now_monotonic_ns);
		return;
	}
	spin->window_answers += answers;
	if (now_monotonic_ns - spin->window_monotonic_ns < WINDOW_NS)
		return;
	if (spin->window_answers && spin->window_answers < WINDOW_ANSWERS_MIN) {
		spin->preferred = (spin->preferred + 1) % spin->cpu_count;
		spin->moves++;
		pin(spin, now_monotonic_ns);
	} else if (spin->window_answers) {
		spin->window_monotonic_ns = now_monotonic_ns;
		spin->window_answers = 0;
	} else if (now_monotonic_ns - spin->window_monotonic_ns > CALIBRATION_OVER_NS) {
		/* Nobody calibrates: publish from wherever there is room. */
		spin->pinned = port_thread_set_cpus(spin->cpus, spin->cpu_count) != 0;
	}
}

bool spin_on(struct spin *spin, int64_t now_monotonic_ns, uint64_t answers)
{
	if (spin->spun_ns >= PER_S_MAX_NS) {
		/* Whoever is asked by a server that sleeps is answered late: that says nothing of the CPU. */
		spin->window_monotonic_ns = now_monotonic_ns;
		spin->window_answers = 0;
	} else if (spin->may_move) {
		place(spin, now_monotonic_ns, answers);
	}
	if (now_monotonic_ns - spin->second_monotonic_ns >= NS_PER_S) {
		spin->second_monotonic_ns = now_monotonic_ns;
		spin->spun_ns = 0;
	}
	if (answers)
		spin->until_monotonic_ns = now_monotonic_ns + LINGER_NS;
	if (spin->last_monotonic_ns)
		spin->spun_ns += now_monotonic_ns - spin->last_monotonic_ns;
	spin->last_monotonic_ns = now_monotonic_ns;
	if (now_monotonic_ns < spin->until_monotonic_ns && spin->spun_ns < PER_S_MAX_NS)
		return true;
	spin->last_monotonic_ns = 0; /* the sleep does not count */
	return false;
}
