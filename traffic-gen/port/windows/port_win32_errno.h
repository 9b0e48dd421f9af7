/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: its error numbers of files as -errno. */
#ifndef BW_PORT_WIN32_ERRNO_H
#define BW_PORT_WIN32_ERRNO_H

#include <windows.h>

#include <errno.h>

/** Return a number of GetLastError() as -errno; -EIO: any other. */
static inline int win32_errno_of(DWORD error)
{
	switch (error) {
	case ERROR_FILE_NOT_FOUND:
	case ERROR_PATH_NOT_FOUND:
		return -ENOENT;
	case ERROR_ACCESS_DENIED:
		return -EACCES;
	default:
		return -EIO;
	}
}

#endif
