/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/witness/capacity_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char MAGIC[8] = "BWCAP1\n"; /* and its 0 */

/* Places of a record's fields, little endian. */
enum { AT_WAKE = 0, AT_LATE = 8, AT_CPU = 12, AT_RAN = 16, RAN_BYTES = 4 };

static void put(unsigned char *wire, unsigned int bytes, uint64_t value)
{
	for (unsigned int i = 0; i < bytes; i++) {
		wire[i] = (unsigned char)value;
		value >>= 8;
	}
}

static uint64_t saturated(int64_t value)
{
	if (value > INT32_MAX)
		value = INT32_MAX;
	return (uint64_t)(value < INT32_MIN ? INT32_MIN : value);
}

size_t capacity_series_records(int64_t duration_ns, int64_t period_ns)
{
	return (size_t)(duration_ns / period_ns) + 1; /* deadlines from the beginning until before the end */
}

size_t capacity_record_bytes(int thread_count)
{
	return AT_RAN + (size_t)thread_count * RAN_BYTES;
}

int capacity_series_init(struct capacity_series *series, int cpu, int thread_count, size_t capacity)
{
	*series = (struct capacity_series){
		.cpu = cpu,
		.thread_count = thread_count,
		.record_bytes = capacity_record_bytes(thread_count),
		.capacity = capacity,
	};
	series->records = malloc(capacity * series->record_bytes);
	if (!series->records)
		return -ENOMEM;
	/* A first touch of a page must not look like a stall. */
	memset(series->records, 0xff, capacity * series->record_bytes);
	return 0;
}

void capacity_series_release(struct capacity_series *series)
{
	free(series->records);
	series->records = NULL;
}

void capacity_series_take(struct capacity_series *series, int64_t wake_tai_ns, int64_t late_ns, const int64_t *ran_ns)
{
	unsigned char *record;

	if (series->count == series->capacity) {
		series->dropped++;
		return;
	}
	record = series->records + series->count++ * series->record_bytes;
	put(record + AT_WAKE, 8, (uint64_t)wake_tai_ns);
	put(record + AT_LATE, 4, saturated(late_ns));
	put(record + AT_CPU, 4, (uint64_t)series->cpu);
	for (int i = 0; i < series->thread_count; i++)
		put(record + AT_RAN + (size_t)i * RAN_BYTES, RAN_BYTES, ran_ns ? saturated(ran_ns[i]) : 0);
}

static void write_number(FILE *file, unsigned int bytes, uint64_t value)
{
	unsigned char wire[8];

	put(wire, bytes, value);
	fwrite(wire, bytes, 1, file);
}

int capacity_series_write(FILE *file, int64_t period_ns, const struct capacity_series *series, int cpu_count,
			  const int *tids)
{
	int thread_count = series[0].thread_count;

	errno = 0;
	fwrite(MAGIC, sizeof(MAGIC), 1, file);
	write_number(file, 4, (uint64_t)cpu_count);
	write_number(file, 4, (uint64_t)thread_count);
	write_number(file, 8, (uint64_t)period_ns);
	for (int i = 0; i < cpu_count; i++)
		write_number(file, 4, (uint64_t)series[i].cpu);
	for (int i = 0; i < thread_count; i++)
		write_number(file, 4, (uint64_t)tids[i]);
	for (int i = 0; i < cpu_count; i++)
		fwrite(series[i].records, series[i].record_bytes, series[i].count, file);
	if (fflush(file) == 0 && !ferror(file))
		return 0;
	return errno ? -errno : -EIO;
}
