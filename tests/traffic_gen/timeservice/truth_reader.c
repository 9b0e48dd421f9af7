/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Read the time service, and hold each reading against the truth that its server serves (truth.h).
 *
 *   timeservice-truth-reader PAGE TRUTH READS SECONDS
 *
 * Readings come in blocks of 4000, spread over so many seconds; 0: as fast as they can. Each lies between two readings of the counter:
 * the hard interval is missed where it has nothing in common with the truth from the first to the second, whatever took the
 * processor in between; U where the time is further than that from it. The error is against the middle. A reading whose two are
 * further apart than 2 µs shows a stall: it is left out of all but the hard interval, and counted. The last line is JSON;
 * points: of each block the reading whose window is the shortest, as [seconds, error, U, bound] in ns.
 *
 * PAGE `-`: another program has read a clock that tells an interval alone, and hands its readings over on standard input, as
 * struct told. Its time is the middle of the interval; U is then half of that.
 */
#include <string.h>

#include "base/histogram.h"
#include "base/json.h"
#include "timeservice/bwtime.h"
#include "truth.h"

#define WINDOW_LARGEST_NS 2000
#define ERROR_FAR_NS 10000
#define NS_PER_S INT64_C(1000000000)

enum { BLOCK_READS = 4000, MEDIAN_PPM = 500000, P999_PPM = 999000 };

struct point {
	int64_t elapsed_ns, error_ns, u_ns, bound_ns, window_ns;
	bool told;
};

/* A reading of another program. */
struct told {
	uint64_t before_ticks, after_ticks;
	int64_t earliest_utc_ns, latest_utc_ns; /* both 0: there was no time */
};

struct counts {
	uint64_t reads, no_time, free_running, steps, left_out, interval_missed, u_missed, far;
};

struct reader {
	struct bwtime *handle;
	struct truth truth;
	struct counts counts;
	struct histogram *errors, *sizes, *us, *bounds;
};

static int64_t size_of(int64_t ns)
{
	return ns < 0 ? -ns : ns;
}

/* How far something is outside of what lies between the truth before and after it was read. */
static int64_t outside_ns(int64_t earliest_ns, int64_t latest_ns, int64_t before_ns, int64_t after_ns)
{
	return earliest_ns > after_ns ? earliest_ns - after_ns : latest_ns < before_ns ? before_ns - latest_ns : 0;
}

/* A reading between two of the counter; NULL: there was no time. */
static void judge(struct reader *reader, uint64_t before, uint64_t after, const struct bwtime_stamp *stamp, struct point *point)
{
	struct counts *counts = &reader->counts;
	int64_t before_ns = truth_at(&reader->truth, before), after_ns = truth_at(&reader->truth, after), error_ns;

	counts->reads++;
	if (!stamp) {
		counts->no_time++;
		return;
	}
	counts->steps += stamp->stepped;
	counts->free_running += stamp->state != BWTIME_STATE_SYNCHRONISED;
	counts->interval_missed += outside_ns(stamp->earliest_utc_ns, stamp->latest_utc_ns, before_ns, after_ns) > 0;
	if (after_ns - before_ns > WINDOW_LARGEST_NS) {
		counts->left_out++;
		return;
	}
	error_ns = stamp->utc_ns - (before_ns + (after_ns - before_ns) / 2);
	counts->u_missed += outside_ns(stamp->utc_ns, stamp->utc_ns, before_ns, after_ns) > stamp->u_ns;
	counts->far += size_of(error_ns) > ERROR_FAR_NS;
	histogram_record(reader->errors, error_ns);
	histogram_record(reader->sizes, size_of(error_ns));
	histogram_record(reader->us, stamp->u_ns);
	histogram_record(reader->bounds, stamp->bound_ns);
	if (!point->told || after_ns - before_ns < point->window_ns)
		*point = (struct point){ before_ns - reader->truth.start.utc_ns, error_ns, stamp->u_ns, stamp->bound_ns, after_ns - before_ns, true };
}

static void read_one(struct reader *reader, struct point *point)
{
	struct bwtime_stamp stamp;
	uint64_t before = port_counter_read(), after;
	int err = bwtime_now(reader->handle, &stamp);

	after = port_counter_read();
	judge(reader, before, after, err ? NULL : &stamp, point);
}

/* Returns false where there are no more. */
static bool take_one(struct reader *reader, struct point *point)
{
	struct bwtime_stamp stamp = { .state = BWTIME_STATE_SYNCHRONISED };
	struct told told;

	if (fread(&told, sizeof(told), 1, stdin) != 1)
		return false;
	stamp.earliest_utc_ns = told.earliest_utc_ns;
	stamp.latest_utc_ns = told.latest_utc_ns;
	stamp.bound_ns = stamp.u_ns = (told.latest_utc_ns - told.earliest_utc_ns + 1) / 2;
	stamp.utc_ns = told.earliest_utc_ns + (told.latest_utc_ns - told.earliest_utc_ns) / 2;
	judge(reader, told.before_ticks, told.after_ticks, told.latest_utc_ns ? &stamp : NULL, point);
	return true;
}

