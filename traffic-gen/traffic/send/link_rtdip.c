/* SPDX-License-Identifier: Apache-2.0 */
/* A link that RTDiP carries: messages go in fragments of one frame each; those of low-latency streams first, and of the others
 * all but the first when the receiver says so (rtdip_flow.h). */
#include "traffic/send/link.h"

#include <errno.h>
#include <string.h>

static int open_handle(struct link *link)
{
	int err = rtdip_open(link->rtdip_socket, 0, &link->rtdip);

	if (err)
		return err;
	err = rtdip_bind(link->rtdip, 0, RTDIP_RING_MIN_BYTES); /* for grants; it numbers what leaves, too */
	if (err > 0) {
		link->rtdip_port = (uint16_t)err;
		err = rtdip_descriptor(link->rtdip);
	}
	if (err < 0) {
		link_rtdip_close(link);
		return err;
	}
	link->rtdip_grants = err;
	link->piece_max_bytes = rtdip_data_max_bytes(link->rtdip) - RTDIP_FRAGMENT_HEADER_BYTES;
	return 0;
}

void link_rtdip_open(struct link *link, int64_t now_monotonic_ns)
{
	int err = link->rtdip ? 0 : open_handle(link);

	if (!err && link->sock == PORT_SOCKET_NONE) {
		err = link->peer.is_ipv6 ? -EAFNOSUPPORT : rtdip_resolve(link->peer.ipv4, link->rtdip_peer.mac);
		link->rtdip_peer.port = link->peer.port;
		if (!err) {
			err = rtdip_sending_descriptor(link->rtdip);
			link->sock = err < 0 ? PORT_SOCKET_NONE : err;
		}
	}
	if (err < 0) {
		link_fail(link, err, now_monotonic_ns);
		return;
	}
	link->stamps = false;
	link->state = LINK_UP;
	link->was_up = true;
}

/* Take all grants that have come; true: something had. */
static bool take_grants(struct link *link)
{
	uint8_t data[RTDIP_GRANT_BYTES];
	struct rtdip_message message;
	bool any = false;

	while (rtdip_receive(link->rtdip, &message, data, sizeof(data), 0) == 0) {
		any = true;
		if (message.from.port == link->rtdip_peer.port &&
		    memcmp(message.from.mac, link->rtdip_peer.mac, RTDIP_MAC_BYTES) == 0)
			rtdip_credit_take(&link->credit, data, message.size_bytes);
		else
			link->credit.refused++;
	}
	return any;
}

/* Whether the next fragment may go; if not, the link waits for the grant. */
static bool may_send(struct link *link)
{
	if (link->stream->low_latency)
		return true;
	if (link->fragment.offset == 0)
		rtdip_credit_begin(&link->credit, link->fragment.message);
	if (take_grants(link))
		link->woken = false;
	if (rtdip_credit_allows(&link->credit, link->fragment.offset))
		return true;
	rtdip_credit_wait(&link->credit, port_clock_now_ns(PORT_CLOCK_MONOTONIC));
	link->awaits_grant = true;
	return false;
}

int64_t link_rtdip_send(struct link *link, const struct port_slice *slices, int count, bool stamp)
{
	uint8_t data[RTDIP_DATA_MAX_BYTES];
	size_t size_bytes = RTDIP_FRAGMENT_HEADER_BYTES;
	int64_t sent;

	(void)stamp; /* there are none */
	if (!may_send(link))
		return -EAGAIN;
	rtdip_fragment_pack(&link->fragment, data);
	for (int i = 0; i < count; i++) {
		memcpy(data + size_bytes, slices[i].data, slices[i].size_bytes);
		size_bytes += slices[i].size_bytes;
	}
	sent = rtdip_send(link->rtdip, &link->rtdip_peer, link->rtdip_port, link->stream->low_latency ? RTDIP_HIGH : RTDIP_LOW, data,
			  size_bytes);
	if (sent < 0)
		return sent;
	link->written++;
	rtdip_credit_sent(&link->credit);
	link->fragment.offset += (uint32_t)size_bytes - RTDIP_FRAGMENT_HEADER_BYTES;
	if (link->fragment.offset == link->stream->size_bytes)
		link->fragment = (struct rtdip_fragment){ link->fragment.message + 1, 0 };
	return sent - RTDIP_FRAGMENT_HEADER_BYTES;
}

/*
 * No grant has come for some time: ask for it behind all that was sent, so at low priority, and look again. What cannot be sent
 * is as good as lost: the next question comes.
 */
void link_rtdip_tend(struct link *link, int64_t now_monotonic_ns)
{
	uint8_t data[RTDIP_FRAGMENT_HEADER_BYTES];

	if (!rtdip_credit_ask(&link->credit, now_monotonic_ns))
		return;
	rtdip_fragment_pack(&link->fragment, data);
	if (rtdip_send(link->rtdip, &link->rtdip_peer, link->rtdip_port, RTDIP_LOW, data, sizeof(data)) > 0)
		link->written++;
	link->woken = false;
	link_unblock(link);
}

/* A frame could not be sent: the message begins anew, after a moment. */
void link_rtdip_lost(struct link *link, int err, int64_t now_monotonic_ns)
{
	link->fragment = (struct rtdip_fragment){ link->fragment.message + 1, 0 };
	link_hold(link, err, now_monotonic_ns);
}

void link_rtdip_close(struct link *link)
{
	if (link->rtdip_grants != PORT_SOCKET_NONE)
		port_socket_close(link->rtdip_grants);
	link->rtdip_grants = PORT_SOCKET_NONE;
	if (link->rtdip)
		rtdip_close(link->rtdip);
	link->rtdip = NULL;
}
