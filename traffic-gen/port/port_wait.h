/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer: waiting for a time, a signal or a datagram, whichever comes first. On Windows named events stand for signals:
 * waiter_tell sets them; its waiters have no socket of their own.
 */
#ifndef BW_PORT_WAIT_H
#define BW_PORT_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

enum { DATAGRAM_BYTES = 192 };

struct datagram {
	uint8_t bytes[DATAGRAM_BYTES]; /* what is longer is cut off */
	size_t size_bytes;
	struct address source;
	int64_t received_realtime_ns; /* read in user space just after it was received */
};

struct waiter {
	intptr_t signals; /* -1: none */
	int sock;         /* -1: none */
};

enum wait_event {
	WAIT_TIME,     /* the deadline has passed */
	WAIT_DATAGRAM,
	WAIT_END,      /* SIGTERM, SIGINT or SIGHUP */
	WAIT_HOLD,     /* SIGUSR1 */
	WAIT_LISTEN,   /* SIGUSR2 */
};

/**
 * Take the signals of this process over.
 *
 * @param holds  SIGUSR1 and SIGUSR2 as well
 * @return 0 or -errno; waiter_close is allowed in either case
 */
int waiter_open(struct waiter *waiter, bool holds);
/** Open a UDP socket of any port; it takes datagrams from anybody. @return 0 or -errno */
int waiter_open_socket(struct waiter *waiter);
void waiter_close(struct waiter *waiter);

/** Send one datagram. @return 0 or -errno */
int waiter_send(const struct waiter *waiter, const struct address *peer, const void *data, size_t size_bytes);

/**
 * Wait until a time of CLOCK_MONOTONIC.
 *
 * @param datagram  receives what came; NULL: datagrams are left where they are
 * @return what came first, or -errno
 */
int waiter_wait(struct waiter *waiter, int64_t deadline_monotonic_ns, struct datagram *datagram);

/**
 * Wait likewise, for a socket of the caller's.
 *
 * @param sock  as of port.h; -1: none
 * @return WAIT_DATAGRAM: there is something to read, a stamp of sending or an error perhaps; else as of waiter_wait
 */
int waiter_wait_socket(struct waiter *waiter, int64_t deadline_monotonic_ns, intptr_t sock);

/** Number of this process, by which another one tells its waiter. */
int64_t waiter_own_pid(void);

/** Tell the waiter of another process: WAIT_END, WAIT_HOLD or WAIT_LISTEN. @return 0; -ESRCH: there is none; -EPERM; or -errno */
int waiter_tell(int64_t pid, enum wait_event event);

/** Whether another process that has a waiter is seen from here; one of another container is not. */
bool waiter_is_seen(int64_t pid);

#endif
