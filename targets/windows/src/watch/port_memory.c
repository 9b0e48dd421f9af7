/* SPDX-License-Identifier: Apache-2.0 */
#include "port_memory.h"

#include <wchar.h>

void *memory_map(const wchar_t *name_format, DWORD process, size_t size, HANDLE *handle)
{
	wchar_t name[WATCH_NAME_CHARACTERS];
	void *memory;

	_snwprintf(name, WATCH_NAME_CHARACTERS, name_format, process);
	if (size)
		*handle = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, (DWORD)size, name);
	else
		*handle = OpenFileMappingW(FILE_MAP_WRITE, FALSE, name);
	if (!*handle)
		return NULL;
	memory = MapViewOfFile(*handle, FILE_MAP_WRITE, 0, 0, 0);
	if (!memory)
		CloseHandle(*handle);
	return memory;
}
