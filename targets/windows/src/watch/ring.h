/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of calls from the threads of watched programs to the one that writes the record: a ring in memory that they share.
 * Putting never waits: what finds the ring full is counted as lost. A process that dies between claiming a slot and filling it
 * leaves a hole; nothing behind it is taken until ring_skip_hole().
 */
#ifndef BW_WATCH_RING_H
#define BW_WATCH_RING_H

#include <stdbool.h>
#include <stdint.h>

enum { WATCH_VALUES = 3, WATCH_ADDRESS_BYTES = 28, WATCH_TEXT_BYTES = 72, WATCH_READY_MAX = 12, WATCH_SLOTS = 16384 };

/** A socket of which a wait said something. */
struct watch_ready {
	uint32_t socket, events;
};

/** One call, or the end of an operation that one has begun. */
struct watch_event {
	uint64_t begin_ticks, end_ticks; /* performance counter */
	uint64_t operation;              /* what was begun with an OVERLAPPED, and ended: its number in the process; 0: none */
	int64_t result;                  /* of transfers bytes; -1: failed */
	int64_t values[WATCH_VALUES];    /* as the row of the function names them */
	uint32_t process, thread, socket;
	uint32_t error;                          /* Windows' number, where result is -1 */
	uint16_t function, ended;                /* enum watch_function; ended: of a completion what was begun */
	uint16_t value_mask;                     /* which values there are */
	uint16_t ready_count;                    /* sockets that were ready, also those beyond WATCH_READY_MAX */
	uint8_t address[WATCH_ADDRESS_BYTES];    /* sockaddr_in or sockaddr_in6 as it is on the wire; family 0: none */
	char text[WATCH_TEXT_BYTES];             /* a name that was looked up, what a note says */
	struct watch_ready ready[WATCH_READY_MAX];
};

struct watch_slot {
	uint64_t turn; /* place: free for it; place + 1: filled */
	struct watch_event event;
};

struct watch_ring {
	uint64_t put_place, take_place, lost_count;
	struct watch_slot slots[WATCH_SLOTS];
};

/** Make an empty ring of memory. */
void ring_begin(struct watch_ring *ring);
/** Put a call; from any thread of any process. @return false: the ring is full; it is counted */
bool ring_put(struct watch_ring *ring, const struct watch_event *event);
/** Take the oldest call; by one thread. @return false: there is none, or it is not filled yet */
bool ring_take(struct watch_ring *ring, struct watch_event *event);
/** Skip a slot that was claimed and not filled, and count it as lost. @return false: there is none */
bool ring_skip_hole(struct watch_ring *ring);

#endif
