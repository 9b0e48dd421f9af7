/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing names as Windows does: letters of either case are equal. */
#ifndef BW_WINDOWS_TEXT_H
#define BW_WINDOWS_TEXT_H

#include <ctype.h>
#include <stdbool.h>

/** Tell whether two texts differ in the case of ASCII letters alone. */
static inline bool text_same(const char *one, const char *other)
{
	while (*one && tolower((unsigned char)*one) == tolower((unsigned char)*other)) {
		one++;
		other++;
	}
	return !*one && !*other;
}

#endif
