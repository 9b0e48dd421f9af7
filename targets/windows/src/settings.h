/* SPDX-License-Identifier: Apache-2.0 */
/* Reading settings.conf: one setting a line, KIND NAME WANTED; the comment right above it says why. */
#ifndef BW_WINDOWS_SETTINGS_H
#define BW_WINDOWS_SETTINGS_H

#include "kinds.h"

enum { WHY_BYTES = 1024, ERROR_BYTES = 512 };

struct setting {
	const struct kind *kind;
	char name[PLACE_BYTES]; /* a name with blanks stands in double quotes */
	char wanted[VALUE_BYTES]; /* a value, or >=N or <=N */
	char why[WHY_BYTES];
};

typedef void setting_visit(void *context, const struct setting *setting);

/**
 * Visit every setting of a file, in its order.
 *
 * @param error  receives file, line and reason
 * @return false where the file cannot be read or is wrong; settings before that line have been visited
 */
bool settings_each(const char *path, setting_visit *visit, void *context, char error[ERROR_BYTES]);

/** Tell whether a value is as wanted; goal receives what has to be written. */
bool setting_met(const struct setting *setting, const char *value, char goal[VALUE_BYTES]);

#endif
