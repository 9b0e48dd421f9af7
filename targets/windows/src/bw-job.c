/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-job - run a tool so that it outlives the SSH connection that has started it
 *
 *   bw-job start FOLDER PROGRAM [ARGUMENT…]   start it; stdout goes to FOLDER\out, stderr to FOLDER\err
 *   bw-job stop FOLDER                        ask it to end and give its result so far; harmless when it has ended
 *   bw-job read FILE                          print a file, also one that a tool still writes, which cmd's own `type` may refuse
 *   bw-job end PREFIX                         end what still runs of the jobs in the folders PREFIX*, whatever it does
 *
 * OpenSSH for Windows ends what a session has started when the session ends, unless it leaves the session's job object, which
 * it may (CREATE_BREAKAWAY_FROM_JOB; openssh-portable, pull request 267). So `start` leaves a supervisor behind, outside of
 * that job, without a console and without the session's pipes: sshd waits for whoever holds them. It writes FOLDER\pid when the
 * tool runs and FOLDER\rc, the exit code, when it has ended. `stop` sets the event that traffic-gen/port/windows/port_win32.c waits for;
 * a program that waits for none is ended.
 *
 * Exit codes: 0 done, 2 bad argument, 3 refused by the system.
 *
 * System program: processes, events and files that are shared, by calls of Windows.
 */
#include <windows.h>

#include <psapi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum exit_code { EXIT_DONE = 0, EXIT_BAD_INPUT = 2, EXIT_REFUSED = 3 };

enum { COMMAND_BYTES = 32768, LOOK_EVERY_MS = 20, STOP_TRIES = 100, SUPERVISOR_ENDS_MS = 100, ENDED_CODE = 1 };

#define STOP_EVENT "Global\\benchwright-stop-%lu" /* as in traffic-gen/port/windows/port_win32.c */
#define SUPERVISE "supervise"

/* Say on stderr what failed. @return EXIT_REFUSED */
static int refuse(const char *what, const char *which)
{
	fprintf(stderr, "bw-job: %s %s: error %lu\n", what, which, GetLastError());
	return EXIT_REFUSED;
}

/*
 * Append an argument to a command line, quoted as CommandLineToArgvW undoes it: backslashes count before a quote alone.
 *
 * @return false when there is no room
 */
static bool append_argument(char *line, const char *argument)
{
	char *out = line + strlen(line);
	const char *end = line + COMMAND_BYTES - 4;
	size_t backslashes = 0;

	if (out != line)
		*out++ = ' ';
	*out++ = '"';
	for (const char *in = argument;; in++) {
		if (*in == '\\') {
			backslashes++;
			continue;
		}
		if (out + 2 * backslashes >= end)
			return false;
		for (size_t i = 0; i < (*in == '"' || *in == '\0' ? 2 * backslashes : backslashes); i++)
			*out++ = '\\';
		backslashes = 0;
		if (*in == '\0')
			break;
		if (*in == '"')
			*out++ = '\\';
		*out++ = *in;
	}
	*out++ = '"';
	*out = '\0';
	return true;
}

static bool join_path(char path[MAX_PATH], const char *folder, const char *name)
{
	return snprintf(path, MAX_PATH, "%s\\%s", folder, name) < MAX_PATH;
}

/* Write one number to a file of the job, complete at once: by a new name and a rename. */
static int write_number(const char *folder, const char *name, DWORD number)
{
	char path[MAX_PATH], fresh[MAX_PATH];
	FILE *file;

	if (!join_path(path, folder, name) || snprintf(fresh, sizeof(fresh), "%s.new", path) >= MAX_PATH)
		return refuse("too long a path:", folder);
	file = fopen(fresh, "wb");
	if (!file)
		return refuse("cannot write", fresh);
	/* An exit code of the system (0xC0000005) is negative, as a signal's number elsewhere. */
	fprintf(file, "%ld\n", (long)number);
	if (fclose(file) || !MoveFileExA(fresh, path, MOVEFILE_REPLACE_EXISTING))
		return refuse("cannot write", path);
	return EXIT_DONE;
}

