/* SPDX-License-Identifier: Apache-2.0 */
#include "port_process.h"

#include <windows.h>

#include <shellapi.h>
#include <shlobj.h>

#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCK_TRIES = 100, LOCK_TRY_MS = 100 };

int process_arguments(char arguments[ARGUMENTS_MAX][ARGUMENT_BYTES])
{
	int count = 0;
	wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);

	if (!wide || count > ARGUMENTS_MAX)
		return -1;
	for (int i = 0; i < count; i++) {
		if (!WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, arguments[i], ARGUMENT_BYTES, NULL, NULL))
			return -1;
	}
	LocalFree(wide);
	return count;
}

void process_print_binary(void)
{
	_setmode(_fileno(stdout), _O_BINARY);
}

bool process_is_administrator(void)
{
	return IsUserAnAdmin();
}

void process_file_beside(const char *name, char path[PATH_BYTES])
{
	char *last;

	GetModuleFileNameA(NULL, path, PATH_BYTES);
	last = strrchr(path, '\\');
	last = last ? last + 1 : path;
	snprintf(last, (size_t)(path + PATH_BYTES - last), "%s", name);
}

bool process_state_folder(char *folder, int size)
{
	const char *name = getenv("BENCHWRIGHT_STATE") ? "%BENCHWRIGHT_STATE%" : "%ProgramData%\\Benchwright\\state";
	DWORD length = ExpandEnvironmentStringsA(name, folder, (DWORD)size);

	if (length == 0 || length > (DWORD)size)
		return false;
	SHCreateDirectoryExA(NULL, folder, NULL);
	return true;
}

enum process_lock process_lock_take(const char *path)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (CreateFileA(path, GENERIC_WRITE, 0, NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL) != INVALID_HANDLE_VALUE)
			return LOCK_HELD;
		if (GetLastError() != ERROR_SHARING_VIOLATION)
			return LOCK_FAILED;
		Sleep(LOCK_TRY_MS);
	}
	return LOCK_BUSY;
}
