/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door of the consumer: a low-priority thread that listens on the port of each TCP stream, lets in connections
 * that come from the producer's address and open with the right hello within a second, and hands them to the
 * receiving threads. At most ACCEPTOR_UNKNOWN_MAX connections a stream wait for their hello; a further one puts the
 * oldest out.
 */
#ifndef BW_ACCEPTOR_H
#define BW_ACCEPTOR_H

#include <stdatomic.h>

#include "traffic/receive/receiver.h"

enum { ACCEPTOR_UNKNOWN_MAX = 4 };

/* What the poller hands back: the first member of a listener or of an unknown connection. */
struct door {
	struct listener *listener;
	bool is_listener;
	port_socket sock; /* PORT_SOCKET_NONE: an unused unknown */
};

/* A connection that has not said hello yet. */
struct unknown {
	struct door door;
	int64_t deadline_monotonic_ns;
	unsigned int length_bytes;
	uint8_t hello[FRAME_HELLO_BYTES];
};

/* The port of one TCP stream. */
struct listener {
	struct door door;
	struct incoming *incoming;
	struct unknown unknown[ACCEPTOR_UNKNOWN_MAX];
};

struct acceptor {
	const struct plan *plan;
	struct port_poller *poller;
	struct port_thread *thread;
	int listener_count;
	struct listener *listeners;
	struct hostile hostile;
	atomic_bool *stop;
};

/** Prepare the thread. @return 0 (acceptor_close frees it), or -errno */
int acceptor_open(struct acceptor *acceptor, const struct plan *plan, int listeners_max, atomic_bool *stop);
void acceptor_close(struct acceptor *acceptor);
/** Listen on the port of a TCP stream. Before the thread runs. @return 0 or -errno */
int acceptor_listen(struct acceptor *acceptor, struct incoming *incoming);
/** Body of the thread. */
void acceptor_run(void *acceptor);

#endif
