/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a simulated link: a whole stack with one connection, in a library that is loaded once an end. */
#ifndef BW_USERSTACK_NODE_H
#define BW_USERSTACK_NODE_H

#include <stddef.h>
#include <stdint.h>

#include "recovery.h"

/* What an end asks of the simulator; `end` is the number that it was given. */
struct node_host {
	uint64_t (*now_us)(void);
	uint32_t (*random)(int end);
	void (*output)(int end, uint8_t *packet, size_t size_bytes);
	void (*received)(int end, const uint8_t *data, size_t size_bytes);
	void (*writable)(int end);
	void (*closed)(int end, int error);
};

struct node {
	void (*begin)(const struct node_host *host, int end, unsigned int mtu_bytes, int is_ipv6);
	void (*listen)(void);
	void (*connect)(void);
	/** @return bytes that were taken */
	size_t (*send)(const uint8_t *data, size_t size_bytes);
	/** Send the end of the stream. */
	void (*close)(void);
	void (*input)(const uint8_t *packet, size_t size_bytes);
	void (*advance)(void);
	uint64_t (*next_us)(void);
	struct recovery (*recovery)(void);
	struct recovery_limits *limits;
	/** Connections are controlled by the model of the path, not by the window. */
	void (*use_model)(void);
	/** Take no more data from the connection: its window fills up; or take what waits and go on. */
	void (*hold)(int holds);
};

#endif
