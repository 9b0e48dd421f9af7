/* SPDX-License-Identifier: Apache-2.0 */
/* How messages of rtnetlink are read. */
#ifndef BW_PORT_NETLINK_MESSAGE_H
#define BW_PORT_NETLINK_MESSAGE_H

#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "path/path.h"

enum { NETLINK_PART_BYTES = 32 * 1024 }; /* what the kernel hands over at once has room in it */

/* Whether a whole message stands at the start of what is left, which NLMSG_NEXT() takes below 0 where the last one is not padded. */
static inline bool netlink_fits(const struct nlmsghdr *message, int left_bytes)
{
	return left_bytes > 0 && NLMSG_OK(message, (uint32_t)left_bytes);
}

/* Go through the attributes behind a message's head: a loop's head. */
#define EACH_ATTRIBUTE(attribute, left, message, head_type) \
	(attribute) = (const void *)((const uint8_t *)NLMSG_DATA(message) + NLMSG_ALIGN(sizeof(head_type))), \
	(left) = (int)NLMSG_PAYLOAD(message, sizeof(head_type)); \
	RTA_OK(attribute, left); \
	(attribute) = RTA_NEXT(attribute, left)

static inline struct path_address netlink_read_address(int family, const void *ip, size_t bytes)
{
	struct path_address address = { .family = family == AF_INET ? 4 : 6 };

	memcpy(address.ip, ip, bytes < PATH_IP_BYTES ? bytes : PATH_IP_BYTES);
	return address;
}

#endif
