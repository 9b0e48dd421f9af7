/* SPDX-License-Identifier: Apache-2.0 */
#include "port_interface.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHANGE_BYTES = 16384 };

static uint16_t data_max_bytes(int mtu_bytes)
{
	if (mtu_bytes < RTDIP_HEADER_BYTES)
		return 0;
	return (uint16_t)((mtu_bytes < RTDIP_PAYLOAD_MAX_BYTES ? mtu_bytes : RTDIP_PAYLOAD_MAX_BYTES) - RTDIP_HEADER_BYTES);
}

/* A socket that the kernel tells of interfaces by, or -errno. */
static int open_changes(void)
{
	const struct sockaddr_nl of_links = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int changes = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (changes < 0 || bind(changes, (const struct sockaddr *)&of_links, sizeof(of_links)) < 0)
		return -errno;
	return changes;
}

int rtdip_interface_open(const char *name, struct rtdip_interface *interface)
{
	struct ifreq request = { 0 }, mtu;

	snprintf(interface->name, sizeof(interface->name), "%s", name);
	interface->changes = open_changes(); /* before the first look: no change is missed */
	if (interface->changes < 0)
		return interface->changes;
	interface->index = if_nametoindex(name);
	if (!interface->index)
		return -errno;
	interface->control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strncpy(request.ifr_name, name, sizeof(request.ifr_name) - 1);
	mtu = request;
	if (interface->control < 0 || ioctl(interface->control, SIOCGIFHWADDR, &request) < 0 ||
	    ioctl(interface->control, SIOCGIFMTU, &mtu) < 0)
		return -errno;
	memcpy(interface->mac, request.ifr_hwaddr.sa_data, RTDIP_MAC_BYTES);
	interface->data_max_bytes = data_max_bytes(mtu.ifr_mtu);
	return 0;
}

const char *rtdip_interface_look(struct rtdip_interface *interface)
{
	char change[CHANGE_BYTES];
	struct ifreq request = { .ifr_ifindex = (int)interface->index };

	while (recv(interface->changes, change, sizeof(change), 0) > 0 || errno == ENOBUFS || errno == EINTR)
		;
	if (ioctl(interface->control, SIOCGIFNAME, &request) < 0)
		return errno == ENODEV || errno == ENXIO ? "the interface has gone" : NULL;
	memcpy(interface->name, request.ifr_name, sizeof(interface->name));
	if (ioctl(interface->control, SIOCGIFHWADDR, &request) < 0)
		return NULL; /* it was renamed or removed just now: the kernel tells of that, too */
	return memcmp(request.ifr_hwaddr.sa_data, interface->mac, RTDIP_MAC_BYTES) != 0 ? "the interface has another address now" : NULL;
}
