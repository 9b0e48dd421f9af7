/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-accel - watch what a closed program asks of its sockets
 *
 *   bw-accel --watch FILE [--children] PROGRAM [ARGUMENT…]
 *
 * The program runs as without it, with bw-watch.dll in it, which lies beside this program; its exit code is passed on. FILE gets a
 * line of JSON for each call (docs/windows.md). --children: programs that it starts are watched, too. No administrator is needed.
 *
 * Exit codes of its own, before the program has begun: 2 bad argument, no program; 3 a program that cannot be watched; 5 the record
 * cannot be written.
 *
 * System program: processes and shared memory, by calls of Windows.
 */
#include <windows.h>

#include <stdbool.h>
#include <stdio.h>
#include <wchar.h>

#include "port_wide.h"
#include "watch/port_inject.h"
#include "watch/port_memory.h"
#include "watch/port_record.h"
#include "watch/program_header.h"

enum exit_code { EXIT_DONE = 0, EXIT_BAD_INPUT = 2, EXIT_CANNOT = 3, EXIT_BENCH = 5 };
enum { TEXT_BYTES = 3 * MAX_PATH, LOOK_EVERY_MS = 5 };

struct arguments {
	const wchar_t *file, *program;
	wchar_t *line; /* of the program: its part of this one's, to the letter */
	bool children;
};

/* Say what was wrong, with the system's error unless that is 0. */
static int refuse(enum exit_code code, const char *what, const wchar_t *which, DWORD error)
{
	char text[TEXT_BYTES];

	wide_to(which, text, sizeof(text));
	fprintf(stderr, "bw-accel: %s: %s", text, what);
	if (error)
		fprintf(stderr, ": error %lu", error);
	fputc('\n', stderr);
	return code;
}

/* What is behind the first argument of a command line, as CommandLineToArgvW takes it apart. */
static wchar_t *behind_argument(wchar_t *line, bool is_program)
{
	bool quoted = false;

	for (; *line && (quoted || (*line != L' ' && *line != L'\t')); line++) {
		if (*line == L'\\' && !is_program && (line[1] == L'\\' || line[1] == L'"'))
			line++; /* a quote behind it is no quote; of backslashes before one the last counts */
		else if (*line == L'"')
			quoted = !quoted;
	}
	while (*line == L' ' || *line == L'\t')
		line++;
	return line;
}

static int read_arguments(int argc, wchar_t **argv, struct arguments *arguments)
{
	int i = 1;

	for (; i < argc && wcsncmp(argv[i], L"--", 2) == 0; i++) {
		if (wcscmp(argv[i], L"--children") == 0)
			arguments->children = true;
		else if (wcscmp(argv[i], L"--watch") == 0 && i + 1 < argc)
			arguments->file = argv[++i];
		else
			return refuse(EXIT_BAD_INPUT, "unknown option; allowed: --watch FILE, --children", argv[i], 0);
	}
	if (!arguments->file || i == argc) {
		fputs("usage: bw-accel --watch FILE [--children] PROGRAM [ARGUMENT...]\n", stderr);
		return EXIT_BAD_INPUT;
	}
	arguments->program = argv[i];
	arguments->line = GetCommandLineW();
	for (int skipped = 0; skipped < i; skipped++)
		arguments->line = behind_argument(arguments->line, skipped == 0);
	return EXIT_DONE;
}

static int judge_program(const wchar_t *path)
{
	static uint8_t head[PROGRAM_HEADER_BYTES];
	HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0, NULL);
	DWORD size = 0, error = GetLastError();

	if (file == INVALID_HANDLE_VALUE)
		return refuse(EXIT_BAD_INPUT, "cannot be read", path, error);
	ReadFile(file, head, sizeof(head), &size, NULL);
	CloseHandle(file);
	switch (program_kind(head, size)) {
	case PROGRAM_X86_64:
		return EXIT_DONE;
	case PROGRAM_32_BIT:
		return refuse(EXIT_CANNOT, "a program of 32 bits; only those of 64 bits can be watched", path, 0);
	case PROGRAM_OTHER_MACHINE:
		return refuse(EXIT_CANNOT, "a program for another processor; only those for x86-64 can be watched", path, 0);
	case PROGRAM_LIBRARY:
		return refuse(EXIT_BAD_INPUT, "a library, no program", path, 0);
	case PROGRAM_NONE:
		break;
	}
	return refuse(EXIT_BAD_INPUT, "no program of Windows", path, 0);
}

