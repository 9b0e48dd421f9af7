/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of the producers as the consumer sees them: a low-priority thread that exchanges a burst with each
 * responder once a second (more often at first) and publishes the lines (clockline.h) for the receiving threads.
 */
#ifndef BW_CLOCKS_H
#define BW_CLOCKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "time/clockline.h"
#include "time/exchange.h"
#include "plan/plan.h"
#include "time/stepwatch.h"
#include "time/twoway.h"

struct peer_clock {
	const struct plan_clock *plan;
	struct exchange_peer peer;
	struct twoway *twoway;
	struct clockline line;
	atomic_bool seen;       /* a line was published */
	uint64_t step_count;    /* read it after the thread has ended */
	struct clock_step steps[STEPWATCH_STEPS_MAX];
};

struct clocks {
	const struct port_tai *tai;
	size_t count;
	struct peer_clock *clocks; /* in the order of the plan */
	struct port_thread *thread;
	atomic_bool stop;
};

/** Open sockets and estimators. @return 0 (clocks_close frees them), or -errno */
int clocks_open(struct clocks *clocks, const struct plan *plan, const struct port_tai *tai);
void clocks_close(struct clocks *clocks);
/** Start the thread. @return 0 or -errno */
int clocks_start(struct clocks *clocks);
/** Make a last burst with each clock and end the thread. */
void clocks_stop(struct clocks *clocks);
/** True when each clock has a line. */
bool clocks_all_seen(const struct clocks *clocks);

#endif
