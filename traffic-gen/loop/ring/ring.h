/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distributed pipeline of "Distributed control loops on Linux", 3.3: a source sends small messages to a node, which passes each
 * on to the next, until a sink discards it. Source and sink on one machine close a ring. Each program records, by points of bw-events,
 * when it has read and when it writes each message.
 */
#ifndef BW_RING_H
#define BW_RING_H

#include "base/histogram.h"
#include "base/tally.h"
#include "loop/ring/ring_message.h"
#include "time/stepwatch.h"
#include "traffic/roundtrip/side.h"

enum { RING_STAMPS_MAX = 64 };

/* Transmit stamps that the kernel has not given yet: of more than RING_STAMPS_MAX the oldest is forgotten. */
struct ring_stamps {
	bool asked;                     /* this end wants stamps, and its system has them */
	uint32_t key;                   /* TCP: bytes written so far; UDP: stamps asked for so far */
	uint32_t count;
	struct ring_stamp {
		uint32_t key, number;
		bool is_open;
	} open[RING_STAMPS_MAX];
};

/* What this program has seen of the messages: of its thread, until that has ended. */
struct ring_account {
	uint64_t double_messages, disordered, broken;
	uint32_t highest;               /* number, of those that came */
	bool has_ended;                 /* the last message of all came, or was sent */
	uint32_t of;                    /* how many there were, by that */
	uint8_t seen[(RING_COUNT_MAX + 7) / 8];
};

struct ring {
	struct side side;               /* its thread and clock; the sockets are below */
	bool has_from, has_to;          /* it reads; it writes */
	struct address from, to;
	bool is_udp, has_nagle, wants_stamps;
	int64_t writes;                 /* of a message: 1, 2: header, then content */
	int64_t interval_ns, poll_ns, work_ns, hold_ns, hold_turn, timeout_ns;
	uint32_t count, content_bytes;
	port_socket listener, in, out;
	struct ring_stamps stamps;
	struct ring_account account;
	struct tally read, written;
	struct histogram *held;         /* how long, of those that were */
	uint32_t header_bytes;          /* UDP: size of a content whose header has come alone; 0: none */
	int64_t kernel_realtime_ns;     /* the stamp of the message that was read; 0: none */
	struct stepwatch watch;
	const char *failed;             /* why it came to no end; NULL: it did */
	int error;                      /* -errno of that, or 0 */
	uint8_t wire[RING_BYTES_MAX];
};

/** Run source, node or sink until the last message, or until a stop is requested. */
void ring_run(void *ring);

/** Open what this end writes to, if it does. @return 0 or -errno; why is noted */
int ring_connect(struct ring *ring);

/**
 * Wait for a whole message and read it into wire.
 *
 * @return 0; -ECONNRESET: the one before has closed; -EBADMSG: within a message; -EPROTO: it is none; -EINTR; -ETIMEDOUT; -errno
 */
int ring_receive(struct ring *ring, struct ring_message *message);

/** Write the message that is in wire. @return 0 or -errno */
int ring_send(struct ring *ring, const struct ring_message *message);

/** Record the kernel's transmit stamps that have come. */
void ring_read_stamps(struct ring *ring);

/** Note why it came to no end. @return err */
int ring_fail(struct ring *ring, const char *why, int err);

#endif
