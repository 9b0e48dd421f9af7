/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: files that must outlive a power cut. */
#ifndef BW_WINDOWS_PORT_FILE_H
#define BW_WINDOWS_PORT_FILE_H

#include <stdbool.h>
#include <stdio.h>

enum { PATH_BYTES = 260 }; /* longest path of Windows' ordinary functions, with its end */

/** Close a file; returns when it is on the disk. @return false: it is not */
bool file_close_on_disk(FILE *file);
/** Put a file into the place of another, at once and on the disk. @return false: both are as they were */
bool file_replace(const char *from, const char *to);
bool file_exists(const char *path);

#endif
