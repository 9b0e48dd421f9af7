/* SPDX-License-Identifier: Apache-2.0 */
/* How a TCP connection ends, over a socket that the test plays: what was cut off is counted, however it was. */
#include <errno.h>

#include "check.h"
#include "traffic/receive/receiver.h"

static int64_t comes; /* what the next read returns */
static int taken, retired;
static int trust = 0; /* what receiver_take_bytes returns */

int64_t port_recv(port_socket sock, void *data, size_t size_bytes, struct port_received *received)
{
	(void)sock;
	(void)data;
	(void)size_bytes;
	(void)received;
	return comes;
}

void port_tcp_shutdown_input(port_socket sock)
{
	(void)sock;
}

struct arrival receiver_arrival(struct receiver *receiver, const struct port_received *received)
{
	(void)receiver;
	(void)received;
	return (struct arrival){ 0 };
}

int receiver_take_bytes(struct endpoint *endpoint, const uint8_t *bytes, uint32_t length, const struct arrival *arrival)
{
	(void)endpoint;
	(void)bytes;
	(void)arrival;
	taken += (int)length;
	return trust;
}

void receiver_retire(struct endpoint *endpoint)
{
	atomic_store(&endpoint->state, ENDPOINT_FREE);
	retired++;
}

/* Read once on a connection that stands at a position of a message. @return messages that were cut off */
static uint64_t truncated_by(int64_t read, uint32_t position)
{
	static const struct plan plan;
	static struct receiver receiver;
	static struct incoming incoming;

	receiver = (struct receiver){ .plan = &plan };
	incoming = (struct incoming){ .receiver = &receiver };
	incoming.endpoints[0] = (struct endpoint){ .incoming = &incoming, .state = ENDPOINT_ACTIVE, .position = position };
	comes = read;
	taken = retired = 0;
	receiver_read_tcp(&receiver, &incoming.endpoints[0]);
	CHECK_INT(tally_get(&receiver.hostile.bad_check), trust != 0);
	return tally_get(&receiver.hostile.truncated);
}

static void test_a_message_that_is_cut_off_is_counted(void)
{
	CHECK_INT(truncated_by(0, 1), 1); /* the producer has closed it */
	CHECK_INT(retired, 1);
	CHECK_INT(truncated_by(-ECONNRESET, 99), 1); /* it broke */
	CHECK_INT(retired, 1);
	CHECK_INT(taken, 0);
}

static void test_an_end_between_messages_cuts_nothing_off(void)
{
	CHECK_INT(truncated_by(0, 0), 0);
	CHECK_INT(retired, 1);
	CHECK_INT(truncated_by(-ECONNRESET, 0), 0);
	CHECK_INT(retired, 1);
}

static void test_what_is_no_end(void)
{
	CHECK_INT(truncated_by(-EAGAIN, 5), 0);
	CHECK_INT(retired, 0);
	CHECK_INT(truncated_by(700, 5), 0);
	CHECK_INT(retired, 0);
	CHECK_INT(taken, 700);
	trust = -EBADMSG;
	CHECK_INT(truncated_by(700, 5), 0);
	CHECK_INT(retired, 1);
	trust = 0;
}

int main(void)
{
	test_a_message_that_is_cut_off_is_counted();
	test_an_end_between_messages_cuts_nothing_off();
	test_what_is_no_end();
	return check_result();
}
