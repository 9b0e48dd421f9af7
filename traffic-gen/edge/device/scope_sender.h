/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells edges to a virtual oscilloscope, as lines of its edge port (docs/virtual-oscilloscope.md). Never blocks: while the
 * oscilloscope is away, or does not read, edges are dropped and counted, and the connection is tried again and again.
 */
#ifndef BW_EDGE_SCOPE_SENDER_H
#define BW_EDGE_SCOPE_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "port/port.h"

enum { SCOPE_BUFFER_BYTES = 1 << 20, SCOPE_LINE_BYTES = 128 };

/* On the oscilloscope's time axis: the host's counter in nanoseconds. */
struct scope_time {
	int64_t counter_ns;
	int ps; /* 0..999 */
};

enum scope_state { SCOPE_AWAY, SCOPE_CONNECTING, SCOPE_UP };

struct scope_sender {
	struct address peer;
	enum scope_state state;
	port_socket sock;
	struct port_poller *poller;
	int64_t retry_at_monotonic_ns; /* when to try again, or to give a try up */
	int64_t look_at_monotonic_ns;  /* when to look whether the oscilloscope has hung up */
	char *buffer;
	size_t used_bytes;
	bool broken_line;    /* the buffer begins within a line */
	uint64_t edges;      /* told to this sender */
	uint64_t lost;       /* of them, not handed to a connection */
	uint64_t connections;
};

/** @return 0 or -errno */
int scope_sender_init(struct scope_sender *sender, const struct address *peer);
/** Send what the socket takes at once, and free all. */
void scope_sender_release(struct scope_sender *sender);
/** Add an edge; times must not go backwards. @param channel  1..8 */
void scope_sender_edge(struct scope_sender *sender, int channel, struct scope_time time, bool rising);
/** Promise that no earlier edge comes any more. */
void scope_sender_until(struct scope_sender *sender, int64_t counter_ns);
/** Connect, send, notice the end of a connection. Call each millisecond or so. */
void scope_sender_work(struct scope_sender *sender, int64_t now_monotonic_ns);

#endif
