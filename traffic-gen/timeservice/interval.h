/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interval in which the offset of a server's clock, or of UTC, against this machine's counter lies, whatever its exchanges' ways took. Pure.
 *
 * Each exchange allows an interval at its time. From one to the next the offset moves by the rate between the two, which the exchanges
 * themselves bound: over a while it is the difference of their intervals by the time in between. One thing is assumed: that at every
 * moment the counter's rate is within a limit of drift of its mean over that while. So the interval moves and widens, and is cut
 * with what the next exchange allows. Where nothing is left, the assumption is broken: the counter or the server has stepped or
 * drifts faster.
 */
#ifndef BW_TIMESERVICE_INTERVAL_H
#define BW_TIMESERVICE_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

enum { INTERVAL_ANCHORS = 32 };

/* Offsets are relative to an origin, so that doubles are exact enough. */
struct interval_point {
	int64_t at_local_ns;
	double low_ns, high_ns;
};

struct interval {
	int64_t drift_limit_ppb, rate_limit_ppb;
	bool begun;
	int64_t origin_ns;
	struct interval_point now;
	double rate_low_ppb, rate_high_ppb; /* the mean rate over the last minutes lies within */
	int anchor_count;
	struct interval_point anchors[INTERVAL_ANCHORS]; /* the oldest first */
};

void interval_init(struct interval *interval, int64_t drift_limit_ppb, int64_t rate_limit_ppb);

/**
 * Take what an exchange allows of the offset, low_ns .. high_ns at local_ns, not before the last one.
 *
 * @param off_ns  receives how far that is from what could be, when nothing is left: positive: above; may be NULL
 * @return false: nothing is left; the interval is as it was
 */
bool interval_take(struct interval *interval, int64_t local_ns, int64_t low_ns, int64_t high_ns, double *off_ns);

/** How fast the ends move away from a line of this rate, at most. */
double interval_growth_ppb(const struct interval *interval, double rate_ppb);
/** The same before anything is known of the rate. */
double interval_growth_most_ppb(const struct interval *interval, double rate_ppb);
/** The time over which the rate was learnt. */
double interval_rate_over_s(const struct interval *interval);

#endif
