/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of threads of other processes, from reading to reading. */
#ifndef BW_THREAD_TIMES_H
#define BW_THREAD_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

enum { THREAD_TIMES_MAX = 16 };

struct thread_times {
	int count;
	int tids[THREAD_TIMES_MAX];
	struct port_thread_time *times[THREAD_TIMES_MAX]; /* NULL: there was no such thread */
	bool lost[THREAD_TIMES_MAX];                      /* it has ended, or there was no such thread */
	int64_t cpu_ns[THREAD_TIMES_MAX];                 /* at the last reading */
	int64_t ran_ns[THREAD_TIMES_MAX];                 /* from the first reading to the last */
};

/**
 * Find the threads and read their time for the first time. Those that are not there are lost from the beginning.
 *
 * @param count  THREAD_TIMES_MAX at most
 * @return 0, -ENOTSUP where the system does not tell, or -errno; close it in any case
 */
int thread_times_open(struct thread_times *times, const int *tids, int count);
void thread_times_close(struct thread_times *times);

/** Read all. Real-time safe. @param ran_ns  receives what each has run since the last reading; 0 for one that is lost */
void thread_times_read(struct thread_times *times, int64_t ran_ns[THREAD_TIMES_MAX]);

#endif
