/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: programs that are started, and files on their way to the disk. */
#include "port/port_program.h"

#include <windows.h>

#include <errno.h>
#include <io.h>
#include <string.h>

#include "port/windows/port_win32_errno.h"

enum { COMMAND_BYTES = 32767, FILETIME_NS = 100 };

static int64_t filetime_ns(const FILETIME *time)
{
	return (((int64_t)time->dwHighDateTime << 32) + time->dwLowDateTime) * FILETIME_NS;
}

/* Write a word within quotes, which it must not have itself; backslashes at its end must not escape the last one. */
static int add_word(char *command, size_t *used, const char *word)
{
	size_t length = strlen(word), backslashes = 0;

	if (strchr(word, '"'))
		return -EINVAL;
	while (backslashes < length && word[length - 1 - backslashes] == '\\')
		backslashes++;
	if (*used + length + backslashes + 4 > COMMAND_BYTES)
		return -E2BIG;
	command[(*used)++] = '"';
	memcpy(command + *used, word, length);
	*used += length;
	memset(command + *used, '\\', backslashes);
	*used += backslashes;
	command[(*used)++] = '"';
	command[(*used)++] = ' ';
	command[*used] = '\0';
	return 0;
}

int port_program_run_self(char *const *argv, int64_t *cpu_ns)
{
	char program[MAX_PATH], command[COMMAND_BYTES];
	STARTUPINFOA start = { .cb = sizeof(start) };
	PROCESS_INFORMATION made;
	FILETIME created, exited, kernel, user;
	size_t used = 0;
	DWORD code = 0, length = GetModuleFileNameA(NULL, program, sizeof(program));
	int err = 0;

	if (!length || length == sizeof(program))
		return -ENAMETOOLONG;
	for (; *argv && !err; argv++)
		err = add_word(command, &used, *argv);
	if (err)
		return err;
	if (!CreateProcessA(program, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &made))
		return win32_errno_of(GetLastError());
	CloseHandle(made.hThread);
	if (WaitForSingleObject(made.hProcess, INFINITE) != WAIT_OBJECT_0 || !GetExitCodeProcess(made.hProcess, &code) ||
	    !GetProcessTimes(made.hProcess, &created, &exited, &kernel, &user))
		err = win32_errno_of(GetLastError());
	else
		*cpu_ns = filetime_ns(&kernel) + filetime_ns(&user);
	CloseHandle(made.hProcess);
	return err ? err : (int)code;
}

int port_file_sync(FILE *file)
{
	if (fflush(file) || _commit(_fileno(file)))
		return -errno;
	return 0;
}
