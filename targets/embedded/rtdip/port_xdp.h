/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's part of RTDiP: the XDP program on one interface, its maps, and the rings of ports. All of it ends with the process
 * that holds it, also when it is killed: the program is attached by a link, which is a descriptor.
 */
#ifndef RTDIP_PORT_XDP_H
#define RTDIP_PORT_XDP_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"

enum { RTDIP_PORTS_MAX = 1024, RTDIP_TAKE_MAX = 64 };

struct rtdip_kernel {
	int ports, port_counts, counts, address; /* maps */
	int program, link;
	int processors; /* counters of one each */
	bool native;    /* in the driver; else in the kernel's generic path */
};

/**
 * Load the program and attach it to an interface, in its driver where that can, else before the kernel's own receive path.
 *
 * @param interface_index  of the interface
 * @param mac              its address: frames for others go on to the kernel
 * @param generic          do not try the driver
 * @param log              what the kernel's checker says where it refuses the program; BPF_LOG_BYTES
 * @return 0 (rtdip_kernel_close), or -errno: -EPERM, -EBUSY (another XDP program is there), -EINVAL with a log
 */
int rtdip_kernel_open(struct rtdip_kernel *kernel, int interface_index, const uint8_t mac[RTDIP_MAC_BYTES], bool generic,
		      char *log);
void rtdip_kernel_close(struct rtdip_kernel *kernel);

/** Make a ring. @param bytes a power of two, at least a page @return its descriptor, or -errno */
int rtdip_kernel_ring(uint32_t bytes);

/** Let a port's frames go into a ring from now on; the map holds it. @return 0 or -errno */
int rtdip_kernel_give(struct rtdip_kernel *kernel, uint16_t port, int ring);
/**
 * Let nobody have these ports. From then on nothing comes into their rings: it waits for that once (8 to 16 ms); a kernel before
 * 6.8 waits for each port.
 *
 * @param count up to RTDIP_TAKE_MAX
 */
void rtdip_kernel_take(struct rtdip_kernel *kernel, const uint16_t *ports, uint32_t count);

void rtdip_kernel_counts(const struct rtdip_kernel *kernel, uint64_t counts[RTDIP_COUNTS]);
/** Return 0, or -errno where nobody has the port. */
int rtdip_kernel_port_counts(const struct rtdip_kernel *kernel, uint16_t port, struct rtdip_port_counts *counts);

#endif