/* Read the number in a file of the job. @return false when there is none */
static bool read_number(const char *folder, const char *name, DWORD *number)
{
	char path[MAX_PATH], text[32] = "";
	FILE *file;
	char *end;

	if (!join_path(path, folder, name))
		return false;
	file = fopen(path, "rb");
	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	*number = (DWORD)strtol(text, &end, 10);
	return end != text;
}

/* Leave a supervisor behind. */
static int job_start(const char *folder, int argc, char **argv)
{
	static char line[COMMAND_BYTES]; /* too large for a stack */
	STARTUPINFOA startup = { .cb = sizeof(startup) };
	PROCESS_INFORMATION process;
	DWORD flags = DETACHED_PROCESS | CREATE_BREAKAWAY_FROM_JOB;
	char program[MAX_PATH];

	if (!GetModuleFileNameA(NULL, program, sizeof(program)))
		return refuse("cannot find", "itself");
	if (!append_argument(line, program) || !append_argument(line, SUPERVISE) || !append_argument(line, folder))
		return EXIT_BAD_INPUT;
	for (int i = 0; i < argc; i++) {
		if (!append_argument(line, argv[i]))
			return EXIT_BAD_INPUT;
	}
	if (!CreateProcessA(program, line, NULL, NULL, FALSE, flags, NULL, NULL, &startup, &process))
		return refuse("cannot leave the session's job with", program);
	CloseHandle(process.hThread);
	CloseHandle(process.hProcess);
	return EXIT_DONE;
}

