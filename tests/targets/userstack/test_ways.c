/* SPDX-License-Identifier: Apache-2.0 */
/** Which ways the service of the user-mode stack looks up again when something changes. */
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "service/port_netlink.h"
#include "service/port_service.h"

enum { INTERFACE = 7, OTHER_INTERFACE = 8, MESSAGE_BYTES = 256, ON_LINK = 1, FAR = 9, NEAR_PEERS = 3, PEERS = 4, ROUTER = 200, STRANGER = 201 };

static struct service service;
static struct program program;
static int kernel; /* the end from which the kernel's messages come */
static uint8_t macs[256]; /* by the last byte of the address */
static unsigned int looked_up, told;
static uint8_t last_told;
static int32_t last_result;
static uint8_t router = ROUTER;
static unsigned int asks;
static int known; /* what the kernel says of a neighbour */
static bool overrun; /* the socket had no room for all that the kernel said */

/* On the net 10.0.1.0/24 are neighbours, and one router to all others. */
static struct path_address address_of(uint8_t net, uint8_t host)
{
	return (struct path_address){ .family = 4, .ip = { 10, 0, net, host } };
}

int netlink_route(int netlink, const struct path_address *to, uint32_t interface_index, struct netlink_route *route)
{
	(void)netlink;
	*route = (struct netlink_route){ .interface_index = interface_index, .unicast = true, .next = *to };
	if (to->ip[2] != ON_LINK)
		route->next = address_of(ON_LINK, router);
	looked_up++;
	return 0;
}

int netlink_neighbour(int netlink, uint32_t interface_index, const struct path_address *neighbour, uint8_t mac[PATH_MAC_BYTES])
{
	(void)netlink;
	(void)interface_index;
	if (!known)
		mac[PATH_MAC_BYTES - 1] = macs[neighbour->ip[3]];
	return known;
}

bool netlink_neighbour_is_fixed(int netlink, uint32_t interface_index, const struct path_address *neighbour)
{
	(void)netlink;
	(void)interface_index;
	(void)neighbour;
	return false;
}

int netlink_ask_neighbour(int netlink, uint32_t interface_index, const struct path_address *neighbour)
{
	(void)netlink;
	(void)interface_index;
	(void)neighbour;
	asks++;
	return 0;
}

void send_event(const struct client *client, const struct stackd_answer *event)
{
	(void)client;
	told++;
	last_told = event->ip[3];
	last_result = event->result;
}

/* In the place of the C library's. */
ssize_t recv(int socket, void *data, size_t size, int flags)
{
	if (overrun) {
		overrun = false;
		errno = ENOBUFS;
		return -1;
	}
	return recvfrom(socket, data, size, flags, NULL, NULL);
}

/* A message of the kernel: its head, and perhaps an address behind it. */
static void say(uint16_t type, const void *head, size_t head_bytes, const struct path_address *address)
{
	static _Alignas(struct nlmsghdr) uint8_t bytes[MESSAGE_BYTES];
	struct nlmsghdr *message = (void *)bytes;
	struct rtattr *attribute = (void *)(bytes + NLMSG_SPACE(head_bytes));

	*message = (struct nlmsghdr){ .nlmsg_type = type, .nlmsg_len = (uint32_t)NLMSG_SPACE(head_bytes) };
	memcpy(NLMSG_DATA(message), head, head_bytes);
	if (address) {
		*attribute = (struct rtattr){ .rta_type = NDA_DST, .rta_len = (uint16_t)RTA_LENGTH(4) };
		memcpy(RTA_DATA(attribute), address->ip, 4);
		message->nlmsg_len += (uint32_t)RTA_SPACE(4);
	}
	CHECK_INT(send(kernel, message, message->nlmsg_len, 0), message->nlmsg_len);
}

static void say_neighbour(uint16_t type, uint8_t family, int interface_index, uint8_t host)
{
	const struct ndmsg head = { .ndm_family = family, .ndm_ifindex = interface_index, .ndm_state = NUD_REACHABLE };
	const struct path_address address = address_of(ON_LINK, host);

	say(type, &head, sizeof(head), &address);
}

/* Let the service hear what was said. Return how many ways it has looked up. */
static unsigned int hear(bool *interface)
{
	struct netlink_changes changes;

	looked_up = told = asks = 0;
	netlink_changes(service.events, INTERFACE, &changes);
	*interface = changes.interface;
	resolve_again(&service, &changes);
	return looked_up;
}

static void ask(uint8_t net, uint8_t host)
{
	const struct path_address to = address_of(net, host);
	struct stackd_request request = { .verb = STACKD_RESOLVE, .family = AF_INET };
	struct stackd_answer answer = { 0 };

	memcpy(request.ip, to.ip, sizeof(to.ip));
	resolve(&service, &service.clients[0], &request, &answer);
	CHECK_INT(answer.result, 0);
}

static void begin(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends))
		abort();
	service = (struct service){ .interface.index = INTERFACE, .events = ends[0] };
	kernel = ends[1];
	for (int i = 0; i < CLIENTS_MAX; i++)
		service.clients[i].connection = -1;
	service.clients[0] = (struct client){ .connection = 0, .program = &program };
	for (int host = 1; host <= NEAR_PEERS; host++)
		ask(ON_LINK, (uint8_t)host);
	ask(FAR, 1);
}

