/* SPDX-License-Identifier: Apache-2.0 */
/* One connection over TCP between two ends that run once: whoever serves takes the first that comes. */
#ifndef BW_CONNECTION_H
#define BW_CONNECTION_H

#include "port/port.h"

/**
 * Connect. The socket never blocks, and sends at once what it is given.
 *
 * @param sock_out  receives it, or PORT_SOCKET_NONE; the caller closes it even where this fails
 * @return 0, -EINTR: the process is to end, -ETIMEDOUT, or -errno
 */
int connection_open(const struct address *peer, int64_t timeout_ns, port_socket *sock_out);

/** Connect, as often as it takes until somebody listens there. @return as connection_open; the caller closes it likewise */
int connection_reach(const struct address *peer, int64_t timeout_ns, port_socket *sock_out);

/**
 * Wait for the first who connects; nobody else is listened to.
 *
 * @param deadline_monotonic_ns  or INT64_MAX: for ever
 * @param listener  is closed, and becomes PORT_SOCKET_NONE
 * @return 0, -EINTR: the process is to end, -ETIMEDOUT, or -errno
 */
int connection_accept(port_socket *listener, int64_t deadline_monotonic_ns, port_socket *sock_out);

#endif