static int64_t percentile_ns(const struct histogram *histogram, uint32_t ppm)
{
	int64_t ns = 0;

	histogram_percentile(histogram, ppm, &ns);
	return ns;
}

static void tell(const struct reader *reader, const struct point *points, uint64_t blocks)
{
	const struct counts *counts = &reader->counts;
	struct json json;

	json_init(&json, stdout);
	json_object_open(&json, NULL);
	json_uint(&json, "reads", counts->reads);
	json_uint(&json, "no_time", counts->no_time);
	json_uint(&json, "free_running", counts->free_running);
	json_uint(&json, "steps", counts->steps);
	json_uint(&json, "left_out", counts->left_out);
	json_uint(&json, "interval_missed", counts->interval_missed);
	json_uint(&json, "u_missed", counts->u_missed);
	json_uint(&json, "beyond_10us", counts->far);
	json_int(&json, "min_ns", histogram_min_ns(reader->errors));
	json_int(&json, "median_ns", percentile_ns(reader->errors, MEDIAN_PPM));
	json_int(&json, "max_ns", histogram_max_ns(reader->errors));
	json_int(&json, "size_median_ns", percentile_ns(reader->sizes, MEDIAN_PPM));
	json_int(&json, "size_p999_ns", percentile_ns(reader->sizes, P999_PPM));
	json_int(&json, "u_median_ns", percentile_ns(reader->us, MEDIAN_PPM));
	json_int(&json, "bound_median_ns", percentile_ns(reader->bounds, MEDIAN_PPM));
	json_int(&json, "bound_max_ns", histogram_max_ns(reader->bounds));
	json_array_open(&json, "points");
	for (uint64_t i = 0; i < blocks; i++) {
		if (!points[i].told)
			continue;
		json_array_open(&json, NULL);
		json_double(&json, NULL, (double)points[i].elapsed_ns / (double)NS_PER_S);
		json_int(&json, NULL, points[i].error_ns);
		json_int(&json, NULL, points[i].u_ns);
		json_int(&json, NULL, points[i].bound_ns);
		json_array_close(&json);
	}
	json_array_close(&json);
	json_object_close(&json);
	json_line_end(&json);
}

static void read_all(struct reader *reader, struct point *points, uint64_t blocks, uint64_t seconds)
{
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	int64_t each_ns = (int64_t)seconds * NS_PER_S / (int64_t)blocks;

	for (uint64_t block = 0; block < blocks; block++) {
		int64_t wait_ns = begin_monotonic_ns + (int64_t)block * each_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);

		if (seconds && wait_ns > 0)
			port_sleep_ns(wait_ns);
		for (int i = 0; i < BLOCK_READS; i++)
			read_one(reader, &points[block]);
	}
}

static void take_all(struct reader *reader, struct point *points, uint64_t blocks)
{
	for (uint64_t i = 0; i < blocks * BLOCK_READS && take_one(reader, &points[i / BLOCK_READS]); i++)
		;
}

int main(int argc, char **argv)
{
	static struct reader reader;
	uint64_t blocks = argc == 5 ? strtoull(argv[3], NULL, 10) / BLOCK_READS : 0;
	bool is_told = argc == 5 && strcmp(argv[1], "-") == 0;
	struct truth_start start;
	struct point *points;

	if (!blocks || !truth_start_parse(argv[2], &start)) {
		fputs("usage: timeservice-truth-reader PAGE TRUTH READS SECONDS\n", stderr);
		return 2;
	}
	truth_init(&reader.truth, &start);
	truth_at(&reader.truth, port_counter_read()); /* what it was until now takes a while to compute */
	reader.errors = histogram_create(-HISTOGRAM_HIGHEST_NS, HISTOGRAM_HIGHEST_NS);
	reader.sizes = histogram_create(0, HISTOGRAM_HIGHEST_NS);
	reader.us = histogram_create(0, HISTOGRAM_HIGHEST_NS);
	reader.bounds = histogram_create(0, HISTOGRAM_HIGHEST_NS);
	points = calloc(blocks, sizeof(*points));
	if (port_init() || !points || !reader.errors || !reader.sizes || !reader.us || !reader.bounds ||
	    (!is_told && bwtime_open(argv[1], BWTIME_TELL_STEPS, &reader.handle))) {
		fputs("cannot set up\n", stderr);
		free(points);
		return 3;
	}
	if (is_told)
		take_all(&reader, points, blocks);
	else
		read_all(&reader, points, blocks, strtoull(argv[4], NULL, 10));
	tell(&reader, points, blocks);
	free(points);
	bwtime_close(reader.handle);
	return 0;
}
