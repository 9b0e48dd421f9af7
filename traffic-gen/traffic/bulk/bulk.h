/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random data in bulk over TCP, after ettcp of the paper on distributed control loops (3.1). One end connects and sends, at a rate or
 * as fast as it goes; the other one receives. Both record each piece that a call has taken or given, and add up the same sum.
 */
#ifndef BW_BULK_H
#define BW_BULK_H

#include "base/tally.h"
#include "traffic/bulk/bulk_data.h"
#include "traffic/roundtrip/side.h"

enum { BULK_BLOCK_MIN = 1, BULK_BLOCK_MAX = 1 << 20, BULK_RATE_MAX_MBIT = 1000000 };

/** Both ends have this. Of the thread that runs, until it has ended; only tallies are read meanwhile. */
struct bulk_end {
	struct side side;             /* its thread; the socket is the connection */
	int64_t timeout_ns;
	int64_t block_bytes;          /* of a call, at most */
	struct tally moved_bytes;     /* taken by the connection, or read */
	uint64_t calls;               /* that moved any */
	int64_t blocked_ns;           /* waited for room in the connection, or for bytes */
	int64_t begin_monotonic_ns, end_monotonic_ns; /* connected; at the last byte */
	struct bulk_sum sum;
	const char *failed;           /* why it came to no end; NULL: it did */
	int error;                    /* -errno of that, or 0 */
	uint8_t block[BULK_BLOCK_MAX];
};

struct bulk_sender {
	struct bulk_end end;
	struct address peer;
	int64_t rate_mbit;            /* 0: as fast as it goes */
	int64_t bytes, duration_ns;   /* either ends it; 0: does not */
};

struct bulk_receiver {
	struct bulk_end end;
	port_socket listener;
	int64_t duration_ns;          /* ends it, connected or not; 0: does not */
	int64_t deadline_monotonic_ns; /* of its thread */
};

/** Run an end until its last byte, or until a stop is requested. */
void bulk_sender_run(void *sender);
void bulk_receiver_run(void *receiver);

/** Note a piece that was moved. */
void bulk_moved(struct bulk_end *end, const uint8_t *data, size_t size_bytes);
/** Note why an end came to none, if it did. @param err  0, or -errno. @param why  NULL: what err says alone is known */
void bulk_end_with(struct bulk_end *end, const char *why, int err);

#endif
