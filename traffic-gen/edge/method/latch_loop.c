/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing 1 of the paper, again and again. Edges go in batches: only whole ones are paired, so that a lost capture cannot shift
 * the rest.
 */
#include <errno.h>

#include "base/time_units.h"
#include "edge/method/latch.h"
#include "port/port_clock.h"

#define PULSE_NS INT64_C(40000)
#define PAUSE_NS INT64_C(100000)  /* between edges */
#define SETTLE_NS (5 * NS_PER_MS) /* between the readings of the beginning */
#define BATCH_TIMEOUT_NS NS_PER_S
#define QUIET_NS (20 * NS_PER_MS) /* after an incomplete batch: until stragglers have come */
#define AGE_NS (2 * NS_PER_S)
#define STEP_NS INT64_C(50000)

enum { SETTLE_READS = 40, LOST_MAX = 16 };

static int renew(struct latch *latch)
{
	uint64_t ticks;
	int64_t clock_ns;
	int err;

	if (!latch->by_counter)
		return 0;
	err = filtered_clock_read(&latch->clock, &ticks, &clock_ns);
	if (!err)
		correlation_add(&latch->correlation, ticks, clock_ns);
	return err;
}

/* Listing 1, fenced: reading the counter is, and so is the pin's own change, which lies between the two. */
static int make_edge(struct latch *latch, int64_t *now_clock_ns)
{
	const struct edge_pin_kind *kind = latch->output.kind;
	int64_t before_clock_ns = 0, after_clock_ns = 0;
	uint64_t before, after;
	int err;

	atomic_thread_fence(memory_order_seq_cst);
	before = port_counter_read();
	if (!latch->by_counter)
		before_clock_ns = port_tai_now_ns(&latch->tai);
	err = kind->set(&latch->output, true, NULL, NULL);
	if (!latch->by_counter)
		after_clock_ns = port_tai_now_ns(&latch->tai);
	after = port_counter_read();
	if (err)
		return err;
	if (latch->by_counter) {
		before_clock_ns = correlation_ns_at(&latch->correlation, before);
		after_clock_ns = correlation_ns_at(&latch->correlation, after);
	}
	if (after_clock_ns - before_clock_ns > latch->window_max_ns)
		latch->window_max_ns = after_clock_ns - before_clock_ns;
	*now_clock_ns = before_clock_ns + (after_clock_ns - before_clock_ns) / 2;
	port_sleep_ns(PULSE_NS);
	return kind->set(&latch->output, false, NULL, NULL);
}

static void record(struct latch *latch, int64_t delay_ns)
{
	uint64_t n;

	histogram_record(latch->delay, delay_ns);
	blocks_add(&latch->blocks, delay_ns);
	tally_add(&latch->pairs, 1);
	n = tally_get(&latch->pairs);
	for (uint64_t decade = 100; decade <= n && latch->peak_count < LATCH_PEAKS_MAX; decade *= 10) {
		if (decade == n)
			latch->peaks[latch->peak_count++] = (struct latch_peak){
				n, histogram_max_ns(latch->delay) - histogram_min_ns(latch->delay)
			};
	}
}

/* Take what was captured of a batch. Return how many, or -errno. */
static int take_captures(struct latch *latch, int64_t *captured_clock_ns, int count)
{
	int64_t end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + BATCH_TIMEOUT_NS;
	int taken = 0;

	while (taken < count) {
		int64_t left_ns = end_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int err = left_ns <= 0 ? -ETIMEDOUT :
					 latch->capture.kind->capture_next(&latch->capture, NULL,
									   &captured_clock_ns[taken], left_ns);

		if (err == -ETIMEDOUT)
			return taken;
		if (err)
			return err;
		taken++;
	}
	return taken;
}

/* Stragglers of a batch that was given up must not be taken for edges of the next. */
static int drop_captures(struct latch *latch)
{
	int64_t instant_clock_ns;
	int err;

	do {
		err = latch->capture.kind->capture_next(&latch->capture, NULL, &instant_clock_ns, QUIET_NS);
	} while (!err);
	return err == -ETIMEDOUT ? 0 : err;
}

static int run_batch(struct latch *latch, int count)
{
	int64_t captured_clock_ns[LATCH_BATCH];
	int err = renew(latch), taken;

	for (int i = 0; i < count && !err; i++) {
		port_sleep_ns(PAUSE_NS);
		err = make_edge(latch, &latch->now_clock_ns[i]);
	}
	if (err)
		return err;
	taken = take_captures(latch, captured_clock_ns, count);
	if (taken < 0)
		return taken;
	if (taken < count) {
		latch->batches_lost++;
		return drop_captures(latch);
	}
	for (int i = 0; i < count; i++)
		record(latch, latch->now_clock_ns[i] - captured_clock_ns[i]);
	return 0;
}

static int prepare(struct latch *latch)
{
	int err = 0;

	latch->failed = "reading the PHC";
	if (latch->by_counter) {
		err = filtered_clock_warm_up(&latch->clock, latch->filter_percent);
		correlation_init(&latch->correlation, latch->clock.hz, AGE_NS, STEP_NS);
		for (int i = 0; i < SETTLE_READS && !err; i++) {
			err = renew(latch);
			port_sleep_ns(SETTLE_NS);
		}
	}
	if (err)
		return err;
	latch->failed = "the output";
	err = latch->output.kind->set(&latch->output, false, NULL, NULL);
	if (err)
		return err;
	latch->failed = "the capture";
	err = latch->capture.kind->capture_begin(&latch->capture);
	return err ? err : drop_captures(latch);
}

void latch_thread(void *argument)
{
	struct latch *latch = argument;
	int err = prepare(latch);

	if (!err)
		latch->failed = "making and capturing edges";
	while (!err && !port_stop_requested() && tally_get(&latch->pairs) < (uint64_t)latch->count) {
		int64_t left = latch->count - (int64_t)tally_get(&latch->pairs);

		err = run_batch(latch, left < LATCH_BATCH ? (int)left : LATCH_BATCH);
		if (!err && latch->batches_lost > LOST_MAX && tally_get(&latch->pairs) < LATCH_BATCH * latch->batches_lost)
			err = -ENODATA;
	}
	latch->error = err == -EINTR && port_stop_requested() ? 0 : err;
	latch->complete = !latch->error && tally_get(&latch->pairs) >= (uint64_t)latch->count;
	if (latch->capture.kind->capture_end)
		latch->capture.kind->capture_end(&latch->capture);
	if (latch->output.kind->stop)
		latch->output.kind->stop(&latch->output);
	atomic_store(&latch->finished, true);
}
