/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: files, and how they outlive a power cut. Paths are UTF-8. */
#ifndef BW_WINDOWS_PORT_FILE_H
#define BW_WINDOWS_PORT_FILE_H

#include <stdbool.h>
#include <stdio.h>

enum { PATH_BYTES = 260 }; /* longest path of Windows' ordinary functions, with its end */

/** As fopen. @return NULL, with errno (ENOENT: there is none), where it cannot be opened */
FILE *file_open(const char *path, const char *mode);
/** Close a file; returns when it is on the disk. @return false: it is not */
bool file_close_on_disk(FILE *file);
/** Put a file into the place of another, at once and on the disk. @return false: both are as they were */
bool file_replace(const char *from, const char *to);
/** Remove a file. @return true when there is none any more */
bool file_remove(const char *path);

#endif
