/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edge devices of all guests, on the host: looks at their registers about every millisecond, computes what has
 * happened since (device.h), and tells it to the oscilloscope in the order of time.
 *
 * The oscilloscope's time axis is the host's counter in nanoseconds. All pages are decided up to the same instant, so that
 * their edges need no more than sorting; a page with a command that stays announced holds all for EDGE_BEGUN_MAX_NS at most.
 */
#ifndef BW_EDGE_SERVER_H
#define BW_EDGE_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "edge/device/device.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "edge/device/registers.h"
#include "edge/device/scope_sender.h"

enum { EDGE_PAGES_MAX = 16, EDGE_BATCH = 16384 };

struct edge_served {
	char name[CARD_SOURCE_BYTES];
	const char *path;
	struct port_page mapping;
	struct card_page *page;
	struct edge_registers *registers;
	struct device device;
	bool active;            /* calibrated */
	uint64_t offset, bound; /* of its calibration */
	int64_t pending_monotonic_ns[EDGE_OUTPUTS]; /* since when a command is announced; 0: none is */
	uint64_t dead_writers;
	struct edge_server *server;
};

struct edge_timed {
	uint64_t host_counter;
	int channel;
	bool rising;
};

struct edge_server {
	uint64_t hz;
	size_t page_count;
	struct edge_served pages[EDGE_PAGES_MAX];
	uint64_t horizon; /* of the host's counter: decided and told; 0: no page is active yet */
	size_t batch_count;
	struct edge_timed batch[EDGE_BATCH];
	uint64_t batch_lost; /* edges that did not fit */
	struct scope_sender scope;
	bool scope_was_up;
	int64_t last_edge_monotonic_ns, last_until_monotonic_ns;
	uint64_t looks;
	int64_t late_max_ns; /* of a look; edges are not moved by it */
	struct port_scheduling scheduling;
	void (*on_scope)(struct edge_server *server); /* when it has come or gone */
};

/** Make a mapped page an edge device; counter_hz of the server is known. */
void edge_server_prepare(struct edge_server *server, struct edge_served *served);
/** Serve until the process is to end; the body of a thread. @param argument  struct edge_server */
void edge_server_run(void *argument);

#endif
