/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer for Windows: the timecard's page, a file that is mapped. Real Windows has no such device; under Wine the file is this
 * machine's, and whoever serves timecards maps the same one.
 */
#include "port/port.h"
#include "port/port_clock.h"
#include "port/windows/port_win32_errno.h"

#include <windows.h>

#include <errno.h>
#include <string.h>

enum { SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, LOCK_LOOK_MS = 1 };

int port_page_find(char *path, size_t size_bytes)
{
	if (size_bytes)
		path[0] = '\0';
	return -ENOTSUP;
}

/* Map a file that is long enough, or may be made so. */
static int map(HANDLE file, size_t size_bytes, bool create, void **address)
{
	LARGE_INTEGER size;
	HANDLE mapping;
	int err;

	if (!GetFileSizeEx(file, &size))
		return win32_errno_of(GetLastError());
	if (size.QuadPart < (LONGLONG)size_bytes && !create)
		return -EMSGSIZE;
	mapping = CreateFileMappingW(file, NULL, PAGE_READWRITE, 0, (DWORD)size_bytes, NULL);
	if (!mapping)
		return win32_errno_of(GetLastError());
	*address = MapViewOfFile(mapping, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, size_bytes);
	err = *address ? 0 : win32_errno_of(GetLastError());
	CloseHandle(mapping); /* the view keeps it */
	return err;
}

int port_page_map(const char *path, size_t size_bytes, bool create, struct port_page *page)
{
	HANDLE file = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, SHARE_ALL, NULL, create ? OPEN_ALWAYS : OPEN_EXISTING,
				  FILE_ATTRIBUTE_NORMAL, NULL);
	void *address = NULL;
	int err;

	memset(page, 0, sizeof(*page));
	if (file == INVALID_HANDLE_VALUE)
		return win32_errno_of(GetLastError());
	err = map(file, size_bytes, create, &address);
	if (err) {
		CloseHandle(file);
		return err;
	}
	*page = (struct port_page){ .address = address, .size_bytes = size_bytes, .handle = (intptr_t)file };
	return 0;
}

void port_page_unmap(struct port_page *page)
{
	if (!page->address)
		return;
	UnmapViewOfFile(page->address);
	CloseHandle((HANDLE)page->handle);
	page->address = NULL;
}

int port_page_lock(const struct port_page *page, int number, int64_t timeout_ns)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + timeout_ns;

	for (;;) {
		OVERLAPPED place = { .Offset = (DWORD)number };

		if (LockFileEx((HANDLE)page->handle, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &place))
			return 0;
		if (GetLastError() != ERROR_LOCK_VIOLATION && GetLastError() != ERROR_IO_PENDING)
			return win32_errno_of(GetLastError());
		if (port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= deadline_monotonic_ns)
			return -EBUSY;
		Sleep(LOCK_LOOK_MS);
	}
}

void port_page_unlock(const struct port_page *page, int number)
{
	OVERLAPPED place = { .Offset = (DWORD)number };

	UnlockFileEx((HANDLE)page->handle, 0, 1, 0, &place);
}
