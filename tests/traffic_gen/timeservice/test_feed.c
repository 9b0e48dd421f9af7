/* SPDX-License-Identifier: Apache-2.0 */
/** What is handed on: a time that the page gives, as long as readers are given it, too. */
#include "../check.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "timeservice/feed.h"

#define REALTIME_NS INT64_C(1800000000000000000)
#define FAR_TICKS (UINT64_C(1) << 50)

static int samples, withdrawals;
static struct port_feed_sample last;
static int place; /* its address stands for a feed */
static struct port_feed *const feed = (struct port_feed *)&place;

int64_t port_clock_now_ns(enum port_clock clock)
{
	CHECK_INT(clock, PORT_CLOCK_REALTIME);
	return REALTIME_NS;
}

int port_feed_take(struct port_feed *to, const struct port_feed_sample *sample)
{
	CHECK(to == feed);
	samples++;
	last = *sample;
	return 0;
}

void port_feed_withdraw(struct port_feed *from)
{
	CHECK(from == feed);
	withdrawals++;
}

static struct timepage_line line_of(uint32_t state)
{
	uint64_t now_ticks = port_counter_read();

	return (struct timepage_line){
		.base_ticks = now_ticks,
		.base_utc_ns = REALTIME_NS,
		.mult = TIMEPAGE_MULT_MIN,
		.settled_ticks = now_ticks,
		.settled_utc_ns = REALTIME_NS,
		.settled_mult = TIMEPAGE_MULT_MIN,
		.usable_until_ticks = now_ticks + FAR_TICKS,
		.state = state,
		.leap = 1,
	};
}

static void test_time(uint32_t state)
{
	struct timepage_line line = line_of(state);

	samples = withdrawals = 0;
	CHECK_INT(feed_run(feed, &line), 0);
	CHECK_INT(samples, 1);
	CHECK_INT(withdrawals, 0);
	CHECK_INT(last.realtime_ns, REALTIME_NS);
	CHECK(last.utc_ns >= REALTIME_NS);
	CHECK_INT(last.leap, 1);
	/* Nobody has heard a server for so long that readers get no time any more; the state stays. */
	line.base_ticks -= FAR_TICKS;
	line.usable_until_ticks = line.base_ticks + FAR_TICKS;
	CHECK_INT(feed_run(feed, &line), 0);
	CHECK_INT(samples, 1);
	CHECK_INT(withdrawals, 1);
}

static void test_no_time(uint32_t state)
{
	struct timepage_line line = line_of(state);

	samples = withdrawals = 0;
	CHECK_INT(feed_run(feed, &line), 0);
	CHECK_INT(samples, 0);
	CHECK_INT(withdrawals, 1);
	CHECK_INT(feed_run(NULL, &line), 0);
	CHECK_INT(withdrawals, 1);
}

int main(void)
{
	test_time(TIMEPAGE_SYNCHRONISED);
	test_time(TIMEPAGE_HOLDOVER);
	test_no_time(TIMEPAGE_STARTING);
	test_no_time(TIMEPAGE_UNSYNCHRONISED);
	return check_result();
}
