/* SPDX-License-Identifier: Apache-2.0 */
/** Waiting of the port layer: what ends it, and that it does not mind a socket that it was not given. */
#include "base/time_units.h"
#include "check.h"
#include "port/port.h"
#include "port/port_wait.h"

#define LONG_NS (5000 * NS_PER_MS)

static int64_t after_ns(int64_t ns)
{
	return port_clock_now_ns(PORT_CLOCK_MONOTONIC) + ns;
}

/* Open two sockets of the loopback, the second one connected to the first. */
static void open_pair(port_socket *asked, port_socket *peer)
{
	struct address own = { .ipv4 = 0x7f000001 }, other = own;

	CHECK_INT(port_udp_open(&own, asked), 0);
	CHECK_INT(port_udp_open(&other, peer), 0);
	port_socket_local(*asked, &own);
	CHECK_INT(port_udp_connect(*peer, &own), 0);
}

static void answer_late(void *peer)
{
	port_sleep_ns(50 * NS_PER_MS);
	CHECK_INT(port_send(*(port_socket *)peer, &(struct port_slice){ "late", 4 }, 1, false), 4);
}

/* The answer to a question comes late, while its asker waits for something else. */
static void test_late_datagram(void)
{
	struct waiter waiter;
	port_socket asked, peer;
	struct port_thread *thread;

	CHECK_INT(waiter_open(&waiter, true), 0);
	open_pair(&asked, &peer);
	CHECK_INT(waiter_wait_socket(&waiter, after_ns(NS_PER_MS), asked), WAIT_TIME);
	CHECK_INT(port_thread_start("late", 0, PORT_CPU_ANY, answer_late, &peer, &thread), 0);
	CHECK_INT(waiter_wait_socket(&waiter, after_ns(200 * NS_PER_MS), PORT_SOCKET_NONE), WAIT_TIME);
	port_thread_join(thread);
	CHECK_INT(waiter_wait_socket(&waiter, after_ns(LONG_NS), asked), WAIT_DATAGRAM);
	port_socket_close(asked);
	port_socket_close(peer);
	waiter_close(&waiter);
}

/* A word of another process comes before the time is over, once each. */
static void test_told(void)
{
	static const enum wait_event EVENTS[] = { WAIT_HOLD, WAIT_LISTEN, WAIT_END };
	struct waiter waiter;

	CHECK_INT(waiter_open(&waiter, true), 0);
	CHECK(waiter_is_seen(waiter_own_pid()));
	CHECK(!waiter_is_seen(0));
	CHECK(!waiter_is_seen(INT32_MAX));
	for (size_t i = 0; i < sizeof(EVENTS) / sizeof(EVENTS[0]); i++) {
		CHECK_INT(waiter_wait_socket(&waiter, after_ns(NS_PER_MS), PORT_SOCKET_NONE), WAIT_TIME);
		CHECK_INT(waiter_tell(waiter_own_pid(), EVENTS[i]), 0);
		CHECK_INT(waiter_wait_socket(&waiter, after_ns(LONG_NS), PORT_SOCKET_NONE), EVENTS[i]);
	}
	waiter_close(&waiter);
}

int main(void)
{
	port_init();
	test_late_datagram();
	test_told();
	return check_result();
}
