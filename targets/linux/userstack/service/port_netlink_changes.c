/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says has changed. */
#include <errno.h>
#include <linux/neighbour.h>

#include "service/port_netlink.h"
#include "service/port_netlink_message.h"

static void note_neighbour(const struct nlmsghdr *message, struct netlink_changes *changes)
{
	const struct ndmsg *head = NLMSG_DATA(message);
	struct path_address neighbour = { 0 };
	const struct rtattr *attribute;
	int left;

	if (head->ndm_family != AF_INET && head->ndm_family != AF_INET6) /* of a bridge: MACs behind its ports */
		return;
	for (EACH_ATTRIBUTE(attribute, left, message, struct ndmsg)) {
		if (attribute->rta_type == NDA_DST)
			neighbour = netlink_read_address(head->ndm_family, RTA_DATA(attribute), RTA_PAYLOAD(attribute));
	}
	for (int i = 0; i < changes->neighbour_count; i++) {
		if (!memcmp(&changes->neighbours[i], &neighbour, sizeof(neighbour)))
			return;
	}
	if (changes->neighbour_count < NETLINK_NEIGHBOURS_MAX)
		changes->neighbours[changes->neighbour_count++] = neighbour;
	else
		changes->ways = true;
}

static void note(const struct nlmsghdr *message, uint32_t interface_index, struct netlink_changes *changes)
{
	switch (message->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		if (((const struct ifinfomsg *)NLMSG_DATA(message))->ifi_index == (int)interface_index)
			changes->interface = changes->ways = true;
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR: /* routes vanish with an address, and not all of them say so */
		changes->interface = changes->ways = true;
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		if (((const struct ndmsg *)NLMSG_DATA(message))->ndm_ifindex == (int)interface_index)
			note_neighbour(message, changes);
		break;
	default: changes->ways = true;
	}
}

void netlink_changes(int netlink, uint32_t interface_index, struct netlink_changes *changes)
{
	static _Alignas(struct nlmsghdr) char part[NETLINK_PART_BYTES];

	*changes = (struct netlink_changes){ 0 };
	for (;;) {
		ssize_t bytes = recv(netlink, part, sizeof(part), 0);
		const struct nlmsghdr *message = (const void *)part;
		int left = (int)bytes;

		if (bytes < 0 && errno == ENOBUFS) /* some were lost */
			changes->interface = changes->ways = true;
		else if (bytes < 0 && errno != EINTR)
			return;
		for (; netlink_fits(message, left); message = NLMSG_NEXT(message, left))
			note(message, interface_index, changes);
	}
}
