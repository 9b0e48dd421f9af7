/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Windows in which a CPU stalled: a thread that should have woken up did so too late.
 * Pure bookkeeping: the caller brings the times.
 */
#ifndef BW_STALL_H
#define BW_STALL_H

#include <stddef.h>
#include <stdint.h>

/* Of the time since the wake-up before, on the CPU. */
struct stall_shares {
	int64_t target_ran_ns; /* what the target's processes ran */
	int64_t unclaimed_ns;  /* what no process besides the witness is known to have had, and no hypervisor: idle, interrupts */
};

struct stall_window {
	int64_t start_tai_ns; /* when the thread should have woken up */
	int64_t end_tai_ns;   /* when it did */
	struct stall_shares shares;
	int cpu;
};

/** Wake-ups of one CPU. One writer; read it when that has ended. */
struct stall_log {
	int cpu;
	int64_t threshold_ns;         /* a wake-up that is later than this is a stall */
	uint64_t samples;
	uint64_t stalls;
	int64_t stalled_ns;           /* sum of the lengths of all stalls */
	int64_t max_ns;               /* latest wake-up, a stall or not */
	int64_t dropped_ns;           /* sum of the lengths of the windows that found no room */
	uint64_t dropped;
	size_t window_count;
	size_t window_capacity;
	struct stall_window *windows; /* in order of time */
};

/** Make a log. Return 0 or -ENOMEM; release it with stall_log_release(). */
int stall_log_init(struct stall_log *log, int cpu, int64_t threshold_ns, size_t window_capacity);
void stall_log_release(struct stall_log *log);

/**
 * Take one wake-up that came late_ns after it should have, at now_tai_ns. Real-time safe.
 *
 * @param shares  of the time since the wake-up before; zeros where nobody counts them
 */
void stall_log_take(struct stall_log *log, int64_t late_ns, int64_t now_tai_ns, struct stall_shares shares);

/** Next deadline of a period after now: deadlines that have passed are skipped, their wait belongs to one stall. */
int64_t stall_next_deadline_monotonic_ns(int64_t deadline_monotonic_ns, int64_t period_ns, int64_t now_monotonic_ns);

/**
 * Bring windows into order of time and return how long at least one of them was open, in ns. A time in which several CPUs
 * stalled counts once.
 */
int64_t stall_union_ns(struct stall_window *windows, size_t count);

#endif
