/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A receiving thread of the consumer: reads datagrams and TCP messages of its streams and enters them into their
 * accounts. One read gives data and kernel stamp; the arrival of a message is the clock right after the read that
 * had its last byte. No allocation, logging or lock; other threads only hand connections over (receiver_adopt).
 */
#ifndef BW_RECEIVER_H
#define BW_RECEIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "traffic/receive/account.h"
#include "traffic/receive/own_clock.h"
#include "traffic/frame.h"
#include "plan/plan.h"
#include "port/port.h"
#include "rtdip.h"
#include "time/stepwatch.h"
#include "traffic/rtdip_flow.h"
#include "traffic/transport.h"

enum {
	RECEIVER_CONNECTIONS_MAX = 4,      /* of one stream at a time: the current one and broken ones that still drain */
	RECEIVER_SCRATCH_BYTES = 256 * 1024, /* most that is read at a time */
};

enum endpoint_state {
	ENDPOINT_FREE,   /* may be claimed by the acceptor */
	ENDPOINT_ACTIVE, /* belongs to the receiving thread */
};

/* One open socket of a stream. */
struct endpoint {
	struct incoming *incoming;
	atomic_int state;
	port_socket sock;
	bool fresh;        /* nothing was read yet */
	uint32_t position; /* bytes of the current message that were read, where it comes in parts */
	uint32_t message;  /* RTDiP: which one it is, and whose */
	struct rtdip_address from;
	uint8_t header[FRAME_HEADER_BYTES];
};

/* What a receiving thread keeps of one stream. */
struct incoming {
	struct account account;
	struct receiver *receiver;
	const struct receiving_transport *transport; /* of the stream */
	uint16_t port;
	int flow;          /* RTDiP: its number there; -1: it takes part in none */
	struct endpoint endpoints[RECEIVER_CONNECTIONS_MAX]; /* UDP: the first one alone */
};

struct receiver {
	const struct plan *plan;
	const struct port_tai *tai;
	const struct own_clock *own_clock;
	bool check_fill;            /* compare what follows the header with the fill: a damaged message is bad_check */
	struct port_poller *poller;
	struct port_thread *thread;
	uint8_t *scratch;
	struct stepwatch watch;
	struct hostile hostile;
	struct rtdip *rtdip;             /* NULL: it carries none of the streams */
	struct incoming **rtdip_ports;   /* by port */
	struct rtdip_flow rtdip_flow;    /* of those streams that wait for grants */
	struct incoming *rtdip_flow_streams[RTDIP_FLOW_STREAMS_MAX];
	struct tally clock_steps; /* = watch.count, for other threads */
	atomic_bool *stop;
};

/**
 * Prepare a thread.
 *
 * @param own_clock    what arrivals are stamped with; open, outlives the thread
 * @param sockets_max  endpoints that it may have to watch
 * @return 0 (receiver_close frees it), or -errno
 */
int receiver_open(struct receiver *receiver, const struct plan *plan, const struct own_clock *own_clock, int sockets_max,
		  atomic_bool *stop);
void receiver_close(struct receiver *receiver);

/**
 * Hand an accepted connection, whose hello is read, to its thread.
 *
 * @return 0 (the socket is the thread's now), or -EBUSY when the stream has too many connections, or -errno
 */
int receiver_adopt(struct incoming *incoming, port_socket sock);

/** Close all sockets of a stream. After the thread has ended. */
void receiver_close_incoming(struct incoming *incoming);

/** Body of the thread. */
void receiver_run(void *receiver);

/*
 * For transports.
 */

/** Give a socket to an endpoint that is free; from receiver_watch() on the thread may use it. */
void receiver_activate(struct endpoint *endpoint, struct incoming *incoming, port_socket sock);
/** Let the thread's poller watch an endpoint, with the stamps that the plan asks for. @return 0 or -errno */
int receiver_watch(struct endpoint *endpoint);
/** Close an endpoint; it is free then. */
void receiver_retire(struct endpoint *endpoint);
/** When something arrived: now, and the kernel's stamp of it. */
struct arrival receiver_arrival(struct receiver *receiver, const struct port_received *received);

/**
 * Cut what was read of a stream into messages. The kernel's stamp is that of the last byte: it belongs to a message that ends
 * there.
 *
 * @return 0, or -EBADMSG: what comes cannot be trusted any more
 */
int receiver_take_bytes(struct endpoint *endpoint, const uint8_t *bytes, uint32_t length, const struct arrival *arrival);

/** See transport.h. */
int receiver_listen_udp(struct acceptor *acceptor, struct incoming *incoming);
void receiver_read_tcp(struct receiver *receiver, struct endpoint *endpoint);
void receiver_read_udp(struct receiver *receiver, struct endpoint *endpoint);
int receiver_listen_rtdip(struct acceptor *acceptor, struct incoming *incoming);
void receiver_read_rtdip(struct receiver *receiver, struct endpoint *endpoint);
/** Do what is due without anything having come; @return the longest wait until the next time */
int64_t receiver_tend_rtdip(struct receiver *receiver, int64_t wait_max_ns);

#endif
