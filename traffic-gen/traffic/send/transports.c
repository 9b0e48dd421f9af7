/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/send/link.h"

static const struct sending_transport transports[TRANSPORTS] = {
	[TRANSPORT_TCP] = {
		.open = link_tcp_open,
		.connected = link_tcp_connected,
		.send = link_tcp_send,
		.lost = link_fail,
		.piece_max_bytes = LINK_PIECE_BYTES,
	},
	[TRANSPORT_UDP] = {
		.open = link_udp_open,
		.send = link_udp_send,
		.lost = link_hold,
	},
	[TRANSPORT_RTDIP] = {
		.open = link_rtdip_open,
		.send = link_rtdip_send,
		.tend = link_rtdip_tend,
		.lost = link_rtdip_lost,
		.close = link_rtdip_close,
		.piece_max_bytes = RTDIP_FRAGMENT_MAX_BYTES,
	},
};

const struct sending_transport *sending_transport_of(const struct stream *stream)
{
	return &transports[stream->carrier];
}
