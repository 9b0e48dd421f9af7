/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows 10 and later: the page of the time service. */
#include "port/port_timeservice.h"
#include "port/windows/port_win32_errno.h"

#include <windows.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PATH "C:\\Program Files\\Benchwright\\time\\page"

enum {
	SHARED_USER_DATA = 0x7ffe0000, /* KUSER_SHARED_DATA of the Windows Driver Kit, mapped read-only in every process */
	BOOT_ID_OFFSET = 0x2c4,        /* its BootId: counts boots; Windows 10 and later */
	SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
};

#define FILETIME_OF_1970 INT64_C(116444736000000000) /* steps of 100 ns from 1601 */
#define FILETIME_NS 100

int port_boot_id(uint64_t id[2])
{
	id[0] = *(const volatile ULONG *)(uintptr_t)(SHARED_USER_DATA + BOOT_ID_OFFSET);
	id[1] = 1;
	return 0;
}

const char *port_timepage_default_path(void)
{
	const char *path = getenv("BWTIME_PAGE");

	return path && *path ? path : DEFAULT_PATH;
}

/* Here also: another process has it. */
static int errno_of(DWORD error)
{
	return error == ERROR_SHARING_VIOLATION || error == ERROR_LOCK_VIOLATION ? -EBUSY : win32_errno_of(error);
}

/* Map a file; its handles are not needed any more afterwards. */
static int map(HANDLE file, size_t size_bytes, bool writable, struct port_timepage *page)
{
	HANDLE mapping = CreateFileMappingA(file, NULL, writable ? PAGE_READWRITE : PAGE_READONLY, 0, writable ? (DWORD)size_bytes : 0,
					    NULL);
	void *address;
	int err;

	if (!mapping)
		return errno_of(GetLastError());
	address = MapViewOfFile(mapping, writable ? FILE_MAP_READ | FILE_MAP_WRITE : FILE_MAP_READ, 0, 0, size_bytes);
	err = address ? 0 : errno_of(GetLastError());
	CloseHandle(mapping);
	if (err)
		return err;
	page->readable = address;
	page->writable = writable ? address : NULL;
	page->size_bytes = size_bytes;
	return 0;
}

/* Return 0 for a file on a disk. */
static int check_file(HANDLE file, LARGE_INTEGER *size)
{
	if (GetFileType(file) != FILE_TYPE_DISK)
		return -EPERM;
	return GetFileSizeEx(file, size) ? 0 : errno_of(GetLastError());
}

/* Of a page that is locked; where it fails, that ends. */
static int map_writable(const char *path, size_t size_bytes, struct port_timepage *page)
{
	HANDLE file = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, SHARE_ALL, NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
	LARGE_INTEGER size;
	int err = file == INVALID_HANDLE_VALUE ? errno_of(GetLastError()) : check_file(file, &size);

	if (!err)
		err = map(file, size_bytes, true, page);
	if (file != INVALID_HANDLE_VALUE)
		CloseHandle(file);
	if (err)
		CloseHandle((HANDLE)page->lock);
	return err;
}

int port_timepage_create(const char *path, size_t size_bytes, struct port_timepage *page)
{
	char lock_name[MAX_PATH];
	HANDLE lock;

	memset(page, 0, sizeof(*page));
	path = path ? path : port_timepage_default_path();
	if (snprintf(lock_name, sizeof(lock_name), "%s.lock", path) >= (int)sizeof(lock_name))
		return -ENAMETOOLONG;
	/* Shared with nobody: it is the lock. It ends with the process. */
	lock = CreateFileA(lock_name, GENERIC_WRITE, 0, NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL | FILE_FLAG_DELETE_ON_CLOSE, NULL);
	if (lock == INVALID_HANDLE_VALUE)
		return errno_of(GetLastError());
	page->lock = (intptr_t)lock;
	return map_writable(path, size_bytes, page);
}

/* A file that a program has mapped cannot be deleted here, but it can be renamed. */
int port_timepage_renew(const char *path, size_t size_bytes, struct port_timepage *page)
{
	char old_name[MAX_PATH];
	int err = 0;

	path = path ? path : port_timepage_default_path();
	UnmapViewOfFile(page->writable);
	page->readable = page->writable = NULL;
	if (snprintf(old_name, sizeof(old_name), "%s.old", path) >= (int)sizeof(old_name))
		err = -ENAMETOOLONG;
	else if (!MoveFileExA(path, old_name, MOVEFILE_REPLACE_EXISTING))
		err = errno_of(GetLastError());
	if (err) {
		CloseHandle((HANDLE)page->lock);
		return err;
	}
	DeleteFileA(old_name); /* where a program has it mapped, the next one replaces it */
	return map_writable(path, size_bytes, page);
}

/* A file that is mapped cannot be deleted here. */
int port_timepage_is_there(const char *path, const struct port_timepage *page)
{
	(void)path;
	(void)page;
	return 1;
}

int port_timepage_remake(const char *path, size_t size_bytes, struct port_timepage *page, struct port_timepage *old)
{
	(void)path;
	(void)size_bytes;
	(void)page;
	(void)old;
	return -ENOTSUP;
}

int port_timepage_open(const char *path, size_t size_bytes, struct port_timepage *page)
{
	HANDLE file = CreateFileA(path ? path : port_timepage_default_path(), GENERIC_READ, SHARE_ALL, NULL, OPEN_EXISTING,
				  FILE_ATTRIBUTE_NORMAL, NULL);
	LARGE_INTEGER size;
	int err;

	memset(page, 0, sizeof(*page));
	if (file == INVALID_HANDLE_VALUE)
		return errno_of(GetLastError());
	err = check_file(file, &size);
	if (!err && size.QuadPart < (LONGLONG)size_bytes)
		err = -EMSGSIZE;
	if (!err)
		err = map(file, size_bytes, false, page);
	CloseHandle(file);
	return err;
}

void port_timepage_close(struct port_timepage *page)
{
	if (!page->readable)
		return;
	UnmapViewOfFile(page->readable);
	if (page->writable)
		CloseHandle((HANDLE)page->lock);
	memset(page, 0, sizeof(*page));
}

int64_t port_timepage_realtime_ns(void)
{
	FILETIME now;

	GetSystemTimePreciseAsFileTime(&now);
	return ((int64_t)((uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime) - FILETIME_OF_1970) * FILETIME_NS;
}
