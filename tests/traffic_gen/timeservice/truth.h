/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A time that is a known function of this machine's counter: whoever knows seed and start computes the same.
 *
 * Its rate is off by a constant within ±50 ppm, and walks: a step every 10 ms, from a seeded generator. In between the time is a
 * straight line, so that it is exact to far less than a nanosecond. As text: SEED:WALK_PPB:HZ:START_TICKS:START_UTC_NS, the walk in
 * ppb a root second.
 */
#ifndef BW_TEST_TIMESERVICE_TRUTH_H
#define BW_TEST_TIMESERVICE_TRUTH_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "port/port.h"
#include "port/port_clock.h"
#include "random.h"

#define TRUTH_RATE_LARGEST_PPB INT64_C(50000)
#define TRUTH_FROM_SYSTEM_LARGEST_NS INT64_C(3600000000000) /* it starts so far from the system's clock, either way */
#define TRUTH_MEASURED_NS INT64_C(200000000)

enum { TRUTH_STEPS_PER_S = 100, TRUTH_SEGMENTS = 1024 /* that can be looked back to: ten seconds */ };

struct truth_start {
	uint64_t seed;
	double walk_ppb_per_sqrt_s;
	uint64_t hz; /* of the counter, nominal */
	uint64_t ticks;
	int64_t utc_ns;
};

struct truth_segment {
	uint64_t ticks;   /* it begins there, */
	int64_t utc_ns;   /* at this time */
	double beyond_ns; /* and that part of a nanosecond */
	double ns_per_tick;
};

struct truth {
	struct truth_start start;
	struct random random;
	double rate_ppb; /* of the last segment */
	uint64_t count;
	struct truth_segment segments[TRUTH_SEGMENTS]; /* the last ones: a ring */
};

/** Draw a start: now, at a rate and a time of day that nothing but the seed knows. */
static inline struct truth_start truth_start_now(uint64_t seed, double walk_ppb_per_sqrt_s)
{
	struct truth_start start = { .seed = seed, .walk_ppb_per_sqrt_s = walk_ppb_per_sqrt_s };
	struct random random = { ~seed };
	int64_t begin_monotonic_ns = port_kernel_clock_now_ns(PORT_KERNEL_MONOTONIC_RAW), now_monotonic_ns;
	uint64_t begin_ticks = port_counter_read();

	do
		now_monotonic_ns = port_kernel_clock_now_ns(PORT_KERNEL_MONOTONIC_RAW);
	while (now_monotonic_ns - begin_monotonic_ns < TRUTH_MEASURED_NS);
	start.ticks = port_counter_read();
	start.hz = (uint64_t)((double)(start.ticks - begin_ticks) * 1e9 / (double)(now_monotonic_ns - begin_monotonic_ns));
	start.utc_ns = port_kernel_clock_now_ns(PORT_KERNEL_REALTIME) +
		       random_between(&random, -TRUTH_FROM_SYSTEM_LARGEST_NS, TRUTH_FROM_SYSTEM_LARGEST_NS);
	return start;
}

static inline void truth_start_print(const struct truth_start *start)
{
	printf("%" PRIu64 ":%g:%" PRIu64 ":%" PRIu64 ":%" PRId64 "\n", start->seed, start->walk_ppb_per_sqrt_s, start->hz, start->ticks,
	       start->utc_ns);
}

static inline bool truth_start_parse(const char *text, struct truth_start *start)
{
	return sscanf(text, "%" SCNu64 ":%lf:%" SCNu64 ":%" SCNu64 ":%" SCNd64, &start->seed, &start->walk_ppb_per_sqrt_s, &start->hz,
		      &start->ticks, &start->utc_ns) == 5 && start->hz >= TRUTH_STEPS_PER_S;
}

static inline double truth_ns_per_tick(const struct truth *truth)
{
	return 1e9 / (double)truth->start.hz * (1 + truth->rate_ppb * 1e-9);
}

static inline void truth_init(struct truth *truth, const struct truth_start *start)
{
	truth->start = *start;
	truth->random = (struct random){ start->seed };
	truth->rate_ppb = (double)random_between(&truth->random, -TRUTH_RATE_LARGEST_PPB, TRUTH_RATE_LARGEST_PPB);
	truth->segments[0] = (struct truth_segment){ start->ticks, start->utc_ns, 0, truth_ns_per_tick(truth) };
	truth->count = 1;
}

/* Normal, near enough, and without a function whose last bit another C library might have otherwise. */
static inline double truth_draw(struct random *random)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += random_unit(random);
	return sum - 6;
}

static inline void truth_go_on(struct truth *truth)
{
	const struct truth_segment *last = &truth->segments[(truth->count - 1) % TRUTH_SEGMENTS];
	uint64_t ticks = truth->start.hz / TRUTH_STEPS_PER_S;
	double ns = (double)ticks * last->ns_per_tick + last->beyond_ns;
	int64_t whole_ns = (int64_t)ns;

	truth->rate_ppb += truth->start.walk_ppb_per_sqrt_s / sqrt(TRUTH_STEPS_PER_S) * truth_draw(&truth->random);
	truth->segments[truth->count++ % TRUTH_SEGMENTS] = (struct truth_segment){
		last->ticks + ticks,
		last->utc_ns + whole_ns,
		ns - (double)whole_ns,
		truth_ns_per_tick(truth),
	};
}

/** The time at a reading of the counter, not before the start and not much before an earlier call's. */
static inline int64_t truth_at(struct truth *truth, uint64_t ticks)
{
	uint64_t each = truth->start.hz / TRUTH_STEPS_PER_S, index = (ticks - truth->start.ticks) / each;
	const struct truth_segment *segment;

	while (truth->count <= index)
		truth_go_on(truth);
	segment = &truth->segments[index % TRUTH_SEGMENTS];
	if (ticks < truth->start.ticks || segment->ticks != truth->start.ticks + index * each) {
		fputs("a reading of the counter from before what is known of the truth\n", stderr);
		abort();
	}
	return segment->utc_ns + llround((double)(ticks - segment->ticks) * segment->ns_per_tick + segment->beyond_ns);
}

#endif
