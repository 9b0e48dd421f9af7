/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/device/mapping.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COUNTER_HZ_MIN UINT64_C(100000000)
#define COUNTER_HZ_MAX UINT64_C(10000000000)

static const char *failure(int err)
{
	switch (err) {
	case -ENODEV:
		return "this machine has no ivshmem device (1af4:1110)";
	case -EMSGSIZE:
		return "too short for an edge device";
	case -ENOTSUP:
		return "this system has no shared pages";
	default:
		return strerror(-err);
	}
}

int edge_mapping_open(struct edge_mapping *mapping, const char *path, char *error, size_t error_bytes)
{
	char found[EDGE_PATH_BYTES];
	const char *what = NULL;
	int err = 0;

	memset(mapping, 0, sizeof(*mapping));
	if (port_counter_kind() != PORT_COUNTER_TSC) {
		snprintf(error, error_bytes, "edge device: this machine's counter is no TSC");
		return -ENOTSUP;
	}
	if (!path) {
		err = port_page_find(found, sizeof(found));
		path = err ? "edge device" : found;
	}
	if (!err)
		err = port_page_map(path, EDGE_MAPPING_BYTES, false, &mapping->page);
	if (err) {
		what = failure(err);
	} else {
		mapping->registers = (struct edge_registers *)(void *)((char *)mapping->page.address + EDGE_OFFSET);
		mapping->counter_hz = atomic_load(&mapping->registers->counter_hz);
		if (atomic_load(&mapping->registers->magic) != EDGE_MAGIC)
			what = "no edge device: bw-edge serve does not run, or is of another version";
		else if (mapping->counter_hz < COUNTER_HZ_MIN || mapping->counter_hz > COUNTER_HZ_MAX)
			what = "the edge device states a rate that cannot be";
	}
	if (!what)
		return 0;
	snprintf(error, error_bytes, "%s: %s", path, what);
	edge_mapping_close(mapping);
	return err ? err : -EPROTO;
}

void edge_mapping_close(struct edge_mapping *mapping)
{
	port_page_unmap(&mapping->page);
	mapping->registers = NULL;
}
