/* SPDX-License-Identifier: Apache-2.0 */
/* The edge device's registers as a process of the guest, or of the host, maps them. */
#ifndef BW_EDGE_MAPPING_H
#define BW_EDGE_MAPPING_H

#include <stddef.h>

#include "port/port_clock.h"
#include "edge/device/registers.h"

enum { EDGE_ERROR_BYTES = 256, EDGE_PATH_BYTES = 300 };

struct edge_mapping {
	struct port_page page;
	struct edge_registers *registers;
	uint64_t counter_hz; /* as the host has written it */
};

/**
 * Map the registers in a guest and check that a host serves them.
 *
 * @param path   NULL: the guest's ivshmem device
 * @param error  receives what is wrong, one line
 * @return 0 or -errno
 */
int edge_mapping_open(struct edge_mapping *mapping, const char *path, char *error, size_t error_bytes);
void edge_mapping_close(struct edge_mapping *mapping);

#endif
