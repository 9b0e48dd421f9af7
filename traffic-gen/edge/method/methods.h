/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The software whose edges are judged: four ways of the paper on intra-process clock synchronization (Table II) to make edge k
 * at the moment at which a clock shows start + k * period, and one that shows where a clock itself has its full periods.
 *
 * gettime-software     look at CLOCK_REALTIME until the moment has come, then set the line at once
 * rdtsc-software       the same with the processor's counter, correlated to the PHC by filtered reads from time to time
 * tgpio-filtered-read  Listing 2: a filtered read of the PHC for each edge, then TGPIO is programmed
 * tgpio-latch          TGPIO latches the reference edges; the line through them says where to program the next one
 * clock-edge           as tgpio-filtered-read, of a clock of bw-clock's instead of the PHC
 */
#ifndef BW_EDGE_METHODS_H
#define BW_EDGE_METHODS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "edge/method/correlate.h"
#include "base/tally.h"
#include "edge/method/filtered_clock.h"
#include "edge/pins/pin.h"
#include "port/port.h"
#include "edge/method/predict.h"

struct edge_run;

struct edge_method {
	const char *name;
	bool software;  /* sets a line; else programs one in counter ticks */
	bool latches;   /* needs the latch pin */
	bool reads_phc, reads_clock; /* a clock that is asked for by name */
	/* Make ready in the measuring thread; sets start_clock_ns. 0 or -errno; *what names what failed. */
	int (*prepare)(struct edge_run *run, const char **what);
	/* Make edge k. 0; -ETIME: it was too late for it; or -errno, which ends the run. */
	int (*make)(struct edge_run *run, int64_t k);
};

struct edge_run {
	/* asked for */
	const struct edge_method *method;
	int64_t count;                /* 0: until the process is to end */
	int64_t period_ns;
	int64_t grid_clock_ns;        /* instant of some edge; *_clock_ns: of the clock that is followed, PHC or TAI */
	int64_t correlation_error_ns; /* deliberate: positive, the edges come so much later */
	int64_t filter_percent;
	struct edge_pin *output, *latch, *reference; /* NULL where there is none */
	struct port_tai tai;
	struct source source;         /* where the method reads a clock */
	/* at work */
	struct filtered_clock clock;
	struct correlation correlation;
	struct predictor predictor;
	int64_t latched_edge_clock_ns; /* time of the predictor's edge 0 */
	int64_t error_ticks, output_shift_ticks;
	/* found */
	int64_t start_clock_ns;       /* of edge 0 */
	struct tally programmed, late;
	atomic_bool prepared, finished; /* set by the measuring thread: what it found before is to be seen */
	uint64_t latches;
	int error;                    /* that ended it */
	const char *failed;           /* what it was of */
	char unfit[SOURCE_ERROR_BYTES]; /* why the clock was not fit to be read; empty: it was */
	bool complete;
	struct edge_pin_counts counts;
	bool counted;
};

/** @return NULL for an unknown name */
const struct edge_method *edge_method_find(const char *name);
/** The index-th method, NULL after the last. */
const struct edge_method *edge_method_at(int index);
/** Prepare, make all edges, switch off; the argument is a struct edge_run. For port_thread_start(). */
void edge_run_thread(void *argument);

#endif
