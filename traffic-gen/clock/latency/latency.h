/* SPDX-License-Identifier: Apache-2.0 */
/* What reading clocks costs: what was asked for, what was found. Its loop is latency_loop.c, its answer latency_report.c. */
#ifndef BW_CLOCK_LATENCY_H
#define BW_CLOCK_LATENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"
#include "base/histogram.h"
#include "clock/source.h"

#define LATENCY_TOOL "bw-clock latency"

enum { LATENCY_CLOCKS_MAX = 16, LATENCY_BATCH = 256 };

struct latency_subject {
	char text[1024];
	struct source source;
	struct histogram *latency, *net, *kept;
	uint64_t interrupted;
	struct blocks blocks; /* of the readings that count: kept, where interrupted ones are told apart */
};

struct latency {
	int64_t reads, duration_ns; /* of each clock at most; 0: however long it takes */
	const char *phc_read;
	size_t count;
	struct latency_subject subjects[LATENCY_CLOCKS_MAX];
	uint64_t hz;
	/* what the loop finds */
	int64_t pair_ticks; /* what two readings of the counter cost, one right after the other: the median */
	struct port_instructions *instructions; /* NULL: not counted */
	char no_instructions[160];
	int read_error;
	bool complete;
	int batched;
	int64_t ticks[LATENCY_BATCH], kept_ticks[LATENCY_BATCH];
	int64_t values_ns[LATENCY_BATCH];
	int kept_batched;
};

/** Measure all clocks, one after the other, until the readings or the time of each are over, or the process is to end. */
void latency_run(struct latency *latency);

struct json;
struct port_scheduling;
/** Write the line `result`. @return 0 or -EIO */
int latency_report(struct json *json, const struct latency *latency, const struct port_scheduling *scheduling);

#endif
