/* SPDX-License-Identifier: Apache-2.0 */
/** The witness's series: its bytes as the document states them, room that ends, numbers that do not fit. */
#include "traffic/witness/capacity_series.h"

#include <errno.h>

#include "check.h"

static uint64_t get(const unsigned char *wire, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | wire[bytes];
	return value;
}

static int32_t get_int32(const unsigned char *wire)
{
	return (int32_t)(uint32_t)get(wire, 4);
}

static void check_file(void)
{
	static const char HEAD[] = "BWCAP1\n\0\2\0\0\0\1\0\0\0\5\4\3\2\1\0\0";
	const int tids[] = { 70000 };
	const int64_t ran_ns[] = { 9 };
	struct capacity_series series[2];
	unsigned char wire[128];
	FILE *file = tmpfile();

	CHECK(file != NULL);
	if (!file)
		return;
	CHECK_INT(capacity_series_init(&series[0], 0, 1, 2), 0);
	CHECK_INT(capacity_series_init(&series[1], 3, 1, 2), 0);
	capacity_series_take(&series[1], 200, 2, NULL);
	capacity_series_take(&series[0], 100, 1, ran_ns);
	capacity_series_take(&series[0], 300, 3, ran_ns);
	CHECK_INT(capacity_series_write(file, INT64_C(0x0102030405), series, 2, tids), 0);
	rewind(file);
	CHECK_INT(fread(wire, 1, sizeof(wire), file), 36 + 3 * 20);
	CHECK(memcmp(wire, HEAD, sizeof(HEAD)) == 0);
	CHECK_INT(get_int32(wire + 24), 0);
	CHECK_INT(get_int32(wire + 28), 3);
	CHECK_INT(get_int32(wire + 32), 70000);
	CHECK_INT(get(wire + 36, 8), 100);
	CHECK_INT(get(wire + 56, 8), 300);
	CHECK_INT(get(wire + 76, 8), 200);
	CHECK_INT(get_int32(wire + 88), 3);
	fclose(file);
	capacity_series_release(&series[0]);
	capacity_series_release(&series[1]);
}

static void check_full_disk(void)
{
	const int tids[] = { 1 };
	struct capacity_series series;
	FILE *file = fopen("/dev/full", "wb");

	if (!file)
		return; /* of Linux */
	CHECK_INT(capacity_series_init(&series, 0, 1, 1), 0);
	CHECK_INT(capacity_series_write(file, 1, &series, 1, tids), -ENOSPC);
	fclose(file);
	capacity_series_release(&series);
}

static void check_records(void)
{
	const int64_t ran_ns[] = { 250000, INT64_C(5000000000) };
	struct capacity_series series;
	const unsigned char *record;

	CHECK_INT(capacity_record_bytes(2), 24);
	CHECK_INT(capacity_series_init(&series, 1, 2, 2), 0);
	capacity_series_take(&series, INT64_C(1700000000123456789), 12345, ran_ns);
	capacity_series_take(&series, -1, INT64_C(3000000000), NULL);
	capacity_series_take(&series, 7, 7, ran_ns); /* finds no room */
	CHECK_INT(series.count, 2);
	CHECK_INT(series.dropped, 1);
	record = series.records;
	CHECK_INT(get(record, 8), INT64_C(1700000000123456789));
	CHECK_INT(get_int32(record + 8), 12345);
	CHECK_INT(get_int32(record + 12), 1);
	CHECK_INT(get_int32(record + 16), 250000);
	CHECK_INT(get_int32(record + 20), INT32_MAX);
	record += series.record_bytes;
	CHECK_INT(get(record, 8), -1);
	CHECK_INT(get_int32(record + 8), INT32_MAX);
	CHECK_INT(get_int32(record + 16), 0);
	CHECK_INT(get_int32(record + 20), 0);
	capacity_series_release(&series);
}

static void check_no_threads(void)
{
	struct capacity_series series;

	CHECK_INT(capacity_record_bytes(0), 16);
	CHECK_INT(capacity_series_init(&series, 0, 0, 1), 0);
	capacity_series_take(&series, 5, INT64_MIN, NULL);
	CHECK_INT(get_int32(series.records + 8), INT32_MIN);
	CHECK_INT(series.dropped, 0);
	capacity_series_release(&series);
}

static void check_room(void)
{
	CHECK_INT(capacity_series_records(1000, 100), 11);
	CHECK_INT(capacity_series_records(1001, 100), 11);
	CHECK_INT(capacity_series_records(99, 100), 1);
}

int main(void)
{
	check_file();
	check_full_disk();
	check_records();
	check_no_threads();
	check_room();
	return check_result();
}
