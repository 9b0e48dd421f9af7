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
 * tool runs, its id and the time of its creation, and FOLDER\rc, the exit code, when it has ended. Ids are used again, after a
 * reboot above all: `stop` and `end` touch no process that was created at another time. `stop` sets the event that traffic-gen/port/windows/port_win32.c waits for;
 * a program that waits for none is ended.
 *
 * Exit codes: 0 done, 2 bad argument, 3 refused by the system.
 *
 * System program: processes, events and files that are shared, by calls of Windows.
 */
#include <windows.h>

#include <shellapi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

#include "port_wide.h"

enum exit_code { EXIT_DONE = 0, EXIT_BAD_INPUT = 2, EXIT_REFUSED = 3 };

enum { LINE_CHARACTERS = 32768, TEXT_BYTES = 3 * MAX_PATH, LOOK_EVERY_MS = 20, STOP_TRIES = 100, SUPERVISOR_ENDS_MS = 100,
       ENDED_CODE = 1 };

#define STOP_EVENT L"Global\\benchwright-stop-%lu" /* as in traffic-gen/port/windows/port_win32.c */
#define SUPERVISE L"supervise"

/* Say on stderr what failed. @return EXIT_REFUSED */
static int refuse(const char *what, const wchar_t *which)
{
	DWORD error = GetLastError();
	char text[TEXT_BYTES];

	wide_to(which, text, sizeof(text));
	fprintf(stderr, "bw-job: %s %s: error %lu\n", what, text, error);
	return EXIT_REFUSED;
}

/*
 * Append an argument to a command line, quoted as CommandLineToArgvW undoes it: backslashes count before a quote alone.
 *
 * @return false when there is no room
 */
static bool append_argument(wchar_t *line, const wchar_t *argument)
{
	wchar_t *out = line + wcslen(line);
	const wchar_t *end = line + LINE_CHARACTERS - 4;
	size_t backslashes = 0;

	if (out != line)
		*out++ = L' ';
	*out++ = L'"';
	for (const wchar_t *in = argument;; in++) {
		if (*in == L'\\') {
			backslashes++;
			continue;
		}
		if (out + 2 * backslashes >= end)
			return false;
		for (size_t i = 0; i < (*in == L'"' || *in == L'\0' ? 2 * backslashes : backslashes); i++)
			*out++ = L'\\';
		backslashes = 0;
		if (*in == L'\0')
			break;
		if (*in == L'"')
			*out++ = L'\\';
		*out++ = *in;
	}
	*out++ = L'"';
	*out = L'\0';
	return true;
}

static bool join_path(wchar_t path[MAX_PATH], const wchar_t *folder, const wchar_t *name)
{
	int length = _snwprintf(path, MAX_PATH, L"%ls\\%ls", folder, name);

	return length > 0 && length < MAX_PATH;
}

/* Write one line to a file of the job, complete at once: by a new name and a rename. */
static int write_line(const wchar_t *folder, const wchar_t *name, const char *line)
{
	wchar_t path[MAX_PATH], fresh[MAX_PATH];
	int length = join_path(path, folder, name) ? _snwprintf(fresh, MAX_PATH, L"%ls.new", path) : -1;
	FILE *file;

	if (length < 0 || length >= MAX_PATH)
		return refuse("too long a path:", folder);
	file = _wfopen(fresh, L"wb");
	if (!file)
		return refuse("cannot write", fresh);
	fprintf(file, "%s\n", line);
	if (fclose(file) || !MoveFileExW(fresh, path, MOVEFILE_REPLACE_EXISTING))
		return refuse("cannot write", path);
	return EXIT_DONE;
}

/* Read the line in a file of the job. @return false when there is none */
static bool read_line(const wchar_t *folder, const wchar_t *name, char line[64])
{
	wchar_t path[MAX_PATH];
	FILE *file;
	bool found;

	if (!join_path(path, folder, name))
		return false;
	file = _wfopen(path, L"rb");
	if (!file)
		return false;
	found = fgets(line, 64, file) != NULL;
	fclose(file);
	return found;
}

/* Tell whether the tool of a job has left its exit code. */
static bool has_ended(const wchar_t *folder)
{
	char line[64];

	return read_line(folder, L"rc", line);
}

/* When a process was created, in 100 ns since 1601; 0: it cannot be told. */
static uint64_t created_100ns(HANDLE process)
{
	FILETIME created, ended, kernel, user;

	if (!GetProcessTimes(process, &created, &ended, &kernel, &user))
		return 0;
	return (uint64_t)created.dwHighDateTime << 32 | created.dwLowDateTime;
}

/* What has become of a job's tool. */
enum tool {
	TOOL_UNKNOWN, /* it has not been started yet */
	TOOL_GONE,
	TOOL_RUNS,
	TOOL_REFUSED, /* the system does not let this process near it */
};

