/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in shared memory between programs that record and who collects: one `control` a recording, written by `bw-events`; one
 * NAME.PID.N.rings a program or library, written by it. All in the machine's own byte order.
 *
 * A file of rings: header; descriptions of points; a byte for each point (a bit a stream: wanted), and another one (it triggers the
 * stream); for each stream the state of each point; for each stream a ring header for each processor; then the slots of the rings.
 *
 * A slot has 32 bytes. An event takes one, and one more for each 28 bytes that come with it. The last word of a slot is written last
 * and says which position in the ring it was written for, so that a slot of a lap before, or one that nobody has finished, is known.
 */
#ifndef BW_EVENTS_LAYOUT_H
#define BW_EVENTS_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "events/bwevents.h"

#define EVENTS_RINGS_MAGIC "BWRINGS1"
#define EVENTS_CONTROL_MAGIC "BWCONTR1"
#define EVENTS_RINGS_SUFFIX ".rings"

enum {
	EVENTS_BYTE_ORDER = 0x01020304,
	EVENTS_STREAMS_MAX = 8,
	EVENTS_POINTS_MAX = 4096,
	EVENTS_RINGS_MAX = 256,
	EVENTS_SLOTS_MIN = 256,      /* of a ring: more than the longest event takes */
	EVENTS_SLOTS_MAX = 1 << 26,
	EVENTS_SLOT_BYTES = 32,
	EVENTS_PIECE_BYTES = 28,
	EVENTS_NAME_BYTES = 64,
	EVENTS_STREAM_NAME_BYTES = 32,
	EVENTS_WANTED_BYTES = 16384,
	EVENTS_OUTPUT_BYTES = 512,
	EVENTS_TRIGGERS_BYTES = 1024,
	EVENTS_FILTERS_MAX = 32,
	EVENTS_PATTERN_BYTES = 256,
	EVENTS_LINE_BYTES = 64,      /* of the processor's cache */
};

#define EVENTS_COMMIT_FIRST UINT32_C(0x80000000) /* the slot begins an event; else it continues one */

/* What a slot says when all of it is there. */
static inline uint32_t events_commit(uint64_t position, bool first)
{
	return (uint32_t)((position + 1) & 0x7fffffff) | (first ? EVENTS_COMMIT_FIRST : 0);
}

struct events_slot {
	uint64_t ticks;      /* when: the counter of the file's header */
	int64_t tag;
	uint32_t thread;     /* as the system numbers threads */
	uint32_t lost;       /* events that this ring had no room for so far, modulo 2^32 */
	uint16_t point;
	uint16_t size_bytes; /* of what comes in the slots that follow */
	uint32_t commit;
};

struct events_piece {
	uint8_t bytes[EVENTS_PIECE_BYTES];
	uint32_t commit;
};

struct events_ring {
	uint64_t head;       /* atomic: slots handed out since the beginning */
	uint64_t lost;       /* atomic: events that had no room */
	uint8_t line[EVENTS_LINE_BYTES - 16];
	uint64_t tail;       /* atomic: slots that were collected; of who collects */
	uint8_t other_line[EVENTS_LINE_BYTES - 8];
};

/* Of a point in a stream: of counters and histograms what they have come to; of others what of them is recorded. */
struct events_state {
	int64_t sum;         /* atomic */
	uint64_t count;      /* atomic: values added */
	uint64_t cells;      /* of a histogram: its first cell, from the file's first byte; buckets + 2 atomic counts of 64 bits */
	uint64_t seen;       /* atomic: events that lay within min and max */
	int64_t min, max;    /* of the first eight bytes that come with it as a number, or else the tag */
	uint32_t every;      /* of those that lie within, the first of so many is recorded; 0: all events are, whatever min and max */
	uint32_t reserved;
	uint64_t reserved_more;
};

