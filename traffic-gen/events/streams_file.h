/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of `bw-events record --streams`:
 *
 *	[[stream]]
 *	name = "late"
 *	points = "send receive"      # names as of --points, by spaces ("*")
 *	kind = "history"             # the newest, written when a trigger fires; "all" (default): everything
 *	trigger = "receive.late"     # of a history: an event of these points; "end": the end of a program, too
 *	after_ms = 20                # of a history: recorded after the trigger (0)
 *	ring_kib = 1024              # room for each processor and program (4096)
 *
 *	[[filter]]
 *	stream = "late"
 *	points = "receive.late"
 *	min = 1000000                # of the first eight bytes that come with an event, or else of its tag
 *	max = 5000000
 *	every = 10                   # of those the first of so many (1)
 */
#ifndef BW_EVENTS_STREAMS_FILE_H
#define BW_EVENTS_STREAMS_FILE_H

#include "config/schema.h"
#include "events/layout.h"

/**
 * Read the file into streams and filters.
 *
 * @param control  all zero
 * @return 0, or -errno with the error in a line
 */
int streams_file_read(const char *path, struct events_control *control, struct schema_error *error);

/** Least power of two of slots with so much room. @return the number of slots */
uint32_t ring_slots_of(int64_t ring_kib);

#endif
