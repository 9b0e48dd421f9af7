/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-login - run a command line as OpenSSH for Windows does, for the virtual Windows target alone
 *
 * Takes the line from SSH_ORIGINAL_COMMAND, where a forced command of sshd finds it, and hands it to cmd.exe as it is, in quotes of its
 * own and without any further quoting: what cmd makes of it is what it makes of it on a real Windows. The exit code is cmd's.
 *
 * System program: starts cmd.exe.
 */
#include <windows.h>

#include <stdio.h>

enum { COMMAND_BYTES = 32768, NOT_STARTED = 255 };

int main(void)
{
	static char wanted[COMMAND_BYTES - 64], line[COMMAND_BYTES]; /* too large for a stack */
	STARTUPINFOA startup = { .cb = sizeof(startup) };
	PROCESS_INFORMATION process;
	DWORD code = NOT_STARTED, size = GetEnvironmentVariableA("SSH_ORIGINAL_COMMAND", wanted, sizeof(wanted));

	if (size == 0 || size >= sizeof(wanted)) {
		fprintf(stderr, "bw-login: needs a command of at most %zu bytes\n", sizeof(wanted) - 1);
		return NOT_STARTED;
	}
	snprintf(line, sizeof(line), "cmd.exe /c \"%s\"", wanted);
	if (!CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &process)) {
		fprintf(stderr, "bw-login: cannot start cmd.exe: error %lu\n", GetLastError());
		return NOT_STARTED;
	}
	WaitForSingleObject(process.hProcess, INFINITE);
	GetExitCodeProcess(process.hProcess, &code);
	return (int)code;
}