/* Open the process of a job's tool; while it is open, its id belongs to it. */
static enum tool open_tool(const wchar_t *folder, DWORD access, HANDLE *process, DWORD *pid)
{
	unsigned long long created;
	unsigned long id;
	char line[64];

	if (!read_line(folder, L"pid", line) || sscanf(line, "%lu %llu", &id, &created) != 2)
		return TOOL_UNKNOWN;
	*pid = id;
	*process = OpenProcess(access | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, id);
	if (!*process)
		return GetLastError() == ERROR_INVALID_PARAMETER ? TOOL_GONE : TOOL_REFUSED;
	if (created_100ns(*process) == created)
		return TOOL_RUNS;
	CloseHandle(*process);
	return TOOL_GONE;
}

/* Leave a supervisor behind. */
static int job_start(const wchar_t *folder, int argc, wchar_t **argv)
{
	static wchar_t line[LINE_CHARACTERS]; /* too large for a stack */
	STARTUPINFOW startup = { .cb = sizeof(startup) };
	PROCESS_INFORMATION process;
	DWORD flags = DETACHED_PROCESS | CREATE_BREAKAWAY_FROM_JOB;
	wchar_t program[MAX_PATH];
	DWORD length = GetModuleFileNameW(NULL, program, MAX_PATH);

	if (!length || length >= MAX_PATH)
		return refuse("cannot find", L"itself");
	if (!append_argument(line, program) || !append_argument(line, SUPERVISE) || !append_argument(line, folder))
		return EXIT_BAD_INPUT;
	for (int i = 0; i < argc; i++) {
		if (!append_argument(line, argv[i]))
			return EXIT_BAD_INPUT;
	}
	if (!CreateProcessW(program, line, NULL, NULL, FALSE, flags, NULL, NULL, &startup, &process))
		return refuse("cannot leave the session's job with", program);
	CloseHandle(process.hThread);
	CloseHandle(process.hProcess);
	return EXIT_DONE;
}

static HANDLE open_output(const wchar_t *folder, const wchar_t *name)
{
	SECURITY_ATTRIBUTES inheritable = { .nLength = sizeof(inheritable), .bInheritHandle = TRUE };
	wchar_t path[MAX_PATH];

	if (!join_path(path, folder, name))
		return INVALID_HANDLE_VALUE;
	return CreateFileW(path, GENERIC_WRITE, FILE_SHARE_READ, &inheritable, CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
}

static HANDLE open_nothing(void)
{
	SECURITY_ATTRIBUTES inheritable = { .nLength = sizeof(inheritable), .bInheritHandle = TRUE };

	return CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, &inheritable, OPEN_EXISTING, 0, NULL);
}

static void say_not_started(HANDLE output, const wchar_t *program)
{
	DWORD error = GetLastError(), written;
	char name[TEXT_BYTES], text[TEXT_BYTES + 64];
	int size;

	wide_to(program, name, sizeof(name));
	size = snprintf(text, sizeof(text), "bw-job: cannot start %.200s: error %lu\n", name, error);
	WriteFile(output, text, (DWORD)size, &written, NULL);
}

/* Run the tool to its end. What cannot be started ends with code 127, as in a shell. */
static int job_supervise(const wchar_t *folder, int argc, wchar_t **argv)
{
	static wchar_t line[LINE_CHARACTERS];
	STARTUPINFOW startup = { .cb = sizeof(startup), .dwFlags = STARTF_USESTDHANDLES };
	PROCESS_INFORMATION process;
	DWORD code = 127;
	char text[64];

	for (int i = 0; i < argc; i++) {
		if (!append_argument(line, argv[i]))
			return EXIT_BAD_INPUT;
	}
	startup.hStdInput = open_nothing();
	startup.hStdOutput = open_output(folder, L"out");
	startup.hStdError = open_output(folder, L"err");
	if (startup.hStdOutput == INVALID_HANDLE_VALUE || startup.hStdError == INVALID_HANDLE_VALUE)
		return refuse("cannot write into", folder);
	if (CreateProcessW(NULL, line, NULL, NULL, TRUE, CREATE_NO_WINDOW, NULL, NULL, &startup, &process)) {
		int err;

		snprintf(text, sizeof(text), "%lu %llu", process.dwProcessId,
			 (unsigned long long)created_100ns(process.hProcess));
		err = write_line(folder, L"pid", text);
		if (err)
			return err;
		WaitForSingleObject(process.hProcess, INFINITE);
		GetExitCodeProcess(process.hProcess, &code);
	} else {
		say_not_started(startup.hStdError, argv[0]);
	}
	/* An exit code of the system (0xC0000005) is negative, as a signal's number elsewhere. */
	snprintf(text, sizeof(text), "%ld", (long)code);
	return write_line(folder, L"rc", text);
}

