/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of the verb offset, each run to its end on the thread that calls it. */
#ifndef BW_OFFSET_H
#define BW_OFFSET_H

#include <stdatomic.h>
#include <stdint.h>

#include "time/exchange.h"
#include "port/port.h"
#include "time/stepwatch.h"
#include "time/twoway.h"

/** Answers requests of two-way time transfer. The counts may be read while it runs. */
struct offset_server {
	struct port_tai tai;
	port_socket sock;
	bool kernel_stamps;           /* t2 is the kernel's receive stamp where there is one: it shortens the round trip */
	int64_t end_monotonic_ns;     /* when to end; INT64_MAX: when a stop is requested */
	atomic_uint_fast64_t answered;
	atomic_uint_fast64_t refused; /* datagrams that are no request */
	atomic_uint_fast64_t unsent;  /* replies that the system did not take */
};

/** Open the server's socket. Return 0 or -errno. */
int offset_server_open(struct offset_server *server, const struct address *local);

/** Answer until the end. Memory and work a wake-up are bounded, and a reply is never longer than its request. */
void offset_server_run(void *server);

void offset_server_close(struct offset_server *server);

/** Measures a peer's clock in bursts of exchanges at fixed intervals. */
struct offset_client {
	struct port_tai tai;
	struct exchange_peer peer;
	struct twoway *twoway;
	struct stepwatch watch;       /* of the local clock */
	int64_t interval_ns;
	int64_t duration_ns;
	int64_t first_local_ns;       /* when it began and ended, local CLOCK_TAI */
	int64_t last_local_ns;
	int64_t peer_step_ns;         /* the first step of the peer; 0: none */
	int64_t peer_step_local_ns;
	bool complete;
};

/** Measure for the duration, or until a stop is requested. */
void offset_client_run(void *client);

#endif
