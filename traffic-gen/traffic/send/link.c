/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/send/link.h"

#include <errno.h>
#include <string.h>

#include "events/bwevents.h"

#define BACKOFF_LAST_NS INT64_C(1000000000) /* 1 s */
#define HOLD_NS INT64_C(1000000)            /* 1 ms */

enum { DSCP_EXPEDITED_FORWARDING = 46 };

BW_EVENT_POINT(link_lost, "send", "lost", "a connection failed, or could not be made; tag: stream");
BW_EVENT_POINT(link_blocked, "send", "blocked", "the transport takes no more for now; tag: stream");

void link_init(struct link *link, const struct plan *plan, const struct plan_producer *producer,
	       const struct stream *stream, struct port_poller *poller, void *poller_user)
{
	struct frame_hello hello = { stream->id, plan->nonce, stream->size_bytes };

	memset(link, 0, sizeof(*link));
	link->local = producer->address;
	link->peer = address_at(&plan->consumer, (uint16_t)(plan->base_port + stream->id));
	link->stream = stream;
	link->transport = sending_transport_of(stream);
	link->piece_max_bytes = link->transport->piece_max_bytes;
	link->poller = poller;
	link->poller_user = poller_user;
	link->stamps = plan->capture_stamps;
	link->rtdip_socket = plan->rtdip_socket;
	link->sock = link->watched_sock = link->rtdip_grants = PORT_SOCKET_NONE;
	rtdip_credit_init(&link->credit, (uint32_t)plan->nonce, stream->size_bytes);
	link->backoff_ns = LINK_BACKOFF_FIRST_NS;
	frame_hello_pack(&hello, link->hello);
}

static void unwatch(struct link *link)
{
	if (link->watched_sock != PORT_SOCKET_NONE)
		port_poller_remove(link->poller, link->watched_sock);
	link->watched_sock = PORT_SOCKET_NONE;
}

void link_watch(struct link *link)
{
	port_socket sock = link->awaits_grant ? link->rtdip_grants : link->sock;
	unsigned int events = link->awaits_grant ? PORT_POLL_IN : PORT_POLL_OUT;

	if (link->watched_sock == PORT_SOCKET_NONE && port_poller_add(link->poller, sock, events, link->poller_user) == 0)
		link->watched_sock = sock;
}

void link_unblock(struct link *link)
{
	unwatch(link);
	link->blocked = link->awaits_grant = false;
}

static void drop_socket(struct link *link)
{
	if (link->sock == PORT_SOCKET_NONE)
		return;
	link_unblock(link);
	port_socket_close(link->sock);
	link->sock = PORT_SOCKET_NONE;
}

void link_fail(struct link *link, int err, int64_t now_monotonic_ns)
{
	BW_EVENT(link_lost, link->stream->id);
	drop_socket(link);
	link->state = LINK_DOWN;
	link->last_error = -err;
	link->retry_at_monotonic_ns = now_monotonic_ns + link->backoff_ns;
	if (link->backoff_ns < BACKOFF_LAST_NS)
		link->backoff_ns *= 2;
}

void link_hold(struct link *link, int err, int64_t now_monotonic_ns)
{
	link->blocked_writes++;
	link->state = LINK_DOWN;
	link->last_error = -err;
	link->retry_at_monotonic_ns = now_monotonic_ns + HOLD_NS;
}

void link_prepare_socket(struct link *link)
{
	if (link->stream->low_latency)
		port_socket_set_dscp(link->sock, DSCP_EXPEDITED_FORWARDING);
	link->written = 0;
	if (link->stamps && port_socket_stamp_transmit(link->sock) != 0)
		link->stamps = false;
}

void link_advance(struct link *link, int64_t now_monotonic_ns)
{
	if (now_monotonic_ns < link_deadline_monotonic_ns(link))
		return;
	if (link->state == LINK_UP)
		link->transport->tend(link, now_monotonic_ns);
	else if (link->state == LINK_CONNECTING)
		link_fail(link, -ETIMEDOUT, now_monotonic_ns);
	else
		link->transport->open(link, now_monotonic_ns);
}

int64_t link_deadline_monotonic_ns(const struct link *link)
{
	if (link->state != LINK_UP)
		return link->retry_at_monotonic_ns;
	return link->awaits_grant ? link->credit.ask_at_monotonic_ns : INT64_MAX;
}

void link_on_event(struct link *link, unsigned int events, int64_t now_monotonic_ns)
{
	if (link->sock == PORT_SOCKET_NONE ||
	    !(events & (PORT_POLL_OUT | PORT_POLL_ERROR | (link->awaits_grant ? PORT_POLL_IN : 0u))))
		return;
	link->woken = link->awaits_grant;
	link_unblock(link); /* errors too: the next write says which */
	if (link->state == LINK_CONNECTING)
		link->transport->connected(link, now_monotonic_ns);
}

int64_t link_write(struct link *link, const struct port_slice *slices, int count, bool last, int64_t now_monotonic_ns)
{
	int64_t asked_bytes = 0;
	int64_t written = link->transport->send(link, slices, count, last && link->stamps);

	for (int i = 0; i < count; i++)
		asked_bytes += (int64_t)slices[i].size_bytes;
	if (written < 0 && written != -EAGAIN) {
		link->transport->lost(link, (int)written, now_monotonic_ns);
		return written;
	}
	if (written < asked_bytes) {
		BW_EVENT(link_blocked, link->stream->id);
		link->blocked = true;
		link->blocked_writes++;
		if (!link->awaits_grant || !link->woken)
			link_watch(link); /* what woke it in vain, as a service that ended does, would go on: the deadline is left */
	}
	return written < 0 ? 0 : written;
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
	if (link->transport->close)
		link->transport->close(link);
	link->state = LINK_DOWN;
	link->retry_at_monotonic_ns = INT64_MAX;
}
