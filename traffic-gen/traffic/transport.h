/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transports: what the two ends of a stream do. A stream names one (enum transport); nothing else asks which it is. A new
 * one has a row in plan/pattern.c (its name, what it carries), in send/transports.c and in receive/transports.c.
 */
#ifndef BW_TRANSPORT_H
#define BW_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"
#include "port/port.h"

/* Why a run is invalid, at either end. */
#define RTDIP_SERVICE_ENDED "the service of RTDiP ended during the run"

struct acceptor;
struct endpoint;
struct incoming;
struct link;
struct receiver;

/** The producer's end, called by its thread; nothing blocks. */
struct sending_transport {
	/* Bring a link up, or let it connect: the poller reports it then. */
	void (*open)(struct link *link, int64_t now_monotonic_ns);
	/* The poller has reported a link that connects. NULL: none does. */
	void (*connected)(struct link *link, int64_t now_monotonic_ns);
	/* Write a piece. Return bytes written, fewer where there is no room for more, or -errno (-EAGAIN: none). */
	int64_t (*send)(struct link *link, const struct port_slice *slices, int count, bool stamp);
	/* A link that is up has come to its deadline (link_deadline_monotonic_ns()). NULL: none has one. */
	void (*tend)(struct link *link, int64_t now_monotonic_ns);
	/* A piece could not be written: say what becomes of the link. */
	void (*lost)(struct link *link, int err, int64_t now_monotonic_ns);
	/* The link's socket is closed; close what else it has. NULL: nothing. */
	void (*close)(struct link *link);
	uint32_t piece_max_bytes; /* 0: a message goes as a whole; a link that is up may take less (struct link) */
};

/** The consumer's end. */
struct receiving_transport {
	/* Open what a stream needs, before the threads run. Return 0 or -errno. */
	int (*listen)(struct acceptor *acceptor, struct incoming *incoming);
	/* Read a socket that is readable; called by the receiving thread. */
	void (*receive)(struct receiver *receiver, struct endpoint *endpoint);
};

/** Of a stream; never NULL. */
const struct sending_transport *sending_transport_of(const struct stream *stream);
const struct receiving_transport *receiving_transport_of(const struct stream *stream);

#endif
