/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison of two clocks: what was asked for, what was found. Its loop is compare.c, its answer compare_report.c. */
#ifndef BW_CLOCK_COMPARE_H
#define BW_CLOCK_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tally.h"
#include "base/histogram.h"
#include "base/pause.h"
#include "clock/compare/jumps.h"
#include "clock/compare/series.h"
#include "clock/source.h"

#define COMPARE_TOOL "bw-clock compare"

enum compare_read { COMPARE_SEQUENTIAL, COMPARE_BRACKETED, COMPARE_FILTERED };

/* How a pair of PHC and kernel clock is read. */
enum compare_phc {
	COMPARE_PHC_NONE,    /* neither clock is a PHC */
	COMPARE_PHC_GETTIME, /* one after the other, as any two clocks */
	COMPARE_PHC_CROSS,   /* by the kernel's cross stamps */
};

enum { COMPARE_BATCH = 256, COMPARE_REASONS_MAX = 4 };

struct compare_options {
	enum compare_read read;
	int64_t filter_ns, iterations, duration_ns, pause_max_ns;
	int64_t series_interval_ns, step_threshold_ns, gap_ns;
};

struct sample {
	int64_t time_tai_ns; /* of the reference */
	int64_t offset_ns, window_ns;
	struct source_error error; /* that the device told with this reading */
};

/* How what a device told with each of its readings held. */
struct compare_told {
	uint64_t missed;               /* the offset was more */
	uint64_t missed_beyond_window; /* even by more than half the sample's window: not by the way of reading */
	struct histogram *size;
};

struct compare_bounds {
	uint64_t checked;
	uint64_t without;              /* attempts that found no time with a bound: no samples */
	struct compare_told interval;  /* size: the larger of its two sides */
	struct compare_told u;
};

struct compare {
	struct compare_options options;
	struct source device, reference;
	enum compare_phc phc;
	enum port_phc_read phc_read;
	bool device_is_phc; /* of COMPARE_PHC_CROSS */
	int64_t realtime_add_ns; /* CLOCK_REALTIME to TAI, of the other clock */
	struct pause_lengths pauses;
	/* what the loop finds */
	struct tally iterations; /* attempts that found both times; read by the thread that prints progress */
	struct tally finished;
	uint64_t discarded;
	int64_t start_tai_ns, start_monotonic_ns, elapsed_ns;
	bool complete;
	int read_error; /* -errno that ended the loop */
	bool device_failed;
	int batched;
	int64_t offsets[COMPARE_BATCH], windows[COMPARE_BATCH];
	struct histogram *offset, *window;
	struct compare_bounds bounds;
	struct series series;
	struct jumps jumps;
	uint64_t rss_start_bytes;
	int reason_count;
	char reasons[COMPARE_REASONS_MAX][SOURCE_ERROR_BYTES];
};

/** Measure until the iterations or the time are over, or the process is to end. */
void compare_run(struct compare *compare);
/** Say why the measurement is not valid. */
void compare_invalid(struct compare *compare, const char *reason);

struct json;
struct port_scheduling;
/** Write the line `result`. @return 0 or -EIO */
int compare_report(struct json *json, struct compare *compare, const struct port_scheduling *scheduling);

#endif
