/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/offset/offset.h"

#include <errno.h>

enum { BATCH = 64 }; /* datagrams between two looks at the time and the stop flag */

#define LOOK_NS INT64_C(100000000) /* how often the stop flag is looked at while nothing comes */

int offset_server_open(struct offset_server *server, const struct address *local)
{
	int err = port_udp_open(local, &server->sock);

	if (err)
		return err;
	server->kernel_stamps = port_socket_stamp_receive(server->sock) == 0;
	return 0;
}

void offset_server_close(struct offset_server *server)
{
	port_socket_close(server->sock);
	server->sock = PORT_SOCKET_NONE;
}

/* The moment of receiving: the kernel's stamp unless it makes no sense, as after a step of the clock. */
static int64_t receive_stamp_tai_ns(const struct offset_server *server, const struct port_received *received,
				    int64_t now_tai_ns)
{
	int64_t stamp_tai_ns;

	if (!received->stamp_realtime_ns)
		return now_tai_ns;
	stamp_tai_ns = port_tai_from_realtime_ns(&server->tai, received->stamp_realtime_ns);
	return stamp_tai_ns < now_tai_ns ? stamp_tai_ns : now_tai_ns;
}

/* Answer one datagram. Return 0, or -errno of receiving. */
static int answer(struct offset_server *server)
{
	uint8_t wire[TWOWAY_PACKET_BYTES + 1]; /* one byte more tells what is too long */
	struct port_received received = { 0 };
	struct twoway_packet packet;
	int64_t length = port_recv(server->sock, wire, sizeof(wire), &received);
	int64_t now_tai_ns = port_tai_now_ns(&server->tai);

	if (length < 0)
		return (int)length;
	if (received.truncated || twoway_parse(wire, (size_t)length, &packet) || packet.kind != TWOWAY_REQUEST) {
		atomic_fetch_add_explicit(&server->refused, 1, memory_order_relaxed);
		return 0;
	}
	packet.kind = TWOWAY_REPLY;
	packet.t2_peer_ns = receive_stamp_tai_ns(server, &received, now_tai_ns);
	packet.t3_peer_ns = port_tai_now_ns(&server->tai);
	twoway_pack(&packet, wire);
	if (port_send_to(server->sock, wire, TWOWAY_PACKET_BYTES, &received.source, false) < 0)
		atomic_fetch_add_explicit(&server->unsent, 1, memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&server->answered, 1, memory_order_relaxed);
	return 0;
}

void offset_server_run(void *argument)
{
	struct offset_server *server = argument;

	while (!port_stop_requested()) {
		int64_t left_ns = server->end_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int err = 0;

		if (left_ns <= 0)
			return;
		err = port_socket_wait_readable(server->sock, left_ns < LOOK_NS ? left_ns : LOOK_NS);
		/* An error of receiving is one of an earlier reply (its port is closed): the next datagram is another's. */
		for (int i = 0; i < BATCH && !err; i++)
			err = answer(server);
	}
}
