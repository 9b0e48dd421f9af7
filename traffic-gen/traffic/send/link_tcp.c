/* SPDX-License-Identifier: Apache-2.0 */
/* A link that is a TCP connection: it connects, says its hello, and comes back after it breaks. */
#include "traffic/send/link.h"

#include <errno.h>

#define CONNECT_TIMEOUT_NS INT64_C(3000000000) /* covers a lost SYN and its repetition after 1 s */

void link_tcp_open(struct link *link, int64_t now_monotonic_ns)
{
	int err = port_tcp_connect(&link->local, &link->peer, &link->sock);

	if (err && err != -EINPROGRESS) {
		link->sock = PORT_SOCKET_NONE;
		link_fail(link, err, now_monotonic_ns);
		return;
	}
	link->state = LINK_CONNECTING;
	link->retry_at_monotonic_ns = now_monotonic_ns + CONNECT_TIMEOUT_NS;
	link_watch(link);
	if (link->watched_sock == PORT_SOCKET_NONE)
		link_fail(link, -ENOSPC, now_monotonic_ns);
}

void link_tcp_connected(struct link *link, int64_t now_monotonic_ns)
{
	int err = port_tcp_connect_result(link->sock);

	if (err) {
		link_fail(link, err, now_monotonic_ns);
		return;
	}
	link_prepare_socket(link);
	if (link->stream->low_latency)
		port_socket_set_nodelay(link->sock);
	link->state = LINK_UP;
	link->backoff_ns = LINK_BACKOFF_FIRST_NS;
	link->hello_left_bytes = FRAME_HELLO_BYTES;
	if (link->was_up)
		link->reconnects++;
	link->was_up = true;
}

int64_t link_tcp_send(struct link *link, const struct port_slice *slices, int count, bool stamp)
{
	int64_t written = port_send(link->sock, slices, count, stamp);

	if (written > 0)
		link->written += (uint32_t)written;
	return written;
}
