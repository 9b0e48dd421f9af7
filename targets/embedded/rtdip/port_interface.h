/* SPDX-License-Identifier: Apache-2.0 */
/* The interface that the service serves: its name of now, the rest as it was found, and whether it is still that. */
#ifndef RTDIP_INTERFACE_H
#define RTDIP_INTERFACE_H

#include <net/if.h>
#include <stdint.h>

#include "rtdip.h"

struct rtdip_interface {
	char name[IF_NAMESIZE];
	unsigned int index;
	uint8_t mac[RTDIP_MAC_BYTES];
	uint16_t data_max_bytes; /* of a frame, by the MTU */
	int control, changes;    /* to ask the kernel; to be read when an interface has changed */
};

/** Find an interface. Its descriptors stay open until the process ends. @return 0 or -errno */
int rtdip_interface_open(const char *name, struct rtdip_interface *interface);

/**
 * Look at an interface after a change. A new name is taken over; it, MTU or state change nothing for who has ports.
 *
 * @return NULL, or what it is that has: programs have its address, and the frames for it would not come any more
 */
const char *rtdip_interface_look(struct rtdip_interface *interface);

#endif
