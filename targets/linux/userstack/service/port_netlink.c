/* SPDX-License-Identifier: Apache-2.0 */
#include "service/port_netlink.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service/port_netlink_message.h"

enum { REQUEST_BYTES = 512, LISTS_MAX = 100, VALID_STATES = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP };

#define GROUP(number) (UINT32_C(1) << ((number) - 1)) /* of those without an RTMGRP_ of their own */

struct request {
	struct nlmsghdr header;
	uint8_t body[REQUEST_BYTES];
};

/* Takes one message of an answer. */
typedef void take_message(const struct nlmsghdr *message, void *result);

static struct request begin(uint16_t type, uint16_t flags, const void *head, size_t head_bytes)
{
	struct request request = { .header = { .nlmsg_type = type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) } };

	memcpy(request.body, head, head_bytes);
	request.header.nlmsg_len = (uint32_t)NLMSG_LENGTH(head_bytes);
	return request;
}

static struct rtattr *add(struct request *request, uint16_t type, const void *value, size_t bytes)
{
	struct rtattr *attribute = (void *)((uint8_t *)request + NLMSG_ALIGN(request->header.nlmsg_len));

	attribute->rta_type = type;
	attribute->rta_len = (uint16_t)RTA_LENGTH(bytes);
	if (bytes)
		memcpy(RTA_DATA(attribute), value, bytes);
	request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) + (uint32_t)RTA_ALIGN(attribute->rta_len);
	return attribute;
}

static void add_u32(struct request *request, uint16_t type, uint32_t value)
{
	add(request, type, &value, sizeof(value));
}

static void add_text(struct request *request, uint16_t type, const char *text)
{
	add(request, type, text, strlen(text) + 1);
}

/* What was added since belongs into an attribute. */
static void end(struct request *request, struct rtattr *attribute)
{
	attribute->rta_len = (uint16_t)((uint8_t *)request + request->header.nlmsg_len - (uint8_t *)attribute);
}

static uint8_t family_of(const struct path_address *address)
{
	return address->family == 4 ? AF_INET : AF_INET6;
}

static size_t ip_bytes_of(const struct path_address *address)
{
	return address->family == 4 ? 4 : PATH_IP_BYTES;
}

static void add_address(struct request *request, uint16_t type, const struct path_address *address)
{
	add(request, type, address->ip, ip_bytes_of(address));
}

int netlink_open(bool events)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | (events ? SOCK_NONBLOCK : 0), NETLINK_ROUTE);

	if (events)
		address.nl_groups = RTMGRP_LINK | RTMGRP_NEIGH | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV4_RULE |
				    RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE | GROUP(RTNLGRP_IPV6_RULE) |
				    GROUP(RTNLGRP_NEXTHOP);
	if (netlink < 0)
		return -errno;
	if (bind(netlink, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int err = -errno;

		close(netlink);
		return err;
	}
	return netlink;
}

/* What a list ends with: its error stands there, not in a message of its own. */
static int end_of_list(const struct nlmsghdr *message)
{
	int err = 0;

	if (NLMSG_PAYLOAD(message, 0) >= sizeof(err))
		memcpy(&err, NLMSG_DATA(message), sizeof(err));
	return err;
}

/* Take the messages of a part of an answer. Return 1: more comes; or what the answer ends with. */
static int take_part(const void *part, int bytes, uint32_t number, bool *changed, take_message *take, void *result)
{
	const struct nlmsghdr *message = part;

	for (; netlink_fits(message, bytes); message = NLMSG_NEXT(message, bytes)) {
		if (message->nlmsg_seq != number)
			continue;
		*changed |= message->nlmsg_flags & NLM_F_DUMP_INTR;
		if (message->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(message))->error;
		if (message->nlmsg_type == NLMSG_DONE)
			return end_of_list(message);
		if (take)
			take(message, result);
	}
	return 1;
}