/* Its own way, and those by routers: the kernel may take another one now. */
static void test_neighbour_concerns_its_way(void)
{
	bool interface;

	say_neighbour(RTM_NEWNEIGH, AF_INET, INTERFACE, 2);
	CHECK_INT(hear(&interface), 1 + PEERS - NEAR_PEERS);
	CHECK(!interface);
	CHECK_INT(told, 0);
	say_neighbour(RTM_DELNEIGH, AF_INET, INTERFACE, 1);
	say_neighbour(RTM_NEWNEIGH, AF_INET, INTERFACE, 1);
	say_neighbour(RTM_NEWNEIGH, AF_INET, INTERFACE, 3);
	CHECK_INT(hear(&interface), 2 + PEERS - NEAR_PEERS);
	say_neighbour(RTM_NEWNEIGH, AF_INET, INTERFACE, STRANGER);
	CHECK_INT(hear(&interface), PEERS - NEAR_PEERS);
}

static void test_program_is_told(void)
{
	bool interface;

	macs[2]++;
	say_neighbour(RTM_NEWNEIGH, AF_INET, INTERFACE, 2);
	hear(&interface);
	CHECK_INT(told, 1);
	CHECK_INT(last_told, 2);
	macs[ROUTER]++;
	say_neighbour(RTM_NEWNEIGH, AF_INET, INTERFACE, ROUTER);
	CHECK_INT(hear(&interface), PEERS - NEAR_PEERS);
	CHECK_INT(told, 1);
	CHECK_INT(last_told, 1);
}

static void test_others_concern_none(void)
{
	bool interface;

	say_neighbour(RTM_NEWNEIGH, AF_INET, OTHER_INTERFACE, 2);
	say_neighbour(RTM_NEWNEIGH, AF_BRIDGE, INTERFACE, 2);
	CHECK_INT(hear(&interface), 0);
	CHECK_INT(hear(&interface), 0);
	CHECK(!interface);
}

static void test_rest_concerns_all(void)
{
	const struct ifinfomsg own = { .ifi_index = INTERFACE }, other = { .ifi_index = OTHER_INTERFACE };
	const struct ifaddrmsg address = { .ifa_index = OTHER_INTERFACE };
	const struct rtmsg route = { .rtm_family = AF_INET };
	bool interface;

	say(RTM_NEWLINK, &other, sizeof(other), NULL);
	CHECK_INT(hear(&interface), 0);
	CHECK(!interface);
	say(RTM_NEWLINK, &own, sizeof(own), NULL);
	CHECK_INT(hear(&interface), PEERS);
	CHECK(interface);
	say(RTM_DELADDR, &address, sizeof(address), NULL);
	CHECK_INT(hear(&interface), PEERS);
	CHECK(interface);
	say(RTM_DELROUTE, &route, sizeof(route), NULL);
	CHECK_INT(hear(&interface), PEERS);
	CHECK(!interface);
}

static void test_more_than_has_room_concerns_all(void)
{
	struct netlink_changes changes;

	for (int host = 100; host < 100 + NETLINK_NEIGHBOURS_MAX; host++)
		say_neighbour(RTM_NEWNEIGH, AF_INET, INTERFACE, (uint8_t)host);
	netlink_changes(service.events, INTERFACE, &changes);
	CHECK_INT(changes.neighbour_count, NETLINK_NEIGHBOURS_MAX);
	CHECK(!changes.ways);
	for (int host = 100; host <= 100 + NETLINK_NEIGHBOURS_MAX; host++)
		say_neighbour(RTM_NEWNEIGH, AF_INET, INTERFACE, (uint8_t)host);
	netlink_changes(service.events, INTERFACE, &changes);
	CHECK(changes.ways);
}

static void test_lost_messages_concern_all(void)
{
	bool interface;

	overrun = true;
	say_neighbour(RTM_NEWNEIGH, AF_INET, OTHER_INTERFACE, 2);
	CHECK_INT(hear(&interface), PEERS);
	CHECK(interface);
}

/* Nobody has asked the other router yet, which says nothing of it. */
static void test_another_router_is_asked(void)
{
	const struct rtmsg route = { .rtm_family = AF_INET };
	const struct path_address to = address_of(FAR, 2);
	struct stackd_request request = { .verb = STACKD_RESOLVE, .family = AF_INET };
	struct stackd_answer answer = { 0 };
	bool interface;

	known = -EINPROGRESS;
	memcpy(request.ip, to.ip, sizeof(to.ip));
	resolve(&service, &service.clients[0], &request, &answer);
	CHECK_INT(answer.result, -EINPROGRESS);
	known = -ENOENT;
	router = STRANGER;
	say(RTM_NEWROUTE, &route, sizeof(route), NULL);
	hear(&interface);
	CHECK_INT(asks, PEERS + 1); /* also for those whose neighbour was forgotten */
	CHECK_INT(told, 0);
	say(RTM_NEWROUTE, &route, sizeof(route), NULL);
	hear(&interface);
	CHECK_INT(told, 1); /* it was asked, and is gone */
	CHECK_INT(last_result, -EHOSTUNREACH);
}

int main(void)
{
	begin();
	test_neighbour_concerns_its_way();
	test_program_is_told();
	test_others_concern_none();
	test_rest_concerns_all();
	test_more_than_has_room_concerns_all();
	test_lost_messages_concern_all();
	test_another_router_is_asked();
	return check_result();
}
