/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/send/link.h"

#include <errno.h>
#include <string.h>

#define BACKOFF_FIRST_NS INT64_C(10000000)     /* 10 ms, doubled by each failure */
#define BACKOFF_LAST_NS INT64_C(1000000000)    /* 1 s */
#define CONNECT_TIMEOUT_NS INT64_C(3000000000) /* covers a lost SYN and its repetition after 1 s */
#define UDP_HOLD_NS INT64_C(1000000)           /* 1 ms: after a failure that no event ends (no route, no buffers) */

enum { DSCP_EXPEDITED_FORWARDING = 46 };

void link_init(struct link *link, const struct plan *plan, const struct plan_producer *producer,
	       const struct stream *stream, struct port_poller *poller, void *poller_user)
{
	struct frame_hello hello = { stream->id, plan->nonce, stream->size_bytes };

	memset(link, 0, sizeof(*link));
	link->local = (struct address){ producer->address.ipv4, 0 };
	link->peer = (struct address){ plan->consumer.ipv4, (uint16_t)(plan->base_port + stream->id) };
	link->stream = stream;
	link->poller = poller;
	link->poller_user = poller_user;
	link->stamps = plan->capture_stamps;
	link->sock = PORT_SOCKET_NONE;
	link->backoff_ns = BACKOFF_FIRST_NS;
	frame_hello_pack(&hello, link->hello);
}

static void unwatch(struct link *link)
{
	if (link->watched)
		port_poller_remove(link->poller, link->sock);
	link->watched = false;
}

static void watch(struct link *link)
{
	if (!link->watched && port_poller_add(link->poller, link->sock, PORT_POLL_OUT, link->poller_user) == 0)
		link->watched = true;
}

static void drop_socket(struct link *link)
{
	if (link->sock == PORT_SOCKET_NONE)
		return;
	unwatch(link);
	port_socket_close(link->sock);
	link->sock = PORT_SOCKET_NONE;
	link->blocked = false;
}

/* The connection failed: close it and try again later. */
static void fail(struct link *link, int err, int64_t now_monotonic_ns)
{
	drop_socket(link);
	link->state = LINK_DOWN;
	link->last_error = -err;
	link->retry_at_monotonic_ns = now_monotonic_ns + link->backoff_ns;
	if (link->backoff_ns < BACKOFF_LAST_NS)
		link->backoff_ns *= 2;
}

static void prepare_socket(struct link *link)
{
	if (link->stream->low_latency) {
		port_socket_set_dscp(link->sock, DSCP_EXPEDITED_FORWARDING);
		if (link->stream->transport == TRANSPORT_TCP)
			port_socket_set_nodelay(link->sock);
	}
	link->written = 0;
	if (link->stamps && port_socket_stamp_transmit(link->sock) != 0)
		link->stamps = false;
}

static void open_tcp(struct link *link, int64_t now_monotonic_ns)
{
	int err = port_tcp_connect(&link->local, &link->peer, &link->sock);

	if (err && err != -EINPROGRESS) {
		link->sock = PORT_SOCKET_NONE;
		fail(link, err, now_monotonic_ns);
		return;
	}
	link->state = LINK_CONNECTING;
	link->retry_at_monotonic_ns = now_monotonic_ns + CONNECT_TIMEOUT_NS;
	watch(link);
	if (!link->watched)
		fail(link, -ENOSPC, now_monotonic_ns);
}

static void open_udp(struct link *link, int64_t now_monotonic_ns)
{
	int err = 0;

	if (link->sock == PORT_SOCKET_NONE) {
		err = port_udp_open(&link->local, &link->sock);
		if (err)
			link->sock = PORT_SOCKET_NONE;
		else
			err = port_udp_connect(link->sock, &link->peer);
		if (err) {
			fail(link, err, now_monotonic_ns);
			return;
		}
		prepare_socket(link);
	}
	link->state = LINK_UP;
	link->was_up = true;
}

void link_advance(struct link *link, int64_t now_monotonic_ns)
{
	if (link->state == LINK_UP || now_monotonic_ns < link->retry_at_monotonic_ns)
		return;
	if (link->state == LINK_CONNECTING)
		fail(link, -ETIMEDOUT, now_monotonic_ns);
	else if (link->stream->transport == TRANSPORT_UDP)
		open_udp(link, now_monotonic_ns);
	else
		open_tcp(link, now_monotonic_ns);
}

int64_t link_deadline_monotonic_ns(const struct link *link)
{
	return link->state == LINK_UP ? INT64_MAX : link->retry_at_monotonic_ns;
}

static void connected(struct link *link, int64_t now_monotonic_ns)
{
	int err = port_tcp_connect_result(link->sock);

	if (err) {
		fail(link, err, now_monotonic_ns);
		return;
	}
	prepare_socket(link);
	link->state = LINK_UP;
	link->backoff_ns = BACKOFF_FIRST_NS;
	link->hello_left_bytes = FRAME_HELLO_BYTES;
	if (link->was_up)
		link->reconnects++;
	link->was_up = true;
}

void link_on_event(struct link *link, unsigned int events, int64_t now_monotonic_ns)
{
	if (!(events & (PORT_POLL_OUT | PORT_POLL_ERROR)) || link->sock == PORT_SOCKET_NONE)
		return;
	unwatch(link);
	link->blocked = false; /* errors too: the next write says which */
	if (link->state == LINK_CONNECTING)
		connected(link, now_monotonic_ns);
}

/* A datagram could not be sent for a reason that no event ends: hold the stream for a moment. */
static void hold(struct link *link, int err, int64_t now_monotonic_ns)
{
	link->state = LINK_DOWN;
	link->last_error = -err;
	link->retry_at_monotonic_ns = now_monotonic_ns + UDP_HOLD_NS;
}

int64_t link_write(struct link *link, const struct port_slice *slices, int count, bool last, int64_t now_monotonic_ns)
{
	bool datagram = link->stream->transport == TRANSPORT_UDP;
	bool stamp = last && link->stamps;
	int64_t asked_bytes = 0;
	int64_t written = port_send(link->sock, slices, count, stamp);

	if (written == -ECONNREFUSED && datagram) /* reports an earlier datagram; this one was not tried yet */
		written = port_send(link->sock, slices, count, stamp);
	for (int i = 0; i < count; i++)
		asked_bytes += (int64_t)slices[i].size_bytes;
	if (written < 0 && written != -EAGAIN) {
		if (datagram) {
			link->blocked_writes++;
			hold(link, (int)written, now_monotonic_ns);
		} else {
			fail(link, (int)written, now_monotonic_ns);
		}
		return written;
	}
	if (written < asked_bytes) {
		link->blocked = true;
		link->blocked_writes++;
		watch(link);
	}
	if (written < 0)
		return 0;
	link->written += datagram ? 1u : (uint32_t)written;
	return written;
}

void link_write_hello(struct link *link, int64_t now_monotonic_ns)
{
	struct port_slice slice = {
		link->hello + FRAME_HELLO_BYTES - link->hello_left_bytes,
		link->hello_left_bytes,
	};
	int64_t written = link_write(link, &slice, 1, false, now_monotonic_ns);

	if (written > 0)
		link->hello_left_bytes -= (unsigned int)written;
}

void link_close(struct link *link)
{
	drop_socket(link);
	link->state = LINK_DOWN;
	link->retry_at_monotonic_ns = INT64_MAX;
}