/*
 * Send a request and take its answer, whose messages come before the acknowledgement. Return 0 or -errno: -EINTR of a list
 * that changed while the kernel read it, which may lack what was there all the time.
 */
static int ask(int netlink, struct request *request, take_message *take, void *result)
{
	static _Alignas(struct nlmsghdr) char answer[NETLINK_PART_BYTES];
	static uint32_t last_number;
	bool changed = false;
	int state = 1;

	request->header.nlmsg_seq = ++last_number;
	request->header.nlmsg_flags |= NLM_F_ACK;
	if (send(netlink, request, request->header.nlmsg_len, 0) < 0)
		return -errno;
	while (state == 1) {
		ssize_t bytes = recv(netlink, answer, sizeof(answer), 0);

		if (bytes < 0 && errno != EINTR)
			return -errno;
		if (bytes > 0)
			state = take_part(answer, (int)bytes, request->header.nlmsg_seq, &changed, take, result);
	}
	return state == 0 && changed ? -EINTR : state;
}

/* What both ends of a veth have. */
static void add_end(struct request *request, const char *name, uint32_t mtu_bytes)
{
	add_text(request, IFLA_IFNAME, name);
	add_u32(request, IFLA_MTU, mtu_bytes);
	add_u32(request, IFLA_NUM_TX_QUEUES, 1);
	add_u32(request, IFLA_NUM_RX_QUEUES, 1);
}

int netlink_make_veth(int netlink, const struct netlink_veth *veth)
{
	const struct ifinfomsg head = { .ifi_family = AF_UNSPEC };
	struct request request = begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head));
	struct rtattr *about, *data, *peer;

	add_end(&request, veth->card_end, veth->mtu_bytes);
	about = add(&request, IFLA_LINKINFO, NULL, 0);
	add_text(&request, IFLA_INFO_KIND, "veth");
	data = add(&request, IFLA_INFO_DATA, NULL, 0);
	peer = add(&request, VETH_INFO_PEER, &head, sizeof(head));
	add_end(&request, veth->program_end, veth->mtu_bytes);
	add_u32(&request, IFLA_NET_NS_FD, (uint32_t)veth->program_namespace);
	end(&request, peer);
	end(&request, data);
	end(&request, about);
	return ask(netlink, &request, NULL, NULL);
}

int netlink_delete_interface(int netlink, int interface_index)
{
	const struct ifinfomsg head = { .ifi_family = AF_UNSPEC, .ifi_index = interface_index };
	struct request request = begin(RTM_DELLINK, 0, &head, sizeof(head));

	return ask(netlink, &request, NULL, NULL);
}

int netlink_up(int netlink, int interface_index)
{
	const struct ifinfomsg head = {
		.ifi_family = AF_UNSPEC, .ifi_index = interface_index, .ifi_flags = IFF_UP | IFF_NOARP,
		.ifi_change = IFF_UP | IFF_NOARP,
	};
	struct request request = begin(RTM_NEWLINK, 0, &head, sizeof(head));

	return ask(netlink, &request, NULL, NULL);
}

int netlink_set_mtu(int netlink, int interface_index, uint32_t mtu_bytes)
{
	const struct ifinfomsg head = { .ifi_family = AF_UNSPEC, .ifi_index = interface_index };
	struct request request = begin(RTM_NEWLINK, 0, &head, sizeof(head));

	add_u32(&request, IFLA_MTU, mtu_bytes);
	return ask(netlink, &request, NULL, NULL);
}

static void take_interface(const struct nlmsghdr *message, void *result)
{
	struct path_interface *interface = result;
	const struct rtattr *attribute;
	int left;

	for (EACH_ATTRIBUTE(attribute, left, message, struct ifinfomsg)) {
		if (attribute->rta_type == IFLA_ADDRESS && RTA_PAYLOAD(attribute) == PATH_MAC_BYTES)
			memcpy(interface->mac, RTA_DATA(attribute), PATH_MAC_BYTES);
		if (attribute->rta_type == IFLA_MTU)
			memcpy(&interface->mtu_bytes, RTA_DATA(attribute), sizeof(interface->mtu_bytes));
	}
}

