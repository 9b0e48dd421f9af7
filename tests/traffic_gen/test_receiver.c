/* SPDX-License-Identifier: Apache-2.0 */
/* A receiving thread's set-up, over a poller that the test plays: what fails half-way is given back, once. */
#include <errno.h>

#include "check.h"
#include "traffic/receive/receiver.h"

static int poller_place; /* its address stands for a poller */
static int create_result, busy_poll_result;
static int pollers, busy_polls;

int port_poller_create(int capacity, struct port_poller **poller_out)
{
	(void)capacity;
	if (create_result)
		return create_result;
	pollers++;
	*poller_out = (struct port_poller *)&poller_place;
	return 0;
}

int port_poller_set_busy_poll(struct port_poller *poller, int busy_poll_us)
{
	CHECK(poller == (struct port_poller *)&poller_place);
	CHECK_INT(busy_poll_us, 50);
	busy_polls++;
	return busy_poll_result;
}

void port_poller_destroy(struct port_poller *poller)
{
	if (poller)
		pollers--;
}

int port_poller_add(struct port_poller *poller, port_socket sock, unsigned int events, void *user)
{
	(void)poller;
	(void)sock;
	(void)events;
	(void)user;
	return -ENOSYS;
}

int port_poller_remove(struct port_poller *poller, port_socket sock)
{
	(void)poller;
	(void)sock;
	return -ENOENT;
}

int port_poller_wait(struct port_poller *poller, struct port_event *events, int capacity, int64_t timeout_ns)
{
	(void)poller;
	(void)events;
	(void)capacity;
	(void)timeout_ns;
	return -ENOSYS;
}

int64_t receiver_tend_rtdip(struct receiver *receiver, int64_t wait_max_ns)
{
	(void)receiver;
	return wait_max_ns;
}

void rtdip_close(struct rtdip *rtdip)
{
	(void)rtdip;
}

/* Open a receiver, and close it whatever came of that, as bw-traffic recv does. @return what opening said */
static int open_and_close(int busy_poll_us)
{
	struct plan plan = { .busy_poll_us = busy_poll_us };
	struct own_clock own_clock = { .tai = NULL };
	struct receiver receiver;
	atomic_bool stop = false;
	int err;

	pollers = busy_polls = 0;
	err = receiver_open(&receiver, &plan, &own_clock, 4, &stop);
	CHECK_INT(pollers, err ? 0 : 1);
	receiver_close(&receiver);
	CHECK_INT(pollers, 0);
	CHECK(!receiver.poller);
	CHECK(!receiver.scratch);
	return err;
}

int main(void)
{
	CHECK_INT(open_and_close(0), 0);
	CHECK_INT(busy_polls, 0);
	CHECK_INT(open_and_close(50), 0);
	CHECK_INT(busy_polls, 1);
	busy_poll_result = -ENOTSUP;
	CHECK_INT(open_and_close(50), -ENOTSUP);
	create_result = -EMFILE;
	CHECK_INT(open_and_close(50), -EMFILE);
	CHECK_INT(busy_polls, 0);
	return check_result();
}
