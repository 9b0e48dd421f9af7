/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP link that fails and comes back, over sockets that the test plays: when it tries again. */
#include <errno.h>

#include "check.h"
#include "traffic/send/link.h"

#define BACKOFF_LAST_NS INT64_C(1280000000) /* the first doubling from 1 s on is the last */

enum { SOCK = 7 };

static int connect_result, open_sockets, watched;

int port_tcp_connect(const struct address *source, const struct address *destination, port_socket *sock)
{
	(void)source;
	(void)destination;
	*sock = SOCK;
	open_sockets++;
	return -EINPROGRESS;
}

int port_tcp_connect_result(port_socket sock)
{
	CHECK_INT(sock, SOCK);
	return connect_result;
}

int64_t port_send(port_socket sock, const struct port_slice *slices, int count, bool want_transmit)
{
	(void)slices;
	(void)count;
	(void)want_transmit;
	CHECK_INT(sock, SOCK);
	return -ECONNRESET;
}

void port_socket_close(port_socket sock)
{
	CHECK_INT(sock, SOCK);
	open_sockets--;
}

int port_socket_set_dscp(port_socket sock, unsigned int dscp)
{
	(void)sock;
	(void)dscp;
	return 0;
}

int port_socket_set_nodelay(port_socket sock)
{
	(void)sock;
	return 0;
}

int port_socket_stamp_transmit(port_socket sock)
{
	(void)sock;
	return 0;
}

int port_poller_add(struct port_poller *poller, port_socket sock, unsigned int events, void *user)
{
	(void)poller;
	(void)sock;
	(void)events;
	(void)user;
	watched++;
	return 0;
}

int port_poller_remove(struct port_poller *poller, port_socket sock)
{
	(void)poller;
	(void)sock;
	watched--;
	return 0;
}

static const struct sending_transport tcp = {
	.open = link_tcp_open, .connected = link_tcp_connected, .send = link_tcp_send, .lost = link_fail,
};

const struct sending_transport *sending_transport_of(const struct stream *stream)
{
	(void)stream;
	return &tcp;
}

static const struct stream stream = { .id = 10, .producer = 1, .size_bytes = 100, .period_ns = 10000000 };
static const struct plan_producer producer = { .number = 1 };
static const struct plan plan = { .base_port = 20000 };
static struct link link_under_test;

/* Let it try to connect at its time. @return how long it waits after a failure, else 0 */
static int64_t try_to_connect(int64_t *now_monotonic_ns, int result)
{
	connect_result = result;
	*now_monotonic_ns = link_deadline_monotonic_ns(&link_under_test);
	link_advance(&link_under_test, *now_monotonic_ns);
	CHECK_INT(link_under_test.state, LINK_CONNECTING);
	link_on_event(&link_under_test, PORT_POLL_OUT, *now_monotonic_ns);
	CHECK_INT(link_under_test.state, result ? LINK_DOWN : LINK_UP);
	return result ? link_deadline_monotonic_ns(&link_under_test) - *now_monotonic_ns : 0;
}

static void test_backoff_begins_anew_after_a_connection(void)
{
	const struct port_slice slice = { "x", 1 };
	int64_t now_monotonic_ns = 0;

	link_init(&link_under_test, &plan, &producer, &stream, NULL, NULL);
	for (int round = 0; round < 3; round++) {
		int64_t wait_ns = 0;

		for (int64_t wanted_ns = LINK_BACKOFF_FIRST_NS; wanted_ns <= BACKOFF_LAST_NS; wanted_ns *= 2) {
			/* The break of the connection before was the first failure of the row. */
			wait_ns = round && wanted_ns == LINK_BACKOFF_FIRST_NS ?
					  link_deadline_monotonic_ns(&link_under_test) - now_monotonic_ns :
					  try_to_connect(&now_monotonic_ns, -ECONNREFUSED);
			CHECK_INT(wait_ns, wanted_ns);
		}
		CHECK_INT(try_to_connect(&now_monotonic_ns, -ECONNREFUSED), BACKOFF_LAST_NS);
		try_to_connect(&now_monotonic_ns, 0);
		CHECK_INT(link_under_test.reconnects, round);
		CHECK_INT(link_under_test.hello_left_bytes, FRAME_HELLO_BYTES);
		now_monotonic_ns += 1000;
		CHECK_INT(link_write(&link_under_test, &slice, 1, true, now_monotonic_ns), -ECONNRESET);
		CHECK_INT(link_under_test.state, LINK_DOWN);
		CHECK_INT(link_under_test.last_error, ECONNRESET);
	}
	link_close(&link_under_test);
	CHECK_INT(open_sockets, 0);
	CHECK_INT(watched, 0);
}

int main(void)
{
	test_backoff_begins_anew_after_a_connection();
	return check_result();
}