static int file_read(const wchar_t *path)
{
	HANDLE output = GetStdHandle(STD_OUTPUT_HANDLE);
	HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
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

/* End a process and wait until it is gone; the handle is closed. */
static void end_process(HANDLE process)
{
	TerminateProcess(process, ENDED_CODE);
	WaitForSingleObject(process, INFINITE);
	CloseHandle(process);
}

/* Set the event on which a tool ends with its result. @return false: it waits for none */
static bool ask_to_end(DWORD pid)
{
	wchar_t name[64];
	HANDLE event;

	_snwprintf(name, sizeof(name) / sizeof(name[0]), STOP_EVENT, pid);
	event = OpenEventW(EVENT_MODIFY_STATE, FALSE, name);
	if (!event)
		return false;
	SetEvent(event);
	CloseHandle(event);
	return true;
}

/* A tool that has just been started has no event yet: try for two seconds. */
static int job_stop(const wchar_t *folder)
{
	for (int i = 0; i < STOP_TRIES && !has_ended(folder); i++) {
		HANDLE process;
		DWORD pid;

		switch (open_tool(folder, PROCESS_TERMINATE | SYNCHRONIZE, &process, &pid)) {
		case TOOL_GONE:
			return EXIT_DONE;
		case TOOL_REFUSED:
			return refuse("cannot end the tool of", folder);
		case TOOL_RUNS:
			if (ask_to_end(pid)) {
				CloseHandle(process);
				return EXIT_DONE;
			}
			if (i == STOP_TRIES - 1) {
				end_process(process);
				return EXIT_DONE;
			}
			CloseHandle(process);
			break;
		case TOOL_UNKNOWN:
			break;
		}
		Sleep(LOOK_EVERY_MS);
	}
	return EXIT_DONE;
}

static int end_leftover(const wchar_t *folder)
{
	HANDLE process;
	DWORD pid;

	if (has_ended(folder))
		return EXIT_DONE;
	switch (open_tool(folder, PROCESS_TERMINATE | SYNCHRONIZE, &process, &pid)) {
	case TOOL_RUNS:
		end_process(process);
		break;
	case TOOL_REFUSED:
		return refuse("cannot end the tool of", folder);
	case TOOL_GONE:
	case TOOL_UNKNOWN:
		return EXIT_DONE;
	}
	/* Its supervisor still holds the files of the folder: it ends when it has written the exit code. */
	for (int i = 0; i < STOP_TRIES && !has_ended(folder); i++)
		Sleep(LOOK_EVERY_MS);
	Sleep(SUPERVISOR_ENDS_MS);
	return EXIT_DONE;
}

static int jobs_end(const wchar_t *prefix)
{
	wchar_t pattern[MAX_PATH], folder[MAX_PATH];
	const wchar_t *name = wcsrchr(prefix, L'\\');
	int length = name ? _snwprintf(pattern, MAX_PATH, L"%ls*", prefix) : -1;
	int result = EXIT_DONE;
	WIN32_FIND_DATAW found;
	HANDLE search;

	if (length < 0 || length >= MAX_PATH)
		return EXIT_BAD_INPUT;
	search = FindFirstFileW(pattern, &found);
	if (search == INVALID_HANDLE_VALUE)
		return EXIT_DONE;
	do {
		length = _snwprintf(folder, MAX_PATH, L"%.*ls\\%ls", (int)(name - prefix), prefix, found.cFileName);
		if (length > 0 && length < MAX_PATH && end_leftover(folder) != EXIT_DONE)
			result = EXIT_REFUSED;
	} while (FindNextFileW(search, &found));
	FindClose(search);
	return result;
}

int main(void)
{
	int argc = 0;
	wchar_t **argv = CommandLineToArgvW(GetCommandLineW(), &argc);
	const wchar_t *verb = argv && argc > 1 ? argv[1] : L"";

	if (argc >= 4 && wcscmp(verb, L"start") == 0)
		return job_start(argv[2], argc - 3, argv + 3);
	if (argc >= 4 && wcscmp(verb, SUPERVISE) == 0)
		return job_supervise(argv[2], argc - 3, argv + 3);
	if (argc == 3 && wcscmp(verb, L"stop") == 0)
		return job_stop(argv[2]);
	if (argc == 3 && wcscmp(verb, L"read") == 0)
		return file_read(argv[2]);
	if (argc == 3 && wcscmp(verb, L"end") == 0)
		return jobs_end(argv[2]);
	fprintf(stderr, "bw-job: needs start FOLDER PROGRAM [ARGUMENT...], stop FOLDER, read FILE or end PREFIX\n");
	return EXIT_BAD_INPUT;
}
