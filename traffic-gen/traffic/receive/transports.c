/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/receive/acceptor.h"
#include "traffic/receive/receiver.h"

static const struct receiving_transport transports[TRANSPORTS] = {
	[TRANSPORT_TCP] = { .listen = acceptor_listen, .receive = receiver_read_tcp },
	[TRANSPORT_UDP] = { .listen = receiver_listen_udp, .receive = receiver_read_udp },
	[TRANSPORT_RTDIP] = { .listen = receiver_listen_rtdip, .receive = receiver_read_rtdip },
};

const struct receiving_transport *receiving_transport_of(const struct stream *stream)
{
	return &transports[stream->carrier];
}
