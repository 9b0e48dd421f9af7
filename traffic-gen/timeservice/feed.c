/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/feed.h"

#include "port/port.h"
#include "port/port_clock.h"

enum { READINGS = 8 };

/* As readers take it: the state stays when the bound has become too wide meanwhile. */
static bool gives_time(const struct timepage_line *line)
{
	return (line->state == TIMEPAGE_SYNCHRONISED || line->state == TIMEPAGE_HOLDOVER) &&
	       (int64_t)(line->usable_until_ticks - port_counter_read()) > 0;
}

int feed_run(struct port_feed *feed, const struct timepage_line *line)
{
	struct port_feed_sample sample = { .leap = line->leap < 3 ? line->leap : 0 };
	uint64_t shortest = UINT64_MAX;

	if (!feed)
		return 0;
	if (!gives_time(line)) {
		port_feed_withdraw(feed);
		return 0;
	}
	for (int i = 0; i < READINGS; i++) {
		uint64_t before = port_counter_read(), after;
		int64_t now_realtime_ns = port_clock_now_ns(PORT_CLOCK_REALTIME);

		after = port_counter_read();
		if (after - before >= shortest)
			continue;
		shortest = after - before;
		sample.realtime_ns = now_realtime_ns;
		sample.utc_ns = timepage_utc_ns(line, before + shortest / 2);
	}
	return port_feed_take(feed, &sample);
}