int netlink_interface(int netlink, struct path_interface *interface)
{
	const struct ifinfomsg head = { .ifi_family = AF_UNSPEC, .ifi_index = (int)interface->index };
	struct request request = begin(RTM_GETLINK, 0, &head, sizeof(head));

	return ask(netlink, &request, take_interface, interface);
}

struct addresses {
	uint32_t interface_index;
	struct path_address ipv4[PATH_IPV4_ADDRESSES], ipv6[PATH_IPV6_ADDRESSES], of_link[PATH_IPV6_ADDRESSES];
	int ipv4_count, ipv6_count, of_link_count;
};

/* Note an address if there is room. */
static void note(struct path_address *addresses, int room, int *count, const struct path_address *address)
{
	if (*count < room)
		addresses[(*count)++] = *address;
}

static void take_address(const struct nlmsghdr *message, void *result)
{
	const struct ifaddrmsg *head = NLMSG_DATA(message);
	struct addresses *found = result;
	struct path_address address = { 0 };
	uint32_t flags = head->ifa_flags;
	const struct rtattr *attribute;
	bool has_local = false;
	int left;

	for (EACH_ATTRIBUTE(attribute, left, message, struct ifaddrmsg)) {
		if (attribute->rta_type == IFA_FLAGS)
			memcpy(&flags, RTA_DATA(attribute), sizeof(flags));
		if (attribute->rta_type == IFA_LOCAL || (attribute->rta_type == IFA_ADDRESS && !has_local))
			address = netlink_read_address(head->ifa_family, RTA_DATA(attribute), RTA_PAYLOAD(attribute));
		has_local |= attribute->rta_type == IFA_LOCAL;
	}
	if (head->ifa_index != found->interface_index || (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)))
		return;
	if (address.family == 4)
		note(found->ipv4, PATH_IPV4_ADDRESSES, &found->ipv4_count, &address);
	else if (head->ifa_scope != RT_SCOPE_LINK)
		note(found->ipv6, PATH_IPV6_ADDRESSES, &found->ipv6_count, &address);
	else
		note(found->of_link, PATH_IPV6_ADDRESSES, &found->of_link_count, &address);
}

int netlink_addresses(int netlink, uint32_t interface_index, struct path_address addresses[PATH_ADDRESSES])
{
	const struct ifaddrmsg head = { .ifa_family = AF_UNSPEC };
	struct request request = begin(RTM_GETADDR, NLM_F_DUMP, &head, sizeof(head));
	struct addresses found;
	int err = -EINTR;

	for (int times = 0; err == -EINTR && times < LISTS_MAX; times++) {
		found = (struct addresses){ .interface_index = interface_index };
		err = ask(netlink, &request, take_address, &found);
	}
	if (err)
		return err;
	for (int i = 0; i < found.of_link_count; i++)
		note(found.ipv6, PATH_IPV6_ADDRESSES, &found.ipv6_count, &found.of_link[i]);
	memcpy(addresses, found.ipv4, (size_t)found.ipv4_count * sizeof(*addresses));
	memcpy(addresses + found.ipv4_count, found.ipv6, (size_t)found.ipv6_count * sizeof(*addresses));
	return found.ipv4_count + found.ipv6_count;
}

