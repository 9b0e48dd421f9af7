/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logs of the consumer: misses.ndjson (messages over their budgets, or close to them) and, if wanted, messages.csv.
 * Receiving threads hand entries over through rings; a low-priority thread writes the files. What does not fit into a
 * ring is counted, never waited for.
 */
#ifndef BW_RECORDER_H
#define BW_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "port/port.h"
#include "base/ring.h"

enum { RECORDER_LANES = 2 }; /* one a receiving thread */

/* One counted message as it arrived. */
struct recorder_entry {
	uint16_t stream_id;
	uint32_t sequence;
	int64_t lateness_ns;                   /* sent - scheduled, as frame.h can say it */
	int64_t scheduled_tai_ns;              /* producer's clock */
	int64_t received_local_tai_ns;         /* local clock */
	int64_t received_reference_tai_ns;     /* the same moment in the producer's clock, as corrected */
	int64_t received_minus_scheduled_ns;
	int64_t kernel_stamp_local_tai_ns;     /* 0: none */
};

struct recorder {
	struct ring misses[RECORDER_LANES];
	struct ring messages[RECORDER_LANES];
	FILE *misses_file;   /* NULL: no directory was given */
	FILE *messages_file; /* NULL: not wanted */
	struct port_thread *thread;
	atomic_bool stop;
	int write_error;     /* errno of the first failed write; 0: none. Valid after recorder_stop() */
};

/**
 * Open the files and start the thread.
 *
 * @param directory  made if it is not there; NULL: nothing is written
 * @param log        every message too
 * @return 0, or -errno
 */
int recorder_start(struct recorder *recorder, const char *directory, bool log);
/** Hand over a message; real-time safe. @param lane  of the calling thread @param late  it belongs into misses.ndjson */
void recorder_put(struct recorder *recorder, int lane, const struct recorder_entry *entry, bool late);
/** Write what is left, close the files, end the thread. */
void recorder_stop(struct recorder *recorder);

uint64_t recorder_misses_dropped(const struct recorder *recorder);
uint64_t recorder_messages_dropped(const struct recorder *recorder);

#endif
