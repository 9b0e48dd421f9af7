/* SPDX-License-Identifier: Apache-2.0 */
/* A witness of this machine: its state (witness.c), and what it prints of it (witness_report.c). */
#ifndef BW_WITNESS_H
#define BW_WITNESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "traffic/witness/awake.h"
#include "traffic/witness/capacity_series.h"
#include "traffic/witness/cpu_shares.h"
#include "base/json.h"
#include "config/options.h"
#include "port/port.h"
#include "traffic/witness/stall.h"
#include "traffic/witness/thread_times.h"

#define WITNESS_TOOL "bw-traffic witness"

enum { WITNESS_WINDOWS_MAX = 65536 }; /* of all CPUs together */

struct witness_options {
	struct option_list cpus, threads;
	int64_t priority, duration_ms, period_us, threshold_us, tai_utc_s;
	bool awake;
	const char *series; /* NULL: none is written */
	const char *target; /* NULL: nothing is read of a target's processes */
};

struct watcher {
	const struct witness *witness;
	struct stall_log log;
	struct capacity_series *series; /* NULL: none is written */
	struct thread_times *times;     /* read by the first watcher alone; NULL: none are */
	struct port_thread *thread;
	struct awake awake;
	bool awake_known;
	bool steal_known;
	int64_t steal_before_ns;
	struct cpu_shares shares;
};

struct witness {
	const struct witness_options *options;
	struct port_tai tai;
	int64_t period_ns;
	int64_t begin_monotonic_ns;
	int64_t end_monotonic_ns;
	int64_t elapsed_ns;
	struct thread_times times;
	struct port_cpu_account *target; /* of the target's processes; NULL: none is read */
	FILE *series_file;              /* NULL: none is written */
	struct capacity_series *series; /* one a watcher; NULL: none is written */
	atomic_bool stop;               /* for the watchers */
	atomic_bool awake_over;         /* for the threads that keep CPUs awake */
	bool complete;
	int lock_error; /* errno: memory is not locked; 0: it is */
	int watcher_count;
	struct watcher *watchers;
};

/** Take all room and touch it. Return 0 or -errno, with a line on stderr; release it with witness_release() in any case. */
int witness_prepare(struct witness *witness);
/** Start all threads. @param duration_ms  0: until witness_stop(). @return 0 or -errno, with a line on stderr */
int witness_start(struct witness *witness, int64_t duration_ms);
/** Wait for the end of the time, or for a signal. */
void witness_wait(struct witness *witness);
/** End all threads. Return what they were given. */
struct port_scheduling witness_stop(struct witness *witness);
void witness_release(struct witness *witness);

void witness_print_ready(struct json *json, const struct witness *witness);
/** Print the result, when all threads have ended. Return 0 or -errno. */
int witness_print_result(struct json *json, const struct witness *witness, const struct port_scheduling *scheduling);

#endif
