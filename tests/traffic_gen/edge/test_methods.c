/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a run, over a method that the test plays: it is ready where its preparation is whole, and in no other case. */
#include <errno.h>

#include "../check.h"
#include "edge/method/methods.h"
#include "edge/method/software_edge.h"

#define START_CLOCK_NS INT64_C(1795284915000000000)

enum { EDGES = 3 };

static int prepare_result;
static bool stop_while_preparing, stopped;
static int made, stops;
static bool ready_when_made;

bool port_stop_requested(void)
{
	return stopped;
}

int port_sleep_ns(int64_t duration_ns)
{
	CHECK(duration_ns >= 0);
	return 0;
}

int64_t port_clock_now_ns(enum port_clock clock)
{
	(void)clock;
	return 0;
}

int64_t port_tai_now_ns(const struct port_tai *tai)
{
	(void)tai;
	return 0;
}

int filtered_clock_warm_up(struct filtered_clock *clock, int64_t percent)
{
	(void)clock;
	(void)percent;
	return -EIO;
}

int filtered_clock_read(struct filtered_clock *clock, uint64_t *ticks, int64_t *clock_ns)
{
	(void)clock;
	(void)ticks;
	(void)clock_ns;
	return -EIO;
}

int software_edge_make(struct edge_pin *output, const struct port_tai *tai, uint64_t hz, int64_t at_tai_ns, int64_t period_ns,
		       int64_t lead_ns)
{
	(void)output;
	(void)tai;
	(void)hz;
	(void)at_tai_ns;
	(void)period_ns;
	(void)lead_ns;
	return -EIO;
}

int software_edge_end(struct edge_pin *output, int64_t period_ns)
{
	(void)output;
	(void)period_ns;
	return -EIO;
}

static int prepare(struct edge_run *run, const char **what)
{
	CHECK(!atomic_load(&run->prepared));
	*what = "the method";
	stopped = stop_while_preparing;
	if (!prepare_result)
		run->start_clock_ns = START_CLOCK_NS;
	return prepare_result;
}

static int make(struct edge_run *run, int64_t k)
{
	CHECK_INT(k, made);
	made++;
	ready_when_made = atomic_load(&run->prepared);
	return 0;
}

static int stop(struct edge_pin *pin)
{
	(void)pin;
	stops++;
	return 0;
}

static const struct edge_method method = { .name = "played", .software = true, .prepare = prepare, .make = make };
static const struct edge_pin_kind output_kind = { .name = "played", .stop = stop };

/* @return what was found, until the next call */
static struct edge_run *run_with(int result, bool stop_then)
{
	static struct edge_pin output;
	static struct edge_run run;

	prepare_result = result;
	stop_while_preparing = stop_then;
	stopped = false;
	made = stops = 0;
	output = (struct edge_pin){ .kind = &output_kind };
	run = (struct edge_run){ .method = &method, .count = EDGES, .period_ns = 1000000, .output = &output, .clock = { .hz = 1000000000 } };
	edge_run_thread(&run);
	CHECK(atomic_load(&run.finished));
	CHECK_INT(stops, 1);
	CHECK_INT(run.error, result);
	return &run;
}

int main(void)
{
	struct edge_run *run = run_with(0, false);

	CHECK(atomic_load(&run->prepared));
	CHECK(ready_when_made);
	CHECK(run->complete);
	CHECK_INT(made, EDGES);
	CHECK_INT(tally_get(&run->programmed), EDGES);

	run = run_with(-ENODATA, false);
	CHECK(!atomic_load(&run->prepared));
	CHECK(!run->complete);
	CHECK_INT(made, 0);

	run = run_with(-EINTR, true);
	CHECK(!atomic_load(&run->prepared));
	CHECK_INT(made, 0);

	run = run_with(0, true);
	CHECK(!atomic_load(&run->prepared));
	CHECK(!run->complete);
	CHECK_INT(made, 0);
	return check_result();
}
