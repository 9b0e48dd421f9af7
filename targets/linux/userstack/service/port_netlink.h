/* SPDX-License-Identifier: Apache-2.0 */
/* What the service asks of rtnetlink. Results are 0 or more, or -errno. `netlink` is a socket of netlink_open(). */
#ifndef BW_PORT_NETLINK_H
#define BW_PORT_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

#include "path/path.h"

enum { NETLINK_NEIGHBOURS_MAX = 64 };

struct netlink_veth {
	const char *card_end, *program_end; /* names */
	int program_namespace;              /* a descriptor */
	uint32_t mtu_bytes;
};

/* The way to an address. */
struct netlink_route {
	uint32_t interface_index;
	bool unicast; /* to one other machine */
	struct path_address next, source; /* `next` may be of the other family */
};

/* What has changed. */
struct netlink_changes {
	bool interface; /* that, or its addresses */
	bool ways;      /* any of them: by a route, or there is no room for the neighbours */
	int neighbour_count;
	struct path_address neighbours[NETLINK_NEIGHBOURS_MAX];
};

/** @param events  whether it hears of changes; then nothing is asked by it */
int netlink_open(bool events);

int netlink_make_veth(int netlink, const struct netlink_veth *veth);
int netlink_delete_interface(int netlink, int interface_index);
/** Bring an interface up, which asks no neighbours. */
int netlink_up(int netlink, int interface_index);
int netlink_set_mtu(int netlink, int interface_index, uint32_t mtu_bytes);
/** Look up MAC and MTU. */
int netlink_interface(int netlink, struct path_interface *interface);

/** The addresses that programs send from: up to sixteen of IPv4, then up to three of IPv6, those of a link last. @return how many */
int netlink_addresses(int netlink, uint32_t interface_index, struct path_address addresses[PATH_ADDRESSES]);

/** @param interface_index  which one an address of a link is on */
int netlink_route(int netlink, const struct path_address *to, uint32_t interface_index, struct netlink_route *route);

/** @return 0 (its MAC is known), -EINPROGRESS (it is being asked), -EHOSTUNREACH (it did not answer), -ENOENT (nobody has asked) */
int netlink_neighbour(int netlink, uint32_t interface_index, const struct path_address *neighbour, uint8_t mac[PATH_MAC_BYTES]);
/** Let the kernel ask a neighbour, or confirm what it knows of it. One that is fixed would be so no more (Linux 5.16 and later). */
int netlink_ask_neighbour(int netlink, uint32_t interface_index, const struct path_address *neighbour);
/** Whether somebody has written it down, so that nobody has to answer for it. */
bool netlink_neighbour_is_fixed(int netlink, uint32_t interface_index, const struct path_address *neighbour);

/** Read what has changed: all of it where the kernel could not say. */
void netlink_changes(int netlink, uint32_t interface_index, struct netlink_changes *changes);

#endif
