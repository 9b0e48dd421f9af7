/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-login - run a command line as OpenSSH for Windows does, for the virtual Windows target alone
 *
 * Takes the line from SSH_ORIGINAL_COMMAND, where a forced command of sshd finds it, and hands it to cmd.exe as it is, in quotes of its
 * own and without any further quoting: what cmd makes of it is what it makes of it on a real Windows. The exit code is cmd's.
 *
 * Under load Wine now and then starts nothing, or ends itself, and says little of it or nothing: so the file that BENCHWRIGHT_LOGIN
 * names says how far a command came: `started` before its first instruction, `ended` at its end. Without the file it may be asked
 * for again.
 *
 * System program: starts cmd.exe.
 */
#include <windows.h>

#include <stdbool.h>
#include <stdio.h>
#include <wchar.h>

enum { COMMAND_CHARACTERS = 32768, WANTED_CHARACTERS = COMMAND_CHARACTERS - 64, NOT_STARTED = 255 };

/* Write how far the command came. Returns false: it cannot be written. */
static bool note(const char *text)
{
	char path[MAX_PATH];
	DWORD size = GetEnvironmentVariableA("BENCHWRIGHT_LOGIN", path, sizeof(path));
	FILE *file = size > 0 && size < sizeof(path) ? fopen(path, "w") : NULL;

	return file && fprintf(file, "%s\n", text) > 0 && fclose(file) == 0;
}

int main(void)
{
	static wchar_t wanted[WANTED_CHARACTERS], line[COMMAND_CHARACTERS]; /* too large for a stack */
	PROCESS_INFORMATION process;
	STARTUPINFOW startup = { .cb = sizeof(startup) };
	DWORD code = NOT_STARTED, size = GetEnvironmentVariableW(L"SSH_ORIGINAL_COMMAND", wanted, WANTED_CHARACTERS);

	if (size == 0 || size >= WANTED_CHARACTERS) {
		fprintf(stderr, "bw-login: needs a command of at most %d characters\n", WANTED_CHARACTERS - 1);
		return NOT_STARTED;
	}
	_snwprintf(line, COMMAND_CHARACTERS, L"cmd.exe /c \"%ls\"", wanted);
	if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &startup, &process)) {
		fprintf(stderr, "bw-login: cannot start cmd.exe: error %lu\n", GetLastError());
		return NOT_STARTED;
	}
	if (!note("started")) {
		TerminateProcess(process.hProcess, NOT_STARTED);
		fprintf(stderr, "bw-login: cannot write the file of BENCHWRIGHT_LOGIN\n");
		return NOT_STARTED;
	}
	ResumeThread(process.hThread);
	WaitForSingleObject(process.hProcess, INFINITE);
	GetExitCodeProcess(process.hProcess, &code);
	note("ended");
	return (int)code;
}
