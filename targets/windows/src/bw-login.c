/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-login - run a command line as OpenSSH for Windows does, for the virtual Windows target alone
 *
 * Takes the line from SSH_ORIGINAL_COMMAND, where a forced command of sshd finds it, and hands it to cmd.exe as it is, in quotes of its
 * own and without any further quoting: what cmd makes of it is what it makes of it on a real Windows. The exit code is cmd's.
 *
 * Under load Wine now and then starts nothing and answers with an internal error: then it is asked again.
 *
 * System program: starts cmd.exe.
 */
#include <windows.h>

#include <stdio.h>

enum { COMMAND_BYTES = 32768, NOT_STARTED = 255, STARTS_MAX = 3, PAUSE_MS = 500 };

/* CreateProcess may change the line: it is made anew each time. */
static BOOL start_cmd(const char *wanted, PROCESS_INFORMATION *process)
{
	static char line[COMMAND_BYTES];
	STARTUPINFOA startup = { .cb = sizeof(startup) };

	snprintf(line, sizeof(line), "cmd.exe /c \"%s\"", wanted);
	return CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, process);
}

int main(void)
{
	static char wanted[COMMAND_BYTES - 64]; /* too large for a stack */
	PROCESS_INFORMATION process;
	DWORD code = NOT_STARTED, size = GetEnvironmentVariableA("SSH_ORIGINAL_COMMAND", wanted, sizeof(wanted));

	if (size == 0 || size >= sizeof(wanted)) {
		fprintf(stderr, "bw-login: needs a command of at most %zu bytes\n", sizeof(wanted) - 1);
		return NOT_STARTED;
	}
	for (int start = 1; !start_cmd(wanted, &process); start++) {
		DWORD error = GetLastError();

		if (start == STARTS_MAX || error != ERROR_INTERNAL_ERROR) {
			fprintf(stderr, "bw-login: cannot start cmd.exe: error %lu\n", error);
			return NOT_STARTED;
		}
		Sleep(PAUSE_MS);
	}
	WaitForSingleObject(process.hProcess, INFINITE);
	GetExitCodeProcess(process.hProcess, &code);
	return (int)code;
}
