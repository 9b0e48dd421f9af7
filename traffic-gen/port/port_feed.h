/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer: time handed on to what steers the system's clock: the kernel's own loop, or chronyd by its shared-memory reference
 * clock (chrony.conf(5), `refclock SHM UNIT`; the form is that of ntpd's driver 28).
 */
#ifndef BW_PORT_FEED_H
#define BW_PORT_FEED_H

#include <stdint.h>

enum port_feed_kind { PORT_FEED_KERNEL, PORT_FEED_CHRONY };

/* A reading of the system's clock, and the time that it should have been. */
struct port_feed_sample {
	int64_t realtime_ns, utc_ns;
	int leap; /* leap indicator, 0 to 2 */
};

struct port_feed; /* opaque */

/**
 * Open it.
 *
 * @param unit         of the reference clock, 0..255; readers of other users than root need `perm=` there
 * @param interval_ns  from sample to sample
 * @return 0; -ENOTSUP: this system has none; -EPERM, -EACCES: not permitted; or -errno
 */
int port_feed_open(enum port_feed_kind kind, int unit, int64_t interval_ns, struct port_feed **feed_out);
void port_feed_close(struct port_feed *feed);

/** Hand on a sample. The kernel's clock is stepped where it is off by more than 128 ms (RFC 5905: STEPT). @return 0 or -errno */
int port_feed_take(struct port_feed *feed, const struct port_feed_sample *sample);
/** There is no time any more: let nobody read the last sample later. */
void port_feed_withdraw(struct port_feed *feed);

#endif
