/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-accel - watch what a closed program asks of its sockets, and set what it does not set itself
 *
 *   bw-accel [--watch FILE] [--set NAME=VALUE]… [--children] PROGRAM [ARGUMENT…]
 *
 * The program runs as without it, with bw-watch.dll in it, which lies beside this program; its exit code is passed on. No
 * administrator is needed. docs/windows.md has fields and settings.
 *
 * What a setting did not take effect on is said on stderr when the program has ended, with Windows' error.
 *
 * Exit codes of its own, before the program has begun: 2 bad argument, no program; 3 a program that cannot be watched; 5 the record
 * cannot be written.
 *
 * System program: processes and shared memory, by calls of Windows.
 */
#include <windows.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "port_wide.h"
#include "watch/port_inject.h"
#include "watch/port_memory.h"
#include "watch/port_record.h"
#include "watch/program_header.h"
#include "watch/tuning.h"

enum exit_code { EXIT_DONE = 0, EXIT_BAD_INPUT = 2, EXIT_CANNOT = 3, EXIT_BENCH = 5 };
enum { TEXT_BYTES = 3 * MAX_PATH, LOOK_EVERY_MS = 5, SETTING_BYTES = 80, STOP_CHARACTERS = 40 };
#define STOP_EVENT L"Global\\benchwright-stop-%lu" /* as in traffic-gen/port/windows/port_win32.c */

static const char help[] =
	"usage: bw-accel [--watch FILE] [--set NAME=VALUE]... [--children] PROGRAM [ARGUMENT...]\n"
	"\n"
	"  --watch FILE      write a line of JSON for each call of its sockets\n"
	"  --set NAME=VALUE  what its sockets, threads and process get:\n"
	"      no_delay=1                  small writes go at once: TCP_NODELAY\n"
	"      ack_frequency=1..255        acknowledge each so-manieth segment at once: SIO_TCP_SET_ACK_FREQUENCY\n"
	"      send_buffer_bytes=N         SO_SNDBUF, where it is smaller\n"
	"      receive_buffer_bytes=N      SO_RCVBUF, where it is smaller\n"
	"      multimedia_class=NAME       of each thread that moves data: a task of MMCSS, such as \"Pro Audio\"\n"
	"      timer_us=500..15625         tick of the system, by which time-outs and Sleep end\n"
	"      poll_us=N                   a wait for sockets asks for so long before it sleeps\n"
	"  --children        do the same with programs that it starts\n";

