/* SPDX-License-Identifier: Apache-2.0 */
/* A link that is a connected UDP socket. */
#include "traffic/send/link.h"

#include <errno.h>

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
