/* SPDX-License-Identifier: Apache-2.0 */
/* A link that RTDiP carries: messages go in fragments of one frame each; those of low-latency streams first. */
#include "traffic/send/link.h"

#include <string.h>

static int open_handle(struct link *link)
{
	int err = rtdip_open(link->rtdip_socket, 0, &link->rtdip);

	if (!err)
		err = rtdip_bind(link->rtdip, 0, RTDIP_RING_MIN_BYTES); /* nothing answers; it numbers what leaves */
	if (err < 0)
		return err;
	link->rtdip_port = (uint16_t)err;
	link->piece_max_bytes = rtdip_data_max_bytes(link->rtdip) - RTDIP_FRAGMENT_HEADER_BYTES;
	return 0;
}

void link_rtdip_open(struct link *link, int64_t now_monotonic_ns)
{
	int err = link->rtdip ? 0 : open_handle(link);

	if (!err && link->sock == PORT_SOCKET_NONE) {
		err = rtdip_resolve(link->peer.ipv4, link->rtdip_peer.mac);
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

int64_t link_rtdip_send(struct link *link, const struct port_slice *slices, int count, bool stamp)
{
	uint8_t data[RTDIP_DATA_MAX_BYTES];
	size_t size_bytes = RTDIP_FRAGMENT_HEADER_BYTES;
	int64_t sent;

	(void)stamp; /* there are none */
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
	link->fragment.offset += (uint32_t)size_bytes - RTDIP_FRAGMENT_HEADER_BYTES;
	if (link->fragment.offset == link->stream->size_bytes)
		link->fragment = (struct rtdip_fragment){ link->fragment.message + 1, 0 };
	return sent - RTDIP_FRAGMENT_HEADER_BYTES;
}

/* A frame could not be sent: the message begins anew, after a moment. */
void link_rtdip_lost(struct link *link, int err, int64_t now_monotonic_ns)
{
	link->fragment = (struct rtdip_fragment){ link->fragment.message + 1, 0 };
	link_hold(link, err, now_monotonic_ns);
}

void link_rtdip_close(struct link *link)
{
	if (link->rtdip)
		rtdip_close(link->rtdip);
	link->rtdip = NULL;
}
