/* SPDX-License-Identifier: Apache-2.0 */
#include "port_file.h"

#include <windows.h>

#include <io.h>

bool file_close_on_disk(FILE *file)
{
	bool done = !fflush(file) && !_commit(_fileno(file)); /* as fsync elsewhere */

	return !fclose(file) && done;
}

bool file_replace(const char *from, const char *to)
{
	return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH);
}

bool file_exists(const char *path)
{
	return _access(path, 0) == 0;
}