/* Start it with the library in it, still asleep. */
static int start(const struct arguments *arguments, const wchar_t *path, PROCESS_INFORMATION *process)
{
	STARTUPINFOW startup;
	wchar_t library[MAX_PATH], *name;
	DWORD length = GetModuleFileNameW(NULL, library, MAX_PATH), error;

	name = wcsrchr(library, L'\\');
	if (!length || length >= MAX_PATH || !name || name - library > MAX_PATH - 16)
		return refuse(EXIT_CANNOT, "too long a path", library, 0);
	wcscpy(name + 1, L"bw-watch.dll");
	if (GetFileAttributesW(library) == INVALID_FILE_ATTRIBUTES)
		return refuse(EXIT_CANNOT, "missing; it belongs beside bw-accel.exe", library, GetLastError());
	GetStartupInfoW(&startup); /* its streams and window as they were to be without us */
	if (!CreateProcessW(path, arguments->line, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &startup, process))
		return refuse(EXIT_CANNOT, "cannot be started", path, GetLastError());
	if (inject_library(process, library, GetCurrentProcessId()))
		return EXIT_DONE;
	error = GetLastError();
	TerminateProcess(process->hProcess, EXIT_CANNOT);
	return refuse(EXIT_CANNOT, "cannot be watched: it does not take our library, as protected and packaged programs do not", path,
		      error);
}

/* Keys for the program are not for us. */
static BOOL WINAPI ignore_keys(DWORD key)
{
	return key == CTRL_C_EVENT || key == CTRL_BREAK_EVENT;
}

/* Write down what comes until the program has ended. @return its exit code */
static DWORD follow(const PROCESS_INFORMATION *process, struct record *record, struct watch_ring *ring)
{
	DWORD code, error = 0;

	ResumeThread(process->hThread);
	while (WaitForSingleObject(process->hProcess, LOOK_EVERY_MS) == WAIT_TIMEOUT) {
		record_write(record, ring);
		if (record_error(record) != error) {
			error = record_error(record);
			fprintf(stderr, "bw-accel: the record ends here, the program goes on: error %lu\n", error);
		}
	}
	GetExitCodeProcess(process->hProcess, &code);
	return code;
}

static int watch(const struct arguments *arguments, const wchar_t *path)
{
	HANDLE handle;
	struct watch_memory *memory = memory_map(WATCH_MEMORY_NAME, GetCurrentProcessId(), sizeof(*memory), &handle);
	struct record *record;
	PROCESS_INFORMATION process;
	uint64_t lost_count;
	int code;

	if (!memory)
		return refuse(EXIT_CANNOT, "no shared memory", path, GetLastError());
	memory->children = arguments->children;
	ring_begin(&memory->ring);
	record = record_open(arguments->file);
	if (!record)
		return refuse(EXIT_BENCH, "the record cannot be written", arguments->file, GetLastError());
	SetConsoleCtrlHandler(ignore_keys, TRUE);
	code = start(arguments, path, &process);
	if (code == EXIT_DONE)
		code = (int)follow(&process, record, &memory->ring);
	record_close(record, &memory->ring);
	lost_count = memory->ring.lost_count;
	if (lost_count)
		fprintf(stderr, "bw-accel: calls that are not in the record: %llu\n", (unsigned long long)lost_count);
	return code;
}

int wmain(int argc, wchar_t **argv);

int wmain(int argc, wchar_t **argv)
{
	struct arguments arguments = { 0 };
	wchar_t path[MAX_PATH];
	DWORD length;
	int code = read_arguments(argc, argv, &arguments);

	if (code != EXIT_DONE)
		return code;
	length = SearchPathW(NULL, arguments.program, L".exe", MAX_PATH, path, NULL);
	if (!length || length >= MAX_PATH)
		return refuse(EXIT_BAD_INPUT, "no such program", arguments.program, 0);
	code = judge_program(path);
	if (code != EXIT_DONE)
		return code;
	return watch(&arguments, path);
}
