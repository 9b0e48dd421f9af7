/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: what the system knows of a TCP connection on which this end sends. Linux alone. */
#ifndef BW_PORT_CONNECTION_H
#define BW_PORT_CONNECTION_H

#include "port/port.h"

/** Times and segments sent again are of the whole connection so far. */
struct port_connection {
	int64_t window_bytes;         /* congestion window */
	int64_t in_flight_bytes;      /* sent, neither acknowledged nor taken for lost; whole segments */
	int64_t rtt_us;               /* smoothed */
	int64_t busy_us;              /* in which there was something to send or to be acknowledged; both below are part of it */
	int64_t receiver_limited_us;  /* in which the receiver's window was full */
	int64_t buffer_limited_us;    /* in which the send buffer was too small */
	uint64_t resent;              /* segments */
};

/** Read it; it never waits for the other end. @return 0; -ENOTSUP: this system does not say; or -errno */
int port_connection_read(port_socket sock, struct port_connection *found);

enum { PORT_CONGESTION_BYTES = 16 };

/**
 * Choose the congestion control; those that a listener accepts have its. @param name  such as cubic
 * @return 0; -ENOENT: the kernel has none of the name; -EPERM: not for this user; -ENOTSUP: not of this system; or -errno
 */
int port_congestion_set(port_socket sock, const char *name);
/** Read which it is. @param name  PORT_CONGESTION_BYTES @return 0; -ENOTSUP: this system does not say; or -errno */
int port_congestion_read(port_socket sock, char *name);

/**
 * Choose how long TCP's segments may be, in both directions; those that a listener accepts have its. @param bytes  of payload and of
 * TCP's options, as MSS counts: 1460 for frames of 1500 by IPv4
 * @return 0; -EINVAL: out of what the system allows; -ENOTSUP: not of this system; or -errno
 */
int port_segment_set(port_socket sock, int bytes);

#endif
