/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/method/filtered_clock.h"

#include <errno.h>
#include <stdlib.h>

#include "edge/method/read_filter.h"

#define NAP_NS INT64_C(1000000)

enum { WARM_UP_SLOW = 200, WARM_UP = 1000, BURST = 20 };

static int read_once(const struct filtered_clock *clock, uint64_t *before, uint64_t *after, int64_t *clock_ns)
{
	int err = 0;

	*before = port_counter_read();
	if (clock->phc)
		err = port_phc_now_ns(clock->phc, clock_ns);
	else
		err = source_read(clock->source, clock_ns);
	*after = port_counter_read();
	return err;
}

int filtered_clock_warm_up(struct filtered_clock *clock, int64_t percent)
{
	uint64_t *brackets = calloc(WARM_UP, sizeof(*brackets));
	uint64_t before, after;
	int64_t clock_ns;
	int err = brackets ? 0 : -ENOMEM;

	/* The first readings are slow: pages are touched, under emulation code is translated. */
	for (int i = 0; i < WARM_UP_SLOW && !err; i++)
		err = read_once(clock, &before, &after, &clock_ns);
	for (int i = 0; i < WARM_UP && !err; i++) {
		if (i % BURST == 0)
			port_sleep_ns(NAP_NS); /* readings are slower after a wake-up, and in use all are */
		err = read_once(clock, &before, &after, &clock_ns);
		brackets[i] = after - before;
	}
	if (!err)
		clock->threshold = read_filter_threshold(brackets, WARM_UP, percent);
	free(brackets);
	return err;
}

int filtered_clock_read(struct filtered_clock *clock, uint64_t *ticks, int64_t *clock_ns)
{
	const double ns_per_tick = 1e9 / (double)clock->hz;
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < FILTERED_READS_MAX; i++) {
		uint64_t before, after;
		int64_t read_clock_ns;
		int err = read_once(clock, &before, &after, &read_clock_ns);

		if (err)
			return err;
		clock->reads++;
		histogram_record(clock->bracket, (int64_t)((double)(after - before) * ns_per_tick + 0.5));
		if (after - before < shortest) {
			shortest = after - before;
			*ticks = read_filter_middle(before, after);
			*clock_ns = read_clock_ns;
		}
		if (shortest <= clock->threshold) {
			clock->discarded += (uint64_t)i;
			return 0;
		}
	}
	clock->discarded += FILTERED_READS_MAX - 1;
	clock->unfiltered++;
	return 0;
}
