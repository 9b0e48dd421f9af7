/* SPDX-License-Identifier: Apache-2.0 */
/* The published time handed on to what steers the system's clock (settings: feed). */
#ifndef BW_TIMESERVICE_FEED_H
#define BW_TIMESERVICE_FEED_H

#include "port/port_feed.h"
#include "timeservice/page.h"

/**
 * Hand on what the page says now, if it gives a time, and take the last sample back if it does not; the system's clock is read in
 * the tightest of some brackets of the counter.
 *
 * @param feed  NULL: nobody is fed
 * @return 0 or -errno
 */
int feed_run(struct port_feed *feed, const struct timepage_line *line);

#endif
