/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The undo file: what every place held before it was changed first.
 *
 * Line 1 is UNDO_SCHEMA. Each further line is KIND TAB PLACE TAB OLD-VALUE TAB end; one without its end was cut off by a crash,
 * before the change that it announces. Settings of Windows outlive a reboot, and so does the file.
 */
#ifndef BW_WINDOWS_UNDO_H
#define BW_WINDOWS_UNDO_H

#include <stdbool.h>
#include <stddef.h>

#include "kinds.h"

enum { UNDO_MAX = 256 };

struct undo_record {
	char kind[32];
	char place[PLACE_BYTES];
	char value[VALUE_BYTES];
};

/**
 * Read the records, oldest first.
 *
 * @return their number, 0 where there is no file; -EILSEQ where it is no undo file or holds more than capacity, or -errno where
 *         it cannot be read: then nobody knows what is to be put back
 */
int undo_load(const char *path, struct undo_record *records, int capacity);
/** Remember a value, unless an older one of this place is there; returns when it is on disk. @return false: it is not */
bool undo_record(const char *path, const char *kind, const char *place, const char *value);
/** Keep these records alone; without any the file goes. @return false: it could not be written */
bool undo_keep(const char *path, const struct undo_record *records, int count);

#endif
