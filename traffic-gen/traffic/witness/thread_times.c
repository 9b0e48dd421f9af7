/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/witness/thread_times.h"

#include <errno.h>
#include <string.h>

int thread_times_open(struct thread_times *times, const int *tids, int count)
{
	memset(times, 0, sizeof(*times));
	for (int i = 0; i < count; i++) {
		int err = port_thread_time_open(tids[i], &times->times[i]);

		times->tids[i] = tids[i];
		times->count++;
		if (!err)
			err = port_thread_time_read(times->times[i], &times->cpu_ns[i]);
		times->lost[i] = err == -ESRCH;
		if (err && err != -ESRCH)
			return err;
	}
	return 0;
}

void thread_times_close(struct thread_times *times)
{
	for (int i = 0; i < times->count; i++) {
		if (times->times[i])
			port_thread_time_close(times->times[i]);
		times->times[i] = NULL;
	}
}

void thread_times_read(struct thread_times *times, int64_t ran_ns[THREAD_TIMES_MAX])
{
	for (int i = 0; i < times->count; i++) {
		int64_t cpu_ns;

		ran_ns[i] = 0;
		if (times->lost[i])
			continue;
		if (port_thread_time_read(times->times[i], &cpu_ns)) {
			times->lost[i] = true;
			continue;
		}
		ran_ns[i] = cpu_ns - times->cpu_ns[i];
		times->ran_ns[i] += ran_ns[i];
		times->cpu_ns[i] = cpu_ns;
	}
}
