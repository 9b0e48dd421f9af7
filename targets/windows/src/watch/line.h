/* SPDX-License-Identifier: Apache-2.0 */
/* The record's text: a line of JSON for each call. docs/windows.md has the fields. */
#ifndef BW_WATCH_LINE_H
#define BW_WATCH_LINE_H

#include "ring.h"

#include <stddef.h>

enum { WATCH_LINE_BYTES = 1536, WATCH_HEAD_BYTES = 256 };

/** How a record has ended. */
struct watch_end {
	uint64_t call_count, lost_count;
	const char *state; /* "open", "complete", "broken off: …" */
	const char *machine; /* what it ran on: "Windows", "Wine 8.0" */
};

/**
 * Write the first line: as long whatever it says, so that it can be written again at the end, also on a full disk.
 *
 * @param text  WATCH_HEAD_BYTES, the line's end the last of them; no zero behind it
 */
void watch_head(const struct watch_end *end, char *text);

/**
 * Write a call.
 *
 * @param tick_hz  ticks of the performance counter a second, not 0
 * @param text     WATCH_LINE_BYTES
 * @return length in bytes, with the line's end
 */
size_t watch_line(const struct watch_event *event, uint64_t tick_hz, char *text);

#endif
