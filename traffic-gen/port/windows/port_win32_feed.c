/* SPDX-License-Identifier: Apache-2.0 */
/* Windows has neither: its own service takes no time from others. */
#include "port/port_feed.h"

#include <errno.h>

int port_feed_open(enum port_feed_kind kind, int unit, int64_t interval_ns, struct port_feed **feed_out)
{
	(void)kind;
	(void)unit;
	(void)interval_ns;
	(void)feed_out;
	return -ENOTSUP;
}

void port_feed_close(struct port_feed *feed)
{
	(void)feed;
}

int port_feed_take(struct port_feed *feed, const struct port_feed_sample *sample)
{
	(void)feed;
	(void)sample;
	return -ENOTSUP;
}

void port_feed_withdraw(struct port_feed *feed)
{
	(void)feed;
}
