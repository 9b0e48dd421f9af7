/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the timecard's server looks at its pages all the time, and on which CPU. Only while somebody calibrates, and for half
 * of each second at most. A guest whose virtual CPU is on the server's CPU gets answers hundreds of microseconds late
 * and in small number; then the server moves on to the next CPU, and comes back to the one that went well.
 */
#ifndef BW_CLOCK_SPIN_H
#define BW_CLOCK_SPIN_H

#include <stdbool.h>
#include <stdint.h>

enum { SPIN_CPUS_MAX = 256 };

struct spin {
	int cpu_count;
	int cpus[SPIN_CPUS_MAX]; /* that the server may use */
	bool may_move;
	int preferred;           /* index of the CPU to calibrate on */
	bool pinned;
	int64_t until_monotonic_ns;  /* look all the time up to then */
	int64_t last_monotonic_ns;
	int64_t second_monotonic_ns, spun_ns;
	int64_t window_monotonic_ns; /* begin of the time in which answers are counted */
	uint64_t window_answers;
	uint64_t moves;
};

/** @param may_move  false: the caller has chosen a CPU */
void spin_init(struct spin *spin, bool may_move);
/**
 * Decide what to do after a look.
 *
 * @param answers  given by this look
 * @return true: look again at once; false: sleep (about 1 ms)
 */
bool spin_on(struct spin *spin, int64_t now_monotonic_ns, uint64_t answers);

#endif
