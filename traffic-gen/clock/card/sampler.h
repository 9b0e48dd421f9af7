/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a clock against a counter: from bursts of readings "counter, clock, counter" it makes the line that a page
 * carries. A reading is an exchange of no duration at its far end, so that the estimator of the two-way exchange
 * (twoway.h) does the work: its bound holds as long as the clock's rate changes by at most SAMPLER_WANDER_PPB_PER_S and
 * it is not stepped; a contradiction is counted, and the line starts anew. Pure.
 */
#ifndef BW_CLOCK_SAMPLER_H
#define BW_CLOCK_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/card/page.h"

#define SAMPLER_WANDER_PPB_PER_S 10000 /* 10 ppm a second: more than a disciplined oscillator is slewed by */
#define SAMPLER_RATE_LIMIT_PPB 2000000
#define SAMPLER_WINDOW_NS INT64_C(500000000)

struct twoway;

struct sampler {
	struct twoway *twoway;
	double ns_per_unit; /* nominal */
	bool started;
	uint64_t first_units;
	uint64_t published, steps;
};

/** @param ns_per_unit  nominal, within 1,000 ppm. @return 0 or -ENOMEM */
int sampler_init(struct sampler *sampler, double ns_per_unit);
void sampler_release(struct sampler *sampler);
/**
 * Take one reading of the current burst.
 *
 * @param tai_ns          the clock, read between `before` and `after`
 * @param clock_bound_ns  how far the clock's reading itself may be from the truth
 * @return 0, or -EINVAL: it cannot be and is not used
 */
int sampler_take(struct sampler *sampler, uint64_t before, int64_t tai_ns, uint64_t after, int64_t clock_bound_ns);
/**
 * End a burst and make the line: figures, `published` and `steps`; unit, source and tai_utc_s are the caller's.
 *
 * @return 0, or -ENODATA when the burst had no reading
 */
int sampler_line(struct sampler *sampler, struct card_line *line);

#endif
