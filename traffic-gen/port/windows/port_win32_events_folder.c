/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: bw-events, folders of recordings and the programs that it starts. */
#include <windows.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/port_events.h"
#include "port/windows/port_win32_errno.h"

#define PREFIX "bw-events-"
#define CHANGE_AT_HIGH 0x40000001 /* behind the byte by which a file is held */

enum { COMMAND_BYTES = 32768, FOLDERS_TRIED = 1000 };

int port_events_list(const char *folder, port_events_name *name, void *sink)
{
	char pattern[PORT_EVENTS_PATH_BYTES];
	WIN32_FIND_DATAA found;
	HANDLE search;
	int err = 0;

	if (snprintf(pattern, sizeof(pattern), "%s\\*", folder) >= (int)sizeof(pattern))
		return -ENAMETOOLONG;
	search = FindFirstFileA(pattern, &found);
	if (search == INVALID_HANDLE_VALUE)
		return win32_errno_of(GetLastError());
	do {
		if (strcmp(found.cFileName, ".") != 0 && strcmp(found.cFileName, "..") != 0)
			err = name(sink, found.cFileName);
	} while (!err && FindNextFileA(search, &found));
	FindClose(search);
	return err;
}

int port_events_change(const struct port_events_file *file)
{
	OVERLAPPED at = { .OffsetHigh = CHANGE_AT_HIGH };

	return LockFileEx((HANDLE)file->handle, LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &at) ? 0 : win32_errno_of(GetLastError());
}

int port_events_remove_folder(const char *path)
{
	return RemoveDirectoryA(path) ? 0 : win32_errno_of(GetLastError());
}

bool port_events_is_own_folder(const char *path)
{
	DWORD attributes = GetFileAttributesA(path); /* a user's folder of temporary files is that user's own */

	return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) && !(attributes & FILE_ATTRIBUTE_REPARSE_POINT);
}

int port_events_output(const char *path, char absolute[PORT_EVENTS_PATH_BYTES])
{
	DWORD length;

	if (!CreateDirectoryA(path, NULL) && GetLastError() != ERROR_ALREADY_EXISTS)
		return win32_errno_of(GetLastError());
	length = GetFullPathNameA(path, PORT_EVENTS_PATH_BYTES, absolute, NULL);
	return length && length < PORT_EVENTS_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

int port_events_make_folder(char path[PORT_EVENTS_PATH_BYTES])
{
	const char *folder, *prefix;

	port_events_places(&folder, &prefix);
	for (int i = 0; i < FOLDERS_TRIED; i++) {
		if (snprintf(path, PORT_EVENTS_PATH_BYTES, "%s\\%s%lu-%d", folder, prefix, GetCurrentProcessId(), i) >= PORT_EVENTS_PATH_BYTES)
			return -ENAMETOOLONG;
		if (CreateDirectoryA(path, NULL))
			return 0;
		if (GetLastError() != ERROR_ALREADY_EXISTS)
			return win32_errno_of(GetLastError());
	}
	return -EEXIST;
}

void port_events_places(const char **folder_out, const char **prefix_out)
{
	static char folder[PORT_EVENTS_PATH_BYTES];
	DWORD length = GetEnvironmentVariableA("BW_EVENTS_MEMORY", folder, sizeof(folder));

	if (!length || length >= sizeof(folder)) {
		length = GetTempPathA(sizeof(folder), folder);
		if (length && length < sizeof(folder) && folder[length - 1] == '\\')
			folder[length - 1] = '\0';
	}
	*folder_out = folder;
	*prefix_out = PREFIX;
}

/* An argument as CommandLineToArgvW takes it apart: in quotes, backslashes before a quote doubled. */
static char *quote(char *at, const char *end, const char *argument)
{
	size_t slashes = 0;

	if (end - at < (ptrdiff_t)(2 * strlen(argument) + 4))
		return NULL;
	*at++ = '"';
	for (; *argument; argument++) {
		if (*argument == '"')
			for (slashes++; slashes; slashes--)
				*at++ = '\\';
		slashes = *argument == '\\' ? slashes + 1 : 0;
		*at++ = *argument;
	}
	for (; slashes; slashes--)
		*at++ = '\\';
	*at++ = '"';
	*at++ = ' ';
	return at;
}

int port_events_start(const char *folder, char **argv, int64_t *pid_out)
{
	static char command[COMMAND_BYTES];
	STARTUPINFOA start = { .cb = sizeof(start) };
	PROCESS_INFORMATION made;
	char *at = command;

	for (; *argv; argv++) {
		at = quote(at, command + sizeof(command), *argv);
		if (!at)
			return -E2BIG;
	}
	at[-1] = '\0';
	if (!SetEnvironmentVariableA("BW_EVENTS", folder) || !CreateProcessA(NULL, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &made))
		return win32_errno_of(GetLastError());
	CloseHandle(made.hThread);
	*pid_out = (int64_t)(intptr_t)made.hProcess; /* of this process alone: its handle says when it has ended */
	return 0;
}

int port_events_ended(int64_t pid, int *code_out)
{
	HANDLE process = (HANDLE)(intptr_t)pid;
	DWORD code;

	if (WaitForSingleObject(process, 0) != WAIT_OBJECT_0)
		return 0;
	*code_out = GetExitCodeProcess(process, &code) ? (int)code : 1;
	CloseHandle(process);
	return 1;
}

void port_events_terminate(int64_t pid)
{
	TerminateProcess((HANDLE)(intptr_t)pid, 1);
}
