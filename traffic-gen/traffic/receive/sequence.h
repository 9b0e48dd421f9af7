/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sequence numbers of a stream have come: new, in order or late, again, or too old to tell. Fixed memory: a
 * bitmap of the last SEQUENCE_WINDOW numbers. Pure.
 */
#ifndef BW_SEQUENCE_H
#define BW_SEQUENCE_H

#include <stdint.h>

enum { SEQUENCE_WINDOW = 4096 };

enum sequence_class {
	SEQUENCE_NEW,       /* beyond all that came before */
	SEQUENCE_REORDERED, /* new, but after a higher one */
	SEQUENCE_DUPLICATE, /* came before */
	SEQUENCE_OLD,       /* behind the window: cannot be told from a duplicate, is not counted as received */
};

struct sequence_window {
	int64_t highest; /* -1: none yet */
	uint64_t seen[SEQUENCE_WINDOW / 64];
};

void sequence_init(struct sequence_window *window);
/** Enter a number and say what it is. */
enum sequence_class sequence_enter(struct sequence_window *window, uint32_t sequence);

#endif
