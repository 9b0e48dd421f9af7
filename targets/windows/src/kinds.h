/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of settings of a Windows machine: where each is found, read and written.
 *
 * A *place* names a setting on this machine for as long as it is installed: it goes into the undo file, and needs nothing else
 * to be found again. Values are texts; what a machine does not have is told in `note`.
 */
#ifndef BW_WINDOWS_KINDS_H
#define BW_WINDOWS_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include "port_machine.h"

enum { PLACE_BYTES = 512, VALUE_BYTES = 256, NOTE_BYTES = 256 };

#define VALUE_ABSENT "absent" /* of a registry value that is not there: a setting that was never made */

/* What looking at a place has ended with. */
enum kind_read {
	KIND_READ,
	KIND_MISSING,    /* this machine has no such thing: the setting does not apply */
	KIND_UNREADABLE, /* it has, and what is there now cannot be told: it is neither right nor can it be changed and put back */
};

struct kind {
	const char *name;
	/** Find the place of a setting. @return false, with a note, where this machine has none */
	bool (*place)(const struct machine *machine, const char *setting, char place[PLACE_BYTES], char note[NOTE_BYTES]);
	/** Read it; with a note unless it was read. */
	enum kind_read (*read)(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES]);
	/** Set it; NULL: it can only be checked. @return false, with a note, where the machine refuses */
	bool (*write)(const char *place, const char *value, char note[NOTE_BYTES]);
	bool of_adapter; /* heeded once the adapter has been started anew */
};

/** @return NULL where there is no kind of that name */
const struct kind *kind_find(const char *name);

#endif
