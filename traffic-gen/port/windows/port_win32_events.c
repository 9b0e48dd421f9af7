/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: libbwevents, what a program that records needs. */
#include "port/port_events.h"

#include <windows.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/bwevents.h"
#include "port/windows/port_win32_errno.h"


enum { SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NAMES_TRIED = 1000 };
/* A byte that no file has: who holds a file has it locked. */
#define HOLD_AT_HIGH 0x40000000

const char *port_events_folder(void)
{
	static char folder[PORT_EVENTS_PATH_BYTES];
	DWORD length = GetEnvironmentVariableA("BW_EVENTS", folder, sizeof(folder));

	return length && length < sizeof(folder) ? folder : NULL;
}

void port_events_complain(const char *folder, int err)
{
	char program[MAX_PATH] = "";

	port_events_program(program, sizeof(program));
	fprintf(stderr, "%s: BW_EVENTS=%s: %s: no event is recorded\n", program, folder, strerror(-err));
}

int port_events_program(char *name, size_t size_bytes)
{
	char path[MAX_PATH];
	DWORD length = GetModuleFileNameA(NULL, path, sizeof(path));
	const char *last;

	if (!length || length == sizeof(path))
		return -ENAMETOOLONG;
	last = strrchr(path, '\\');
	snprintf(name, size_bytes, "%s", last ? last + 1 : path);
	return 0;
}

uint64_t port_events_pid(void)
{
	return GetCurrentProcessId();
}

uint32_t port_events_thread(void)
{
	return GetCurrentThreadId();
}

uint32_t port_events_cpu(void)
{
	return GetCurrentProcessorNumber();
}

uint32_t port_events_cpus(void)
{
	SYSTEM_INFO info;

	GetSystemInfo(&info);
	return info.dwNumberOfProcessors ? info.dwNumberOfProcessors : 1;
}

uint64_t port_events_clock_ns(void)
{
	LARGE_INTEGER frequency, now;

	QueryPerformanceFrequency(&frequency);
	QueryPerformanceCounter(&now);
	return (uint64_t)(now.QuadPart / frequency.QuadPart) * UINT64_C(1000000000) +
	       (uint64_t)(now.QuadPart % frequency.QuadPart) * UINT64_C(1000000000) / (uint64_t)frequency.QuadPart;
}

/* Of the program: libraries with points of their own are not supported here. */
void port_events_points(struct bw_point **first_out, struct bw_point **end_out)
{
	uint8_t *base = (uint8_t *)GetModuleHandleA(NULL);
	const IMAGE_NT_HEADERS *headers = (const IMAGE_NT_HEADERS *)(const void *)(base + ((const IMAGE_DOS_HEADER *)(const void *)base)->e_lfanew);
	const IMAGE_SECTION_HEADER *section = IMAGE_FIRST_SECTION(headers);

	*first_out = *end_out = NULL;
	for (WORD i = 0; i < headers->FileHeader.NumberOfSections; i++, section++) {
		if (memcmp(section->Name, "bwpoints", sizeof(section->Name)) != 0)
			continue;
		*first_out = (struct bw_point *)(void *)(base + section->VirtualAddress);
		*end_out = *first_out + section->Misc.VirtualSize / sizeof(**first_out);
	}
}

static int error_of(DWORD error)
{
	if (error == ERROR_DISK_FULL || error == ERROR_HANDLE_DISK_FULL)
		return -ENOSPC;
	if (error == ERROR_ALREADY_EXISTS || error == ERROR_FILE_EXISTS)
		return -EEXIST;
	return win32_errno_of(error);
}

/* Hold the file, or try whether another one does. */
static bool lock(const struct port_events_file *file, DWORD flags)
{
	OVERLAPPED at = { .OffsetHigh = HOLD_AT_HIGH };

	return LockFileEx((HANDLE)file->handle, flags | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at);
}

static void unlock(const struct port_events_file *file)
{
	OVERLAPPED at = { .OffsetHigh = HOLD_AT_HIGH };

	UnlockFileEx((HANDLE)file->handle, 0, 1, 0, &at);
}

