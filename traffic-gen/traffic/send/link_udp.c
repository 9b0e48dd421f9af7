/* SPDX-License-Identifier: Apache-2.0 */
/* A link that is a connected UDP socket. */
#include "traffic/send/link.h"

#include <errno.h>

#define HOLD_NS INT64_C(1000000) /* 1 ms: after a failure that no event ends (no route, no buffers) */

void link_udp_open(struct link *link, int64_t now_monotonic_ns)
{
	int err = 0;

	if (link->sock == PORT_SOCKET_NONE) {
		err = port_udp_open(&link->local, &link->sock);
		if (err)
			link->sock = PORT_SOCKET_NONE;
		else
			err = port_udp_connect(link->sock, &link->peer);
		if (err) {
			link_fail(link, err, now_monotonic_ns);
			return;
		}
		link_prepare_socket(link);
	}
	link->state = LINK_UP;
	link->was_up = true;
}

int64_t link_udp_send(struct link *link, const struct port_slice *slices, int count, bool stamp)
{
	int64_t written = port_send(link->sock, slices, count, stamp);

	if (written == -ECONNREFUSED) /* reports an earlier datagram; this one was not tried yet */
		written = port_send(link->sock, slices, count, stamp);
	if (written >= 0)
		link->written++;
	return written;
}

/* A datagram could not be sent for a reason that no event ends: hold the stream for a moment. */
void link_udp_lost(struct link *link, int err, int64_t now_monotonic_ns)
{
	link->blocked_writes++;
	link->state = LINK_DOWN;
	link->last_error = -err;
	link->retry_at_monotonic_ns = now_monotonic_ns + HOLD_NS;
}
