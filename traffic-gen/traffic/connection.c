/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/connection.h"

#include <errno.h>

#define LOOK_NS INT64_C(20000000)  /* how often the stop flag is looked at */
#define AGAIN_NS INT64_C(20000000) /* between two attempts to reach one who does not listen yet */

int connection_open(const struct address *peer, int64_t timeout_ns, port_socket *sock_out)
{
	const struct address any = { .is_ipv6 = peer->is_ipv6 };
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + timeout_ns;
	struct port_poller *poller;
	struct port_event event;
	int found = 0, err = port_tcp_connect(&any, peer, sock_out);

	if (err && err != -EINPROGRESS) {
		*sock_out = PORT_SOCKET_NONE;
		return err;
	}
	err = port_poller_create(1, &poller);
	if (err)
		return err;
	err = port_poller_add(poller, *sock_out, PORT_POLL_OUT, NULL);
	while (!err && !found) {
		found = port_poller_wait(poller, &event, 1, LOOK_NS);
		if (found < 0)
			err = found;
		else if (port_stop_requested())
			err = -EINTR;
		else if (!found && port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= deadline_monotonic_ns)
			err = -ETIMEDOUT;
	}
	port_poller_remove(poller, *sock_out);
	port_poller_destroy(poller);
	if (!err)
		err = port_tcp_connect_result(*sock_out);
	return err ? err : port_socket_set_nodelay(*sock_out);
}

int connection_reach(const struct address *peer, int64_t timeout_ns, port_socket *sock_out)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + timeout_ns;

	for (;;) {
		int err = connection_open(peer, timeout_ns, sock_out);

		if (err && *sock_out != PORT_SOCKET_NONE) {
			port_socket_close(*sock_out);
			*sock_out = PORT_SOCKET_NONE;
		}
		if (err != -ECONNREFUSED || port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= deadline_monotonic_ns)
			return err;
		if (port_stop_requested())
			return -EINTR;
		port_sleep_ns(AGAIN_NS);
	}
}

int connection_accept(port_socket *listener, int64_t deadline_monotonic_ns, port_socket *sock_out)
{
	struct address source;
	int err = -EAGAIN;

	while (err == -EAGAIN && !port_stop_requested()) {
		port_socket_wait_readable(*listener, LOOK_NS);
		err = port_tcp_accept(*listener, sock_out, &source);
		if (err == -EAGAIN && port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= deadline_monotonic_ns)
			err = -ETIMEDOUT;
	}
	if (err)
		return port_stop_requested() ? -EINTR : err;
	port_socket_close(*listener);
	*listener = PORT_SOCKET_NONE;
	return port_socket_set_nodelay(*sock_out);
}