struct events_header {
	char magic[8];
	uint32_t byte_order, header_bytes;
	char program[EVENTS_NAME_BYTES];
	uint64_t pid;
	uint32_t counter_kind;   /* enum port_counter_kind; PORT_COUNTER_NONE: ns of the system's raw monotonic clock */
	uint32_t point_count, stream_count, ring_count; /* rings of each stream */
	uint64_t counter_hz;     /* 0: not stated */
	uint64_t descriptions_at, wanted_at, triggers_at, states_at, rings_at, size_bytes; /* from the file's first byte */
	struct {
		char name[EVENTS_STREAM_NAME_BYTES];
		uint32_t ring_slots; /* a power of 2 */
		uint32_t history;    /* 1: the newest take the place of the oldest, until a trigger */
		uint64_t slots_at;   /* of its first ring */
	} streams[EVENTS_STREAMS_MAX];
};

struct events_control {
	char magic[8];
	uint32_t byte_order, stream_count;
	uint32_t generation;     /* atomic: odd while `wanted` is written */
	uint32_t refused;        /* atomic: programs that could not record into this folder */
	int32_t refused_errno;   /* atomic: why the last one could not */
	uint32_t ended;          /* atomic: 1: no program joins any more */
	uint64_t pid;
	char output[EVENTS_OUTPUT_BYTES]; /* folder that the streams' files go to */
	struct {
		char name[EVENTS_STREAM_NAME_BYTES];
		uint32_t ring_slots, history;
		char wanted[EVENTS_WANTED_BYTES]; /* lines "+group.name" and "-group.name", with * and ?: the last that fits decides */
		char triggers[EVENTS_TRIGGERS_BYTES]; /* likewise */
		uint32_t at_end;                  /* 1: a program's history is written when it ends, too */
		uint32_t after_ms;                /* how long is recorded after a trigger */
		uint64_t triggered_ticks;         /* atomic: the counter at the first trigger that was not dealt with; 0: none */
		int64_t triggered_tag;            /* of that event, as far as it was written by then */
		uint32_t commanded;               /* atomic: 1: not by an event */
		uint32_t reserved;
	} streams[EVENTS_STREAMS_MAX];
	uint32_t filter_count, reserved_too;
	struct {
		uint32_t stream, every;
		int64_t min, max;
		char points[EVENTS_PATTERN_BYTES]; /* as wanted */
	} filters[EVENTS_FILTERS_MAX];
};

/* Where everything is in a mapped file of rings. */
struct events_map {
	uint8_t *base;
	struct events_header header; /* a copy: what others write to the file later moves nothing */
	struct bw_point_description *descriptions;
	uint8_t *wanted, *triggers;
	struct events_state *states; /* [stream * point_count + point] */
	struct events_ring *rings;   /* [stream * ring_count + ring] */
};

/**
 * Work out the layout of a file of rings and write it into its header, of which program, pid, counter, counts, and of each stream
 * name and ring_slots are set.
 *
 * @return 0; -EINVAL: a count or a description out of range; -EFBIG: larger than this machine can map
 */
int events_layout(struct events_header *header, const struct bw_point_description *descriptions);
/**
 * Check a mapped file of rings, whoever wrote it, and find everything in it.
 *
 * @return 0; -EBADMSG: no such file, or damaged; -EXDEV: of another byte order
 */
int events_map_check(void *address, size_t size_bytes, struct events_map *map);
/** Write into each histogram's state where its cells are. */
void events_lay_cells(const struct events_map *map);
struct events_slot *events_slots(const struct events_map *map, unsigned int stream, unsigned int ring);
/** Check texts, kind and ranges. @return 0 or -EINVAL */
int events_description_check(const struct bw_point_description *description);
/** Check that no group has a name twice, of descriptions that are right. @return 0; -EINVAL; -ENOMEM */
int events_descriptions_distinct(const struct bw_point_description *descriptions, uint32_t count);

/**
 * Say whether a stream wants a point.
 *
 * @param wanted  lines "+GROUP.NAME" and "-GROUP.NAME" with * and ?, ended by a zero; the last one that fits decides
 */
bool events_wanted(const char *wanted, const struct bw_point_description *description);

#endif
