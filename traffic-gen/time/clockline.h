/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes the current line of a clock from one low-priority thread to real-time readers. A sequence lock with two
 * copies: while one is written the other can be read, so that a reader that has preempted the writer never waits for
 * it.
 */
#ifndef BW_CLOCKLINE_H
#define BW_CLOCKLINE_H

#include <stdatomic.h>
#include <stdint.h>

#include "time/twoway.h"

enum { CLOCKLINE_WORDS = (sizeof(struct twoway_line) + 7) / 8 };

struct clockline {
	atomic_uint sequence; /* odd: copy 0 is being written, read copy 1; even: the other way round */
	_Atomic int64_t copies[2][CLOCKLINE_WORDS];
};

/** Begin with an invalid line. */
void clockline_init(struct clockline *clockline);
/** Publish a line; one writing thread. */
void clockline_publish(struct clockline *clockline, const struct twoway_line *line);
/** Copy the current line. Real-time safe: repeats only when a whole publication passed meanwhile. */
struct twoway_line clockline_read(const struct clockline *clockline);

#endif
