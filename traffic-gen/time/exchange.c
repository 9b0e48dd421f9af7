/* SPDX-License-Identifier: Apache-2.0 */
#include "time/exchange.h"

#include <errno.h>
#include <string.h>

enum { LOSSES_MAX = 2, STRAY_REPLIES_MAX = 64 };

int exchange_open(struct exchange_peer *peer, const struct address *responder, uint64_t cookie)
{
	const struct address any = { .is_ipv6 = responder->is_ipv6 };
	int err;

	memset(peer, 0, sizeof(*peer));
	peer->cookie = cookie;
	err = port_udp_open(&any, &peer->sock);
	if (err)
		return err;
	err = port_udp_connect(peer->sock, responder);
	if (err) {
		port_socket_close(peer->sock);
		return err;
	}
	peer->kernel_stamps = port_socket_stamp_receive(peer->sock) == 0;
	return 0;
}

void exchange_close(struct exchange_peer *peer)
{
	port_socket_close(peer->sock);
	peer->sock = PORT_SOCKET_NONE;
}

/* Read datagrams until one answers the last request. @return 0, -EAGAIN, or -errno */
static int take_reply(struct exchange_peer *peer, const struct port_tai *tai, int64_t t1_local_ns,
		      struct twoway_exchange *exchange)
{
	uint8_t wire[TWOWAY_PACKET_BYTES + 1];

	for (int strays = 0; strays < STRAY_REPLIES_MAX; strays++) {
		struct port_received received = { 0 };
		struct twoway_packet packet;
		int64_t length = port_recv(peer->sock, wire, sizeof(wire), &received);
		int64_t now_tai_ns = port_tai_now_ns(tai);

		if (length < 0)
			return (int)length;
		if (twoway_parse(wire, (size_t)length, &packet) != 0 || packet.kind != TWOWAY_REPLY ||
		    packet.sequence != peer->sequence || packet.cookie != peer->cookie ||
		    packet.t1_local_ns != t1_local_ns)
			continue;
		exchange->t1_local_ns = t1_local_ns;
		exchange->t2_peer_ns = packet.t2_peer_ns;
		exchange->t3_peer_ns = packet.t3_peer_ns;
		exchange->t4_local_ns = now_tai_ns;
		if (received.stamp_realtime_ns) {
			int64_t stamp_tai_ns = port_tai_from_realtime_ns(tai, received.stamp_realtime_ns);

			if (stamp_tai_ns >= t1_local_ns && stamp_tai_ns < now_tai_ns)
				exchange->t4_local_ns = stamp_tai_ns;
		}
		return 0;
	}
	return -EAGAIN;
}

/* One request and its reply. @return 0, -ETIMEDOUT, or -errno */
static int probe(struct exchange_peer *peer, const struct port_tai *tai, int64_t timeout_ns,
		 struct twoway_exchange *exchange)
{
	struct twoway_packet request = { .kind = TWOWAY_REQUEST, .cookie = peer->cookie };
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + timeout_ns;
	uint8_t wire[TWOWAY_PACKET_BYTES];
	struct port_slice slice = { wire, sizeof(wire) };
	int64_t sent;

	request.sequence = ++peer->sequence;
	request.t1_local_ns = port_tai_now_ns(tai);
	twoway_pack(&request, wire);
	sent = port_send(peer->sock, &slice, 1, false);
	if (sent < 0)
		return (int)sent; /* for example: nobody listens there yet */
	peer->requests++;
	for (;;) {
		int64_t left_ns = deadline_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int err;

		if (left_ns <= 0)
			return -ETIMEDOUT;
		err = port_socket_wait_readable(peer->sock, left_ns);
		if (err)
			return err;
		err = take_reply(peer, tai, request.t1_local_ns, exchange);
		if (err != -EAGAIN)
			return err;
	}
}

enum twoway_outcome exchange_burst(struct exchange_peer *peer, const struct port_tai *tai, struct twoway *twoway,
				   int count, int64_t timeout_ns, int64_t *step_ns)
{
	int losses = 0;

	for (int i = 0; i < count && losses < LOSSES_MAX && !port_stop_requested(); i++) {
		struct twoway_exchange exchange;

		if (probe(peer, tai, timeout_ns, &exchange) != 0) {
			losses++;
			continue;
		}
		losses = 0;
		peer->replies++;
		twoway_add(twoway, &exchange); /* counts what it refuses */
	}
	return twoway_end_burst(twoway, step_ns);
}
