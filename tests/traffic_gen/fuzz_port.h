/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port layer for fuzz targets: sockets and clocks in memory, one thread. What comes from the network, and when, is what
 * the target puts in; a call that breaks the contract of port.h (a closed socket, one closed while it is watched, one that
 * is left open) ends the process.
 */
#ifndef BW_FUZZ_PORT_H
#define BW_FUZZ_PORT_H

#include <stdbool.h>

#include "fuzz.h"
#include "port/port.h"

enum {
	FUZZ_SOCKETS_MAX = 512,     /* opened within one input */
	FUZZ_QUEUE_BYTES = 8192,    /* that one socket holds; what does not fit is not sent, or a datagram lost */
	FUZZ_BACKLOG_MAX = 16,
};

/* What the program under test does, told as it does it. Any may be NULL. */
struct fuzz_watch {
	void (*accepted)(port_socket sock, port_socket listener, const struct address *source);
	/** @param length  as port_recv returns it, -EAGAIN excepted @param source  of a datagram */
	void (*received)(port_socket sock, const uint8_t *bytes, int64_t length, bool truncated, const struct address *source);
	void (*sent)(port_socket sock, const uint8_t *bytes, size_t size_bytes, const struct address *peer);
	void (*watched)(port_socket sock, const struct port_poller *poller);
	void (*closed)(port_socket sock);
	/** The program waits; the target may put something in. @param poller  NULL: for one socket */
	void (*waits)(const struct port_poller *poller);
};

/* Where the program stands. The target changes it between calls, or in the middle of one from a watch. */
struct fuzz_port {
	struct fuzz_watch watch;
	int64_t monotonic_ns;
	int64_t tai_minus_monotonic_ns;
	bool stop;                /* port_stop_requested() */
	size_t piece_bytes;       /* most that one read of a stream gives; 0: all */
	int64_t stamp_age_ns;     /* kernel receive stamps are so old; negative: of the future */
	bool stamps;              /* there are any */
	int fail_accept, fail_add, fail_send, fail_wait; /* -errno of the next call of that kind, once */
	bool spurious;            /* pollers report sockets that nothing has come to */
	unsigned int turn;        /* which of several events comes first */
};

extern struct fuzz_port fuzz_port;

/** Forget everything; begin anew at a given time. */
void fuzz_port_reset(int64_t tai_ns);
/** End the process if a socket is still open. */
void fuzz_port_expect_all_closed(void);

/** Find an open socket of the program by its port. @return PORT_SOCKET_NONE when there is none */
port_socket fuzz_port_bound(uint16_t port);
/** Connect to a listening socket. @return PORT_SOCKET_NONE: the backlog is full */
port_socket fuzz_port_connect(port_socket listener, const struct address *source);
/** Bytes come on a connection that is open; nothing happens otherwise. */
void fuzz_port_feed(port_socket sock, const uint8_t *bytes, size_t size_bytes);
/** The other side ends its connection, in order (0) or not (-errno). */
void fuzz_port_end(port_socket sock, int error);
/** A datagram comes. */
void fuzz_port_datagram(port_socket sock, const uint8_t *bytes, size_t size_bytes, const struct address *source);
/** The next read of this socket fails, once. */
void fuzz_port_fail_read(port_socket sock, int error);

/* The input, as a script that the target reads. Past its end everything is 0. */
struct script {
	const uint8_t *data;
	size_t left;
};

uint64_t script_take(struct script *script, unsigned int bytes);
/** Take up to `wanted` bytes. @return how many there are; *bytes points into the input */
size_t script_take_bytes(struct script *script, size_t wanted, const uint8_t **bytes);

#endif