static void take_route(const struct nlmsghdr *message, void *result)
{
	const struct rtmsg *head = NLMSG_DATA(message);
	struct netlink_route *route = result;
	const struct rtattr *attribute;
	int left;

	route->unicast = head->rtm_type == RTN_UNICAST;
	for (EACH_ATTRIBUTE(attribute, left, message, struct rtmsg)) {
		const void *data = RTA_DATA(attribute);
		size_t bytes = RTA_PAYLOAD(attribute);

		if (attribute->rta_type == RTA_OIF)
			memcpy(&route->interface_index, data, sizeof(route->interface_index));
		if (attribute->rta_type == RTA_GATEWAY)
			route->next = netlink_read_address(head->rtm_family, data, bytes);
		if (attribute->rta_type == RTA_VIA) /* the family, then the address */
			route->next = netlink_read_address(*(const uint16_t *)data, (const uint8_t *)data + 2, bytes - 2);
		if (attribute->rta_type == RTA_PREFSRC)
			route->source = netlink_read_address(head->rtm_family, data, bytes);
	}
}

static bool of_link(const struct path_address *address)
{
	return address->family == 6 && address->ip[0] == 0xfe && (address->ip[1] & 0xc0) == 0x80;
}

int netlink_route(int netlink, const struct path_address *to, uint32_t interface_index, struct netlink_route *route)
{
	const struct rtmsg head = { .rtm_family = family_of(to), .rtm_dst_len = (uint8_t)(8 * ip_bytes_of(to)) };
	struct request request = begin(RTM_GETROUTE, 0, &head, sizeof(head));

	*route = (struct netlink_route){ .next = *to };
	add_address(&request, RTA_DST, to);
	if (of_link(to))
		add_u32(&request, RTA_OIF, interface_index);
	return ask(netlink, &request, take_route, route);
}

struct neighbour {
	uint16_t state;
	uint8_t mac[PATH_MAC_BYTES];
};

static void take_neighbour(const struct nlmsghdr *message, void *result)
{
	const struct ndmsg *head = NLMSG_DATA(message);
	struct neighbour *neighbour = result;
	const struct rtattr *attribute;
	int left;

	neighbour->state = head->ndm_state;
	for (EACH_ATTRIBUTE(attribute, left, message, struct ndmsg)) {
		if (attribute->rta_type == NDA_LLADDR && RTA_PAYLOAD(attribute) == PATH_MAC_BYTES)
			memcpy(neighbour->mac, RTA_DATA(attribute), PATH_MAC_BYTES);
	}
}

static int look_up(int netlink, uint32_t interface_index, const struct path_address *neighbour, struct neighbour *found)
{
	const struct ndmsg head = { .ndm_family = family_of(neighbour), .ndm_ifindex = (int)interface_index };
	struct request request = begin(RTM_GETNEIGH, 0, &head, sizeof(head));

	*found = (struct neighbour){ 0 };
	add_address(&request, NDA_DST, neighbour);
	return ask(netlink, &request, take_neighbour, found);
}

bool netlink_neighbour_is_fixed(int netlink, uint32_t interface_index, const struct path_address *neighbour)
{
	struct neighbour found;

	return look_up(netlink, interface_index, neighbour, &found) == 0 && (found.state & (NUD_PERMANENT | NUD_NOARP));
}

int netlink_neighbour(int netlink, uint32_t interface_index, const struct path_address *neighbour, uint8_t mac[PATH_MAC_BYTES])
{
	struct neighbour found;
	int err = look_up(netlink, interface_index, neighbour, &found);

	if (err)
		return err;
	if (found.state & VALID_STATES) {
		memcpy(mac, found.mac, PATH_MAC_BYTES);
		return 0;
	}
	if (found.state & NUD_FAILED)
		return -EHOSTUNREACH;
	return found.state & NUD_INCOMPLETE ? -EINPROGRESS : -ENOENT;
}

int netlink_ask_neighbour(int netlink, uint32_t interface_index, const struct path_address *neighbour)
{
	const struct ndmsg head = {
		.ndm_family = family_of(neighbour), .ndm_ifindex = (int)interface_index, .ndm_flags = NTF_USE,
	};
	struct request request = begin(RTM_NEWNEIGH, NLM_F_CREATE, &head, sizeof(head));

	add_address(&request, NDA_DST, neighbour);
	return ask(netlink, &request, NULL, NULL);
}
