/* SPDX-License-Identifier: Apache-2.0 */
#include "port_process.h"

#include <windows.h>

#include <shellapi.h>
#include <shlobj.h>

#include <fcntl.h>
#include <io.h>
#include <stdio.h>

#include "port_wide.h"

enum { LOCK_TRIES = 100, LOCK_TRY_MS = 100 };

int process_arguments(char arguments[ARGUMENTS_MAX][ARGUMENT_BYTES])
{
	int count = 0;
	wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);

	if (!wide || count > ARGUMENTS_MAX)
		return -1;
	for (int i = 0; i < count; i++) {
		if (!wide_to(wide[i], arguments[i], ARGUMENT_BYTES))
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

bool process_file_beside(const char *name, char path[PATH_BYTES])
{
	wchar_t program[PATH_BYTES], *last;
	char folder[PATH_BYTES];
	DWORD length = GetModuleFileNameW(NULL, program, PATH_BYTES);

	last = length && length < PATH_BYTES ? wcsrchr(program, L'\\') : NULL;
	if (!last)
		return false;
	last[1] = L'\0';
	return wide_to(program, folder, PATH_BYTES) && snprintf(path, PATH_BYTES, "%s%s", folder, name) < PATH_BYTES;
}

bool process_state_folder(char *folder, int size)
{
	bool named = GetEnvironmentVariableW(L"BENCHWRIGHT_STATE", NULL, 0) != 0;
	const wchar_t *name = named ? L"%BENCHWRIGHT_STATE%" : L"%ProgramFiles%\\Benchwright\\state";
	wchar_t wide[PATH_BYTES];
	DWORD length = ExpandEnvironmentStringsW(name, wide, PATH_BYTES);

	if (length == 0 || length > PATH_BYTES || !wide_to(wide, folder, size))
		return false;
	SHCreateDirectoryExW(NULL, wide, NULL);
	return true;
}

enum process_lock process_lock_take(const char *path)
{
	wchar_t wide[PATH_BYTES];

	if (!wide_from(path, wide, PATH_BYTES))
		return LOCK_FAILED;
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (CreateFileW(wide, GENERIC_WRITE, 0, NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL) != INVALID_HANDLE_VALUE)
			return LOCK_HELD;
		if (GetLastError() != ERROR_SHARING_VIOLATION)
			return LOCK_FAILED;
		Sleep(LOCK_TRY_MS);
	}
	return LOCK_BUSY;
}
