/* SPDX-License-Identifier: Apache-2.0 */
/* Collect what a program records: from its rings into a file for each stream. */
#ifndef BW_EVENTS_DRAIN_H
#define BW_EVENTS_DRAIN_H

#include <stdbool.h>

#include "events/layout.h"
#include "events/stream_file.h"
#include "port/port_events.h"

struct drain {
	char path[PORT_EVENTS_PATH_BYTES]; /* of the file of rings */
	struct port_events_file file;
	struct events_map map;
	FILE *outputs[EVENTS_STREAMS_MAX];
	uint64_t *unfinished;              /* slots by stream and ring */
	uint8_t *buffer;
};

/**
 * Open a file of rings and a file for each of its streams, which must not be there yet.
 *
 * @param path    of the file of rings
 * @param output  folder of the streams' files
 * @param suffix  before ".bwevents": "", ".rest", ".rest2", …
 * @return 0; -EBADMSG, -EXDEV: damaged, of another byte order; -EEXIST: a stream's file is there; or -errno
 */
int drain_open(struct drain *drain, const char *path, const char *output, const char *suffix);
/**
 * Move what is finished in all rings into the files. What is in them is on its way to the disk before its room is handed back.
 *
 * @param skip       pass over slots that nobody will finish any more
 * @param slots_out  receives the number of slots that were moved
 * @return 0 or -errno
 */
int drain_move(struct drain *drain, bool skip, uint64_t *slots_out);
/**
 * Write the history of a stream: what is whole in its rings, of what was not written before.
 *
 * @param stream  of a history; nobody may be recording into it
 * @return 0 or -errno
 */
int drain_history(struct drain *drain, unsigned int stream, const struct stream_trigger *why, uint64_t *slots_out);
/** The counter of a kind (enum port_counter_kind), or the clock in its place. */
uint64_t drain_now_ticks(uint32_t counter_kind);
/** Write what the clocks show beside the counter. @return 0 or -errno */
int drain_clocks(struct drain *drain);
/** Write what counters, histograms and rings have come to. @return 0 or -errno */
int drain_end(struct drain *drain, uint64_t *lost_out, uint64_t *unfinished_out);
/** Close all. @param keep  the file of rings stays: what is in it was not collected */
void drain_close(struct drain *drain, bool keep);

#endif
