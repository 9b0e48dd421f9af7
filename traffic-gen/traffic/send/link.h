/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of one stream to the consumer, by its transport: a connected UDP socket, or a TCP connection that opens with a
 * hello and comes back after it breaks. Driven by the producer's thread; never blocks.
 */
#ifndef BW_LINK_H
#define BW_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "traffic/frame.h"
#include "plan/plan.h"
#include "port/port.h"
#include "rtdip.h"
#include "traffic/rtdip_flow.h"
#include "traffic/rtdip_fragment.h"
#include "traffic/transport.h"

#define LINK_BACKOFF_FIRST_NS INT64_C(10000000) /* 10 ms, doubled by each failure */

enum { LINK_PIECE_BYTES = 32768 }; /* written at a time: tens of microseconds, the delay that it costs a small message */

enum link_state {
	LINK_DOWN,       /* try again at retry_at_monotonic_ns */
	LINK_CONNECTING, /* until the poller says writable, or retry_at_monotonic_ns */
	LINK_UP,
};

struct link {
	struct address local, peer;
	const struct stream *stream;
	const struct sending_transport *transport; /* of the stream */
	uint32_t piece_max_bytes; /* 0: a message goes as a whole */
	struct port_poller *poller;
	void *poller_user;    /* handed back by the poller for this link */
	bool stamps;          /* ask for kernel transmit stamps */
	enum link_state state;
	port_socket sock;
	port_socket watched_sock; /* in the poller; PORT_SOCKET_NONE: none */
	bool blocked;         /* the last write did not fit; the poller says when to go on */
	bool was_up;
	int64_t retry_at_monotonic_ns;
	int64_t backoff_ns;
	uint8_t hello[FRAME_HELLO_BYTES];
	unsigned int hello_left_bytes;
	uint32_t written;     /* bytes of this connection, or datagrams: the key of the next transmit stamp, modulo 2^32 */
	uint64_t reconnects;
	uint64_t blocked_writes;
	int last_error;       /* errno of the last failure; 0: none */
	const char *rtdip_socket;
	struct rtdip *rtdip;  /* NULL: not carried by RTDiP, or not open */
	struct rtdip_address rtdip_peer;
	uint16_t rtdip_port;
	struct rtdip_fragment fragment; /* the next one */
	struct rtdip_credit credit;     /* of a low stream */
	port_socket rtdip_grants;       /* readable while some may be there */
	bool awaits_grant;              /* blocked until one comes */
	bool woken;                     /* the poller has said that one may be there */
};

/** Prepare a link; it opens with the first link_advance(). */
void link_init(struct link *link, const struct plan *plan, const struct plan_producer *producer,
	       const struct stream *stream, struct port_poller *poller, void *poller_user);

/** Open, try again, or ask for leave to write, if it is time. */
void link_advance(struct link *link, int64_t now_monotonic_ns);
/** The poller has reported this link. */
void link_on_event(struct link *link, unsigned int events, int64_t now_monotonic_ns);
/** When link_advance() has something to do, CLOCK_MONOTONIC; INT64_MAX: never. */
int64_t link_deadline_monotonic_ns(const struct link *link);

/** True when bytes can be written now. */
static inline bool link_ready(const struct link *link)
{
	return link->state == LINK_UP && !link->blocked;
}

/** True when the link is up and its hello, if any, is written. */
static inline bool link_established(const struct link *link)
{
	return link->state == LINK_UP && link->hello_left_bytes == 0;
}

/** Write what is left of the hello. Call when link_ready(). */
void link_write_hello(struct link *link, int64_t now_monotonic_ns);

/**
 * Write one piece of a message (of a datagram: all of it).
 *
 * @param last  the last byte of the message is among it: stamp it
 * @return bytes written (fewer than asked, also 0: blocked), or -errno: the link is down, the message begins anew later
 */
int64_t link_write(struct link *link, const struct port_slice *slices, int count, bool last, int64_t now_monotonic_ns);

void link_close(struct link *link);

/*
 * For transports.
 */

/** Set what every socket of a stream has, once it is connected, and count its stamps from 0. */
void link_prepare_socket(struct link *link);
/** Let the poller say when the socket takes bytes. */
void link_watch(struct link *link);
/** What blocked the link is gone, or may be: try again. */
void link_unblock(struct link *link);
/** The connection failed: close it and try again later. */
void link_fail(struct link *link, int err, int64_t now_monotonic_ns);
/** Nothing could be sent for a reason that no event ends (no route, no buffers): keep the socket, and wait a moment. */
void link_hold(struct link *link, int err, int64_t now_monotonic_ns);

/** See transport.h. */
void link_tcp_open(struct link *link, int64_t now_monotonic_ns);
void link_tcp_connected(struct link *link, int64_t now_monotonic_ns);
int64_t link_tcp_send(struct link *link, const struct port_slice *slices, int count, bool stamp);
void link_udp_open(struct link *link, int64_t now_monotonic_ns);
int64_t link_udp_send(struct link *link, const struct port_slice *slices, int count, bool stamp);
void link_rtdip_open(struct link *link, int64_t now_monotonic_ns);
int64_t link_rtdip_send(struct link *link, const struct port_slice *slices, int count, bool stamp);
void link_rtdip_tend(struct link *link, int64_t now_monotonic_ns);
void link_rtdip_lost(struct link *link, int err, int64_t now_monotonic_ns);
void link_rtdip_close(struct link *link);

#endif
