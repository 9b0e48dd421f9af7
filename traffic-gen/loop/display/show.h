/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window of somebody else's: a program that takes pictures as PGM on its stdin, one after the other. It holds up nobody: what it does
 * not take in time, and all once it has ended, is counted.
 */
#ifndef BW_LOOP_SHOW_H
#define BW_LOOP_SHOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/picture_queue.h"
#include "loop/stream.h"
#include "port/port_child.h"

struct show {
	char *const *argv; /* NULL: there is none */
	struct port_child child;
	struct loop_stream in;
	struct picture_queue queue;
	struct port_thread *thread;
	atomic_bool is_given_up, is_over; /* the thread is to end now; it has ended */
	bool is_lost;                     /* the program takes nothing any more */
	uint64_t shown, unwritten;        /* of the thread: it took all of a picture; it did not */
	int64_t deadline_monotonic_ns;
};

/** Start the program of argv. @return 0 or -errno; show_end is allowed in either case */
int show_start(struct show *show);
/** Hand a picture over. @param wire  its header and pixels */
void show_picture(struct show *show, const uint8_t *wire, size_t size_bytes);
/** No picture comes any more: it has two seconds to take what waits, and to end. Harmless the second time. */
void show_end(struct show *show);
/** Pictures that it did not take. */
uint64_t show_missed(const struct show *show);

#endif
