/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Every wake-up of the witness's threads, and what other threads ran meanwhile: the file of `witness --series`
 * (docs/native-tools.md, "Capacity"). Pure bookkeeping: the caller brings the times.
 */
#ifndef BW_CAPACITY_SERIES_H
#define BW_CAPACITY_SERIES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** Records of one CPU, as they stand in the file. One writer; read it when that has ended. */
struct capacity_series {
	int cpu;
	int thread_count;
	size_t record_bytes;
	size_t capacity;
	size_t count;
	uint64_t dropped;       /* records that found no room */
	unsigned char *records; /* count * record_bytes */
};

/** Most records that one CPU makes in a time. */
size_t capacity_series_records(int64_t duration_ns, int64_t period_ns);
/** Size of a record with so many threads. */
size_t capacity_record_bytes(int thread_count);

/** Make a series, touched to its end. Return 0 or -ENOMEM; release it with capacity_series_release(). */
int capacity_series_init(struct capacity_series *series, int cpu, int thread_count, size_t capacity);
void capacity_series_release(struct capacity_series *series);

/**
 * Take one wake-up. Real-time safe. What does not fit into 32 bits is written as their largest number.
 *
 * @param ran_ns  CPU time of each thread since the previous record that has one; NULL: this CPU's records have none
 */
void capacity_series_take(struct capacity_series *series, int64_t wake_tai_ns, int64_t late_ns, const int64_t *ran_ns);

/**
 * Write the file: its head, then the records of one CPU after another.
 *
 * @param series     one a CPU, all with as many threads
 * @param cpu_count  at least 1
 * @param tids       the threads' numbers
 * @return 0 or -errno
 */
int capacity_series_write(FILE *file, int64_t period_ns, const struct capacity_series *series, int cpu_count,
			  const int *tids);

#endif
