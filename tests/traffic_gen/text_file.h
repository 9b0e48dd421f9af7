/* SPDX-License-Identifier: Apache-2.0 */
/** Files of text that tests make in the place of those of a kernel. */
#ifndef BW_TEST_TEXT_FILE_H
#define BW_TEST_TEXT_FILE_H

#include "check.h"

/** Write the text of a file in a folder; a failed check where it cannot be opened. */
static inline void write_text(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	CHECK(file != NULL);
	if (!file)
		return;
	fputs(text, file);
	fclose(file);
}

#endif