static HANDLE open_output(const char *folder, const char *name)
{
	SECURITY_ATTRIBUTES inheritable = { .nLength = sizeof(inheritable), .bInheritHandle = TRUE };
	char path[MAX_PATH];

	if (!join_path(path, folder, name))
		return INVALID_HANDLE_VALUE;
	return CreateFileA(path, GENERIC_WRITE, FILE_SHARE_READ, &inheritable, CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
}

static HANDLE open_nothing(void)
{
	SECURITY_ATTRIBUTES inheritable = { .nLength = sizeof(inheritable), .bInheritHandle = TRUE };

	return CreateFileA("NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, &inheritable, OPEN_EXISTING, 0, NULL);
}

/* Run the tool to its end. What cannot be started ends with code 127, as in a shell. */
static int job_supervise(const char *folder, int argc, char **argv)
{
	static char line[COMMAND_BYTES];
	STARTUPINFOA startup = { .cb = sizeof(startup), .dwFlags = STARTF_USESTDHANDLES };
	PROCESS_INFORMATION process;
	DWORD code = 127;

	for (int i = 0; i < argc; i++) {
		if (!append_argument(line, argv[i]))
			return EXIT_BAD_INPUT;
	}
	startup.hStdInput = open_nothing();
	startup.hStdOutput = open_output(folder, "out");
	startup.hStdError = open_output(folder, "err");
	if (startup.hStdOutput == INVALID_HANDLE_VALUE || startup.hStdError == INVALID_HANDLE_VALUE)
		return refuse("cannot write into", folder);
	if (CreateProcessA(NULL, line, NULL, NULL, TRUE, CREATE_NO_WINDOW, NULL, NULL, &startup, &process)) {
		int err = write_number(folder, "pid", process.dwProcessId);

		if (err)
			return err;
		WaitForSingleObject(process.hProcess, INFINITE);
		GetExitCodeProcess(process.hProcess, &code);
	} else {
		char text[256];
		DWORD written;
		int size = snprintf(text, sizeof(text), "bw-job: cannot start %.200s: error %lu\n", argv[0], GetLastError());

		WriteFile(startup.hStdError, text, (DWORD)size, &written, NULL);
	}
	return write_number(folder, "rc", code);
}

static int file_read(const char *path)
{
	HANDLE output = GetStdHandle(STD_OUTPUT_HANDLE);
	HANDLE file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
				  OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
	char data[16384];
	DWORD size, written;

	if (file == INVALID_HANDLE_VALUE)
		return refuse("cannot read", path);
	while (ReadFile(file, data, sizeof(data), &size, NULL) && size > 0) {
		for (DWORD at = 0; at < size; at += written) {
			if (!WriteFile(output, data + at, size - at, &written, NULL))
				return refuse("cannot print", path);
		}
	}
	CloseHandle(file);
	return EXIT_DONE;
}

static int end_process(DWORD pid)
{
	HANDLE process = OpenProcess(PROCESS_TERMINATE | SYNCHRONIZE, FALSE, pid);

	if (!process)
		return GetLastError() == ERROR_INVALID_PARAMETER ? EXIT_DONE : refuse("cannot end", "the process"); /* it is gone */
	TerminateProcess(process, ENDED_CODE);
	WaitForSingleObject(process, INFINITE);
	CloseHandle(process);
	return EXIT_DONE;
}

/* A tool that has just been started has no event yet: try for two seconds. */
static int job_stop(const char *folder)
{
	DWORD pid = 0, code;
	char name[64];

	for (int i = 0; i < STOP_TRIES; i++) {
		HANDLE event = NULL;

		if (read_number(folder, "rc", &code))
			return EXIT_DONE;
		if (read_number(folder, "pid", &pid)) {
			snprintf(name, sizeof(name), STOP_EVENT, pid);
			event = OpenEventA(EVENT_MODIFY_STATE, FALSE, name);
		}
		if (event) {
			SetEvent(event);
			CloseHandle(event);
			return EXIT_DONE;
		}
		Sleep(LOOK_EVERY_MS);
	}
	return pid ? end_process(pid) : EXIT_DONE;
}

/* The file of a process's program, or an empty text where it cannot be told. */
static void program_of(DWORD pid, char path[MAX_PATH])
{
	HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);
	DWORD size = MAX_PATH;

	path[0] = '\0';
	if (!process)
		return;
	if (!QueryFullProcessImageNameA(process, 0, path, &size))
		path[0] = '\0';
	CloseHandle(process);
}

/* Process ids are used again: only a program from the folder of this one is ended. */
static int end_leftover(const char *folder)
{
	char own[MAX_PATH], other[MAX_PATH];
	DWORD pid, code;
	char *name;

	if (read_number(folder, "rc", &code) || !read_number(folder, "pid", &pid))
		return EXIT_DONE;
	program_of(pid, other);
	if (!GetModuleFileNameA(NULL, own, sizeof(own)))
		return EXIT_DONE;
	name = strrchr(own, '\\');
	if (!name || _strnicmp(own, other, (size_t)(name + 1 - own)) != 0)
		return EXIT_DONE;
	if (end_process(pid) != EXIT_DONE)
		return EXIT_REFUSED;
	/* Its supervisor still holds the files of the folder: it ends when it has written the exit code. */
	for (int i = 0; i < STOP_TRIES && !read_number(folder, "rc", &code); i++)
		Sleep(LOOK_EVERY_MS);
	Sleep(SUPERVISOR_ENDS_MS);
	return EXIT_DONE;
}

static int jobs_end(const char *prefix)
{
	char pattern[MAX_PATH], folder[MAX_PATH];
	const char *name = strrchr(prefix, '\\');
	WIN32_FIND_DATAA found;
	int result = EXIT_DONE;
	HANDLE search;

	if (!name || snprintf(pattern, sizeof(pattern), "%s*", prefix) >= MAX_PATH)
		return EXIT_BAD_INPUT;
	search = FindFirstFileA(pattern, &found);
	if (search == INVALID_HANDLE_VALUE)
		return EXIT_DONE;
	do {
		int length = snprintf(folder, sizeof(folder), "%.*s\\%s", (int)(name - prefix), prefix, found.cFileName);

		if (length < MAX_PATH && end_leftover(folder) != EXIT_DONE)
			result = EXIT_REFUSED;
	} while (FindNextFileA(search, &found));
	FindClose(search);
	return result;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[1], "start") == 0)
		return job_start(argv[2], argc - 3, argv + 3);
	if (argc >= 4 && strcmp(argv[1], SUPERVISE) == 0)
		return job_supervise(argv[2], argc - 3, argv + 3);
	if (argc == 3 && strcmp(argv[1], "stop") == 0)
		return job_stop(argv[2]);
	if (argc == 3 && strcmp(argv[1], "read") == 0)
		return file_read(argv[2]);
	if (argc == 3 && strcmp(argv[1], "end") == 0)
		return jobs_end(argv[2]);
	fprintf(stderr, "bw-job: needs start FOLDER PROGRAM [ARGUMENT...], stop FOLDER, read FILE or end PREFIX\n");
	return EXIT_BAD_INPUT;
}
