/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of a stream: what a program recorded, as NAME.PID.N.STREAM.bwevents.
 *
 * Eight bytes "BWSTREAM", then blocks in the byte order of the machine that wrote them. A file that ends within a block is whole up
 * to the last slot that is there.
 */
#ifndef BW_EVENTS_STREAM_FILE_H
#define BW_EVENTS_STREAM_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "events/layout.h"

#define STREAM_FILE_MAGIC "BWSTREAM"
#define STREAM_FILE_SUFFIX ".bwevents"

enum stream_block_kind {
	STREAM_BLOCK_NAMES = 1, /* struct stream_names, then the descriptions of all points; the first block */
	STREAM_BLOCK_SLOTS = 2, /* slots of a ring, as they are, from `position` on */
	STREAM_BLOCK_CLOCK = 3, /* struct stream_clock: what a clock showed between two readings of the counter */
	STREAM_BLOCK_STATE = 4, /* counters and histograms at the end: struct events_state, then its cells; ring: number of the point */
	STREAM_BLOCK_END = 5,   /* struct stream_end of a ring: what it has come to */
	STREAM_BLOCK_TRIGGER = 6, /* struct stream_trigger: why the history that was written last was */
};

struct stream_block {
	uint32_t byte_order;    /* EVENTS_BYTE_ORDER */
	uint16_t kind, ring;
	uint64_t position;      /* of the first slot in its ring */
	uint64_t size_bytes;    /* of what follows */
};

struct stream_names {
	char program[EVENTS_NAME_BYTES];
	char stream[EVENTS_STREAM_NAME_BYTES];
	uint64_t pid, counter_hz;
	uint32_t counter_kind, point_count, ring_count, ring_slots;
};

struct stream_clock {
	uint32_t clock;         /* enum port_kernel_clock */
	int32_t tai_utc_s;      /* as the kernel has it; 0: it does not know */
	uint64_t before_ticks, after_ticks;
	int64_t clock_ns;
};

struct stream_end {
	uint64_t slots;         /* handed out */
	uint64_t lost;          /* events that had no room */
	uint64_t unfinished;    /* slots that nobody finished: the program was ended in between */
};

struct stream_trigger {
	uint64_t ticks;         /* the counter then */
	int64_t tag;            /* of the event that triggered; 0 otherwise */
	uint32_t cause;         /* enum stream_cause */
	uint32_t reserved;
};

enum stream_cause {
	STREAM_CAUSE_EVENT = 1,
	STREAM_CAUSE_COMMAND = 2, /* `bw-events trigger`, or SIGUSR1 of the recorder */
	STREAM_CAUSE_END = 3,     /* the program, or the recording, ended */
};

/** Why a file could not be written. @return -errno, or -EIO where the system does not say */
int stream_failure(void);
/** Write a block. @param more  after `data`; NULL: nothing @return 0 or as stream_failure */
int stream_block_write(FILE *file, enum stream_block_kind kind, unsigned int ring, uint64_t position, const void *data,
		       size_t size_bytes, const void *more, size_t more_bytes);

#endif
