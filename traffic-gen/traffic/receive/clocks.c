/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/receive/clocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_NS INT64_C(1000000000)       /* between bursts */
#define PERIOD_FIRST_NS INT64_C(200000000)  /* of the first bursts: the rate is not known yet, and bounds grow fast */
#define REPLY_TIMEOUT_NS INT64_C(100000000)
#define STOP_CHECK_NS INT64_C(20000000)

enum { BURST = 8, FIRST_BURSTS = 10 };

int clocks_open(struct clocks *clocks, const struct plan *plan, const struct port_tai *tai)
{
	struct twoway_config config = twoway_default_config();

	memset(clocks, 0, sizeof(*clocks));
	clocks->tai = tai;
	clocks->clocks = calloc(plan->clock_count + 1, sizeof(*clocks->clocks));
	if (!clocks->clocks)
		return -ENOMEM;
	for (size_t i = 0; i < plan->clock_count; i++) {
		struct peer_clock *clock = &clocks->clocks[i];
		int err;

		clock->plan = &plan->clocks[i];
		clockline_init(&clock->line);
		clock->twoway = twoway_create(&config);
		err = clock->twoway ? exchange_open(&clock->peer, &clock->plan->address, plan->nonce + i) : -ENOMEM;
		if (err) {
			twoway_destroy(clock->twoway);
			clocks_close(clocks);
			return err;
		}
		clocks->count++;
	}
	return 0;
}

void clocks_close(struct clocks *clocks)
{
	for (size_t i = 0; i < clocks->count; i++) {
		exchange_close(&clocks->clocks[i].peer);
		twoway_destroy(clocks->clocks[i].twoway);
	}
	free(clocks->clocks);
	memset(clocks, 0, sizeof(*clocks));
}

static void exchange_with(struct clocks *clocks, struct peer_clock *clock)
{
	struct twoway_line line;
	int64_t step_ns = 0;
	enum twoway_outcome outcome =
		exchange_burst(&clock->peer, clocks->tai, clock->twoway, BURST, REPLY_TIMEOUT_NS, &step_ns);

	if (outcome == TWOWAY_NOTHING)
		return;
	if (outcome == TWOWAY_STEPPED) {
		if (clock->step_count < STEPWATCH_STEPS_MAX)
			clock->steps[clock->step_count] = (struct clock_step){ port_tai_now_ns(clocks->tai), step_ns };
		clock->step_count++;
	}
	line = twoway_current(clock->twoway);
	clockline_publish(&clock->line, &line);
	atomic_store(&clock->seen, line.valid);
}

bool clocks_all_seen(const struct clocks *clocks)
{
	for (size_t i = 0; i < clocks->count; i++) {
		if (!atomic_load(&clocks->clocks[i].seen))
			return false;
	}
	return true;
}

static void run(void *argument)
{
	struct clocks *clocks = argument;
	int64_t next_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	bool last = false;
	int bursts = 0;

	while (!last) {
		last = atomic_load(&clocks->stop); /* seen before the burst: a last one is made after the stop */
		if (last || port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= next_monotonic_ns) {
			for (size_t i = 0; i < clocks->count; i++)
				exchange_with(clocks, &clocks->clocks[i]);
			next_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) +
					    (++bursts > FIRST_BURSTS && clocks_all_seen(clocks) ? PERIOD_NS :
												  PERIOD_FIRST_NS);
		}
		if (!last)
			port_sleep_ns(STOP_CHECK_NS);
	}
}

int clocks_start(struct clocks *clocks)
{
	return port_thread_start("clocks", 0, PORT_CPU_ANY, run, clocks, &clocks->thread);
}

void clocks_stop(struct clocks *clocks)
{
	if (!clocks->thread)
		return;
	atomic_store(&clocks->stop, true);
	port_thread_join(clocks->thread);
	clocks->thread = NULL;
}