struct arguments {
	const wchar_t *file, *program;
	struct tuning tunings[TUNE_COUNT];
	bool tunes;
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

static int read_setting(struct arguments *arguments, const wchar_t *word)
{
	char text[SETTING_BYTES], error[TUNING_ERROR_BYTES];

	if (!wide_to(word, text, sizeof(text)))
		return refuse(EXIT_BAD_INPUT, "too long a setting", word, 0);
	arguments->tunes = true;
	if (tuning_read(arguments->tunings, text, error))
		return EXIT_DONE;
	fprintf(stderr, "bw-accel: --set %s\n", error);
	return EXIT_BAD_INPUT;
}

static int read_arguments(int argc, wchar_t **argv, struct arguments *arguments)
{
	int i = 1, code = EXIT_DONE;

	for (; i < argc && wcsncmp(argv[i], L"--", 2) == 0; i++) {
		if (wcscmp(argv[i], L"--children") == 0)
			arguments->children = true;
		else if (wcscmp(argv[i], L"--watch") == 0 && i + 1 < argc)
			arguments->file = argv[++i];
		else if (wcscmp(argv[i], L"--set") == 0 && i + 1 < argc)
			code = read_setting(arguments, argv[++i]);
		else
			return refuse(EXIT_BAD_INPUT, "unknown option; allowed: --watch FILE, --set NAME=VALUE, --children", argv[i], 0);
		if (code != EXIT_DONE)
			return code;
	}
	if ((!arguments->file && !arguments->tunes) || i == argc) {
		fputs(help, stderr);
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

/* Whoever asks us to end means the program. */
static void pass_stop_on(const PROCESS_INFORMATION *process, HANDLE *asked)
{
	wchar_t name[STOP_CHARACTERS];
	HANDLE event;

	if (!*asked || WaitForSingleObject(*asked, 0) != WAIT_OBJECT_0)
		return;
	_snwprintf(name, STOP_CHARACTERS, STOP_EVENT, process->dwProcessId);
	event = OpenEventW(EVENT_MODIFY_STATE, FALSE, name);
	if (!event)
		return; /* it is not there yet: once more */
	SetEvent(event);
	CloseHandle(event);
	CloseHandle(*asked);
	*asked = NULL;
}

/* Write down what comes until the program has ended; NULL: nothing is to be. @return its exit code */
static DWORD follow(const PROCESS_INFORMATION *process, struct record *record, struct watch_ring *ring)
{
	wchar_t name[STOP_CHARACTERS];
	DWORD code, error = 0;
	HANDLE asked;

	_snwprintf(name, STOP_CHARACTERS, STOP_EVENT, GetCurrentProcessId());
	asked = CreateEventW(NULL, TRUE, FALSE, name);
	ResumeThread(process->hThread);
	while (WaitForSingleObject(process->hProcess, LOOK_EVERY_MS) == WAIT_TIMEOUT) {
		pass_stop_on(process, &asked);
		if (!record)
			continue;
		record_write(record, ring);
		if (record_error(record) != error) {
			error = record_error(record);
			fprintf(stderr, "bw-accel: the record ends here, the program goes on: error %lu\n", error);
		}
	}
	GetExitCodeProcess(process->hProcess, &code);
	return code;
}

/* Say what did not take effect. */
static void tell_refused(const struct tuning *tunings)
{
	for (int i = 0; i < TUNE_COUNT; i++) {
		const struct tuning *each = &tunings[i];
		const char *owners = tuning_owners((enum tuning_name)i);

		if (!each->refused_count)
			continue;
		fprintf(stderr, "bw-accel: %s: not in effect on %lu of %lu %s", tuning_name((enum tuning_name)i),
			(unsigned long)each->refused_count, (unsigned long)(each->refused_count + each->held_count), owners);
		if (each->error)
			fprintf(stderr, ": error %lu\n", (unsigned long)each->error);
		else
			fputs(": the system holds it lower\n", stderr);
	}
}

static int watch(const struct arguments *arguments, const wchar_t *path)
{
	HANDLE handle;
	struct watch_memory *memory = memory_map(WATCH_MEMORY_NAME, GetCurrentProcessId(), sizeof(*memory), &handle);
	struct record *record = NULL;
	PROCESS_INFORMATION process;
	uint64_t lost_count;
	int code;

	if (!memory)
		return refuse(EXIT_CANNOT, "no shared memory", path, GetLastError());
	memory->children = arguments->children;
	memory->recorded = arguments->file != NULL;
	memcpy(memory->tunings, arguments->tunings, sizeof(memory->tunings));
	ring_begin(&memory->ring);
	if (arguments->file)
		record = record_open(arguments->file);
	if (arguments->file && !record)
		return refuse(EXIT_BENCH, "the record cannot be written", arguments->file, GetLastError());
	SetConsoleCtrlHandler(ignore_keys, TRUE);
	code = start(arguments, path, &process);
	if (code == EXIT_DONE)
		code = (int)follow(&process, record, &memory->ring);
	if (record)
		record_close(record, &memory->ring);
	tell_refused(memory->tunings);
	lost_count = memory->ring.lost_count;
	if (lost_count)
		fprintf(stderr, "bw-accel: calls that are not in the record: %llu\n", (unsigned long long)lost_count);
	return code;
}

int wmain(int argc, wchar_t **argv);

int wmain(int argc, wchar_t **argv)
{
	static struct arguments arguments;
	wchar_t path[MAX_PATH];
	DWORD length;
	int code;

	if (argc == 2 && wcscmp(argv[1], L"--help") == 0) {
		fputs(help, stdout);
		return EXIT_DONE;
	}
	code = read_arguments(argc, argv, &arguments);
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