static int map(struct port_events_file *file, size_t size_bytes)
{
	LARGE_INTEGER size;
	HANDLE mapping;
	int err;

	if (size_bytes)
		size.QuadPart = (LONGLONG)size_bytes;
	else if (!GetFileSizeEx((HANDLE)file->handle, &size))
		return error_of(GetLastError());
	if (!size.QuadPart)
		return -EPERM;
	/* A longer mapping makes the file longer: its room is there then, or this fails. */
	mapping = CreateFileMappingA((HANDLE)file->handle, NULL, PAGE_READWRITE, (DWORD)(size.QuadPart >> 32), (DWORD)size.QuadPart, NULL);
	if (!mapping)
		return error_of(GetLastError());
	file->size_bytes = (size_t)size.QuadPart;
	file->address = MapViewOfFile(mapping, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, file->size_bytes);
	err = file->address ? 0 : error_of(GetLastError());
	CloseHandle(mapping); /* the view keeps it */
	return err;
}

/* Open a file; handles are not passed on to programs that are started. */
static int open_file(const char *path, DWORD how, struct port_events_file *file)
{
	HANDLE handle = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, SHARE_ALL, NULL, how, FILE_ATTRIBUTE_NORMAL, NULL);

	if (handle == INVALID_HANDLE_VALUE)
		return error_of(GetLastError());
	*file = (struct port_events_file){ .handle = (intptr_t)handle };
	return 0;
}

int port_events_create(const char *folder, size_t size_bytes, struct port_events_file *file, char path[PORT_EVENTS_PATH_BYTES])
{
	int err = -EEXIST;

	for (int i = 0; err == -EEXIST && i < NAMES_TRIED; i++) {
		if (snprintf(path, PORT_EVENTS_PATH_BYTES, "%s\\.making-%lu-%d", folder, GetCurrentProcessId(), i) >= PORT_EVENTS_PATH_BYTES)
			return -ENAMETOOLONG;
		err = open_file(path, CREATE_NEW, file);
	}
	if (err)
		return err;
	err = lock(file, 0) ? map(file, size_bytes) : -EBUSY;
	if (err) {
		CloseHandle((HANDLE)file->handle);
		DeleteFileA(path);
	}
	return err;
}

int port_events_publish(const char *folder, const char *name, const char path[PORT_EVENTS_PATH_BYTES])
{
	char full[PORT_EVENTS_PATH_BYTES];

	if (snprintf(full, sizeof(full), "%s\\%s", folder, name) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	return MoveFileExA(path, full, 0) ? 0 : error_of(GetLastError());
}

int port_events_open(const char *path, struct port_events_file *file)
{
	int err = open_file(path, OPEN_EXISTING, file);

	if (err)
		return err;
	err = map(file, 0);
	if (err)
		CloseHandle((HANDLE)file->handle);
	return err;
}

void port_events_keep_map(struct port_events_file *file)
{
	CloseHandle((HANDLE)file->handle);
	file->handle = -1;
}

void port_events_close(struct port_events_file *file)
{
	UnmapViewOfFile(file->address);
	if (file->handle != -1)
		CloseHandle((HANDLE)file->handle);
	file->address = NULL;
	file->handle = -1;
}

bool port_events_is_held(const struct port_events_file *file, uint64_t pid)
{
	HANDLE process;
	DWORD code = 0;

	if (!lock(file, LOCKFILE_EXCLUSIVE_LOCK))
		return true;
	unlock(file);
	process = pid ? OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, (DWORD)pid) : NULL;
	if (!process)
		return false;
	if (!GetExitCodeProcess(process, &code))
		code = 0;
	CloseHandle(process);
	return code == STILL_ACTIVE;
}

int port_events_hold(const struct port_events_file *file)
{
	return lock(file, LOCKFILE_EXCLUSIVE_LOCK) ? 0 : -EBUSY;
}

int port_events_remove(const char *path)
{
	return DeleteFileA(path) ? 0 : error_of(GetLastError());
}

void port_events_close_removed(struct port_events_file *file, const char *path)
{
	UnmapViewOfFile(file->address); /* what is mapped cannot be removed */
	DeleteFileA(path);
	CloseHandle((HANDLE)file->handle);
	file->address = NULL;
	file->handle = -1;
}
