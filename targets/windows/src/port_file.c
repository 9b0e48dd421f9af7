/* SPDX-License-Identifier: Apache-2.0 */
#include "port_file.h"

#include <windows.h>

#include <errno.h>
#include <io.h>

#include "port_wide.h"

enum { MODE_CHARACTERS = 8 };

FILE *file_open(const char *path, const char *mode)
{
	wchar_t wide[PATH_BYTES], wide_mode[MODE_CHARACTERS];

	if (!wide_from(path, wide, PATH_BYTES) || !wide_from(mode, wide_mode, MODE_CHARACTERS)) {
		errno = EINVAL;
		return NULL;
	}
	return _wfopen(wide, wide_mode);
}

bool file_close_on_disk(FILE *file)
{
	bool done = !fflush(file) && !_commit(_fileno(file)); /* as fsync elsewhere */

	return !fclose(file) && done;
}

bool file_replace(const char *from, const char *to)
{
	wchar_t wide_from_path[PATH_BYTES], wide_to_path[PATH_BYTES];

	return wide_from(from, wide_from_path, PATH_BYTES) && wide_from(to, wide_to_path, PATH_BYTES) &&
	       MoveFileExW(wide_from_path, wide_to_path, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH);
}

bool file_remove(const char *path)
{
	wchar_t wide[PATH_BYTES];

	return wide_from(path, wide, PATH_BYTES) && (DeleteFileW(wide) || GetLastError() == ERROR_FILE_NOT_FOUND);
}
