/* SPDX-License-Identifier: Apache-2.0 */
/* A recording of this machine: its folder in memory, the programs that record into it, their streams' files. */
#ifndef BW_EVENTS_RECORDING_H
#define BW_EVENTS_RECORDING_H

#include "events/drain.h"

struct recording {
	char folder[PORT_EVENTS_PATH_BYTES]; /* empty: none is open */
	char output[PORT_EVENTS_PATH_BYTES];
	struct port_events_file control_file;
	struct events_control *control;
	struct drain *drains;
	int drain_count, drain_room;
	int programs;                        /* that have recorded, or are recording */
	int waiting;                         /* that this process had no room to open when it looked last */
	uint64_t slots, lost, unfinished;    /* of those that have ended */
	uint64_t uncollected;                /* slots that could not be written */
	uint32_t refused;                    /* programs that could not */
	int64_t due_monotonic_ns[EVENTS_STREAMS_MAX]; /* when a history is to be written; 0: nothing has triggered */
	bool wanted[EVENTS_STREAMS_MAX];     /* a program had a point that the stream wants */
	uint64_t triggers;                   /* histories that were written */
};

/**
 * Make a folder with its `control`, held by this process.
 *
 * @param control  streams with name, ring_slots and wanted; the rest is filled in
 * @return 0 or -errno
 */
int recording_open(struct recording *recording, const struct events_control *control, const char *output);
/**
 * Collect once what there is, of new programs too; forget those that have ended.
 *
 * @param last       the recording ends: programs that go on are turned off
 * @param moved_out  receives the number of slots that were collected
 * @return 0; or -errno: a stream's file cannot be written
 */
int recording_collect(struct recording *recording, bool last, uint64_t *moved_out);
/** Trigger all histories, as an event may. */
void recording_trigger(struct events_control *control);
/** Write the histories that are due. @param now_monotonic_ns  CLOCK_MONOTONIC @return 0 or -errno */
int recording_histories(struct recording *recording, int64_t now_monotonic_ns);
/** Write the clocks into all streams' files. @return 0 or -errno */
int recording_clocks(struct recording *recording);
/** After an error: turn all points off, and count what is not collected and what was lost. */
void recording_abandon(struct recording *recording);
/** Remove the folder; nothing is collected. */
void recording_close(struct recording *recording);

/* Called for a program's file of rings, which is whole. */
typedef void each_rings(void *sink, const struct events_map *map);
/** Go through the files of rings in the folder of a recording; those that are damaged, or have just gone, are left out. */
void recording_each(const char *folder, each_rings *each, void *sink);

/** Collect what recordings left whose process was killed, into their own folders, and remove it; what cannot be written stays. @param told  receives a line each */
void recording_save_killed(FILE *told);

#endif
