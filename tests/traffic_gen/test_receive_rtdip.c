/* SPDX-License-Identifier: Apache-2.0 */
/* What comes by RTDiP, over a handle that the test plays: fragments become messages, of one sender each. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "traffic/receive/receiver.h"
#include "traffic/rtdip_fragment.h"

enum { SIZE_BYTES = 4, PORT = 7031, COMES_MAX = 8 };

static const struct rtdip_address sender = { .mac = { 2 }, .port = 50000 };
static const struct rtdip_address other_port = { .mac = { 2 }, .port = 50001 };
static const struct rtdip_address other_place = { .mac = { 4 }, .port = 50000 };

/* A fragment of two bytes. */
struct part {
	const struct rtdip_address *from;
	uint32_t message, offset;
};

static struct part comes[COMES_MAX];
static int come_count, next;
static int whole; /* messages */

int rtdip_receive(struct rtdip *handle, struct rtdip_message *message, void *data, size_t room_bytes, int64_t timeout_ns)
{
	const struct part *part = &comes[next];

	(void)handle;
	(void)room_bytes;
	(void)timeout_ns;
	if (next == come_count)
		return -ETIMEDOUT;
	next++;
	*message = (struct rtdip_message){ .from = *part->from, .to_port = PORT, .size_bytes = RTDIP_FRAGMENT_HEADER_BYTES + 2 };
	rtdip_fragment_pack(&(struct rtdip_fragment){ part->message, part->offset }, data);
	return 0;
}

int receiver_take_bytes(struct endpoint *endpoint, const uint8_t *bytes, uint32_t length, const struct arrival *arrival)
{
	(void)bytes;
	(void)arrival;
	endpoint->position += length;
	if (endpoint->position == SIZE_BYTES) {
		endpoint->position = 0;
		whole++;
	}
	return 0;
}

struct arrival receiver_arrival(struct receiver *receiver, const struct port_received *received)
{
	(void)receiver;
	(void)received;
	return (struct arrival){ 0 };
}

int64_t port_clock_now_ns(enum port_clock clock)
{
	(void)clock;
	return 0;
}

/* Of what else the file uses nothing is called here. */
int rtdip_open(const char *socket_path, unsigned int flags, struct rtdip **handle)
{
	(void)socket_path;
	(void)flags;
	(void)handle;
	return -ENOSYS;
}

int rtdip_bind(struct rtdip *handle, uint16_t port, uint32_t ring_bytes)
{
	(void)handle;
	(void)port;
	(void)ring_bytes;
	return -ENOSYS;
}

int rtdip_descriptor(const struct rtdip *handle)
{
	(void)handle;
	return -ENOSYS;
}

int64_t rtdip_send(struct rtdip *handle, const struct rtdip_address *to, uint16_t from_port, enum rtdip_priority priority,
		   const void *data, size_t size_bytes)
{
	(void)handle;
	(void)to;
	(void)from_port;
	(void)priority;
	(void)data;
	(void)size_bytes;
	return -ENOSYS;
}

void receiver_activate(struct endpoint *endpoint, struct incoming *incoming, port_socket sock)
{
	(void)endpoint;
	(void)incoming;
	(void)sock;
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
	return -ENOSYS;
}

/* Let fragments come, up to one without a sender. @return messages that are whole */
static int whole_of(const struct part parts[COMES_MAX])
{
	static const struct plan plan;
	static const struct stream stream = { .size_bytes = SIZE_BYTES, .low_latency = true };
	static struct incoming *ports[UINT16_MAX + 1];
	static uint8_t scratch[RECEIVER_SCRATCH_BYTES];
	static struct receiver receiver;
	static struct incoming incoming;
	atomic_bool stop = false;

	receiver = (struct receiver){ .plan = &plan, .rtdip_ports = ports, .scratch = scratch, .stop = &stop };
	incoming = (struct incoming){ .receiver = &receiver, .account.stream = &stream, .flow = -1 };
	ports[PORT] = &incoming;
	memcpy(comes, parts, sizeof(comes));
	for (come_count = 0; come_count < COMES_MAX && comes[come_count].from; come_count++)
		continue;
	next = whole = 0;
	receiver_read_rtdip(&receiver, &incoming.endpoints[0]);
	CHECK_INT(next, come_count);
	return whole;
}

static void test_a_message_is_whole_or_lost(void)
{
	CHECK_INT(whole_of((struct part[COMES_MAX]){ { &sender, 5, 0 }, { &sender, 5, 2 }, { &sender, 6, 0 }, { &sender, 6, 2 } }), 2);
	CHECK_INT(whole_of((struct part[COMES_MAX]){ { &sender, 5, 0 }, { &sender, 6, 2 } }), 0);
	CHECK_INT(whole_of((struct part[COMES_MAX]){ { &sender, 5, 2 }, { &sender, 5, 0 } }), 0);
}

/* Two senders number their messages alike. */
static void test_a_message_is_one_sender_s(void)
{
	CHECK_INT(whole_of((struct part[COMES_MAX]){ { &sender, 5, 0 }, { &other_port, 5, 2 } }), 0);
	CHECK_INT(whole_of((struct part[COMES_MAX]){ { &sender, 5, 0 }, { &other_place, 5, 2 } }), 0);
	CHECK_INT(whole_of((struct part[COMES_MAX]){ { &sender, 5, 0 }, { &other_place, 5, 2 }, { &sender, 5, 2 } }), 1);
	CHECK_INT(whole_of((struct part[COMES_MAX]){ { &sender, 5, 0 }, { &other_place, 5, 0 }, { &sender, 5, 2 }, { &other_place, 5, 2 } }), 1);
}

int main(void)
{
	test_a_message_is_whole_or_lost();
	test_a_message_is_one_sender_s();
	return check_result();
}
