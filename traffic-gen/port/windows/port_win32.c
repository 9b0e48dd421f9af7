/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows 10 and later: clocks and the process. TAI is UTC + a constant; there is no kernel stamp. */
#define _CRT_RAND_S /* rand_s */
#include "port/port.h"

#include <winsock2.h>
#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <psapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timeapi.h>

#include "base/time_units.h"

#ifndef CREATE_WAITABLE_TIMER_HIGH_RESOLUTION
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 0x00000002
#endif

#ifndef PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION
#define PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION 0x00000004
#endif

#define FILETIME_OF_UNIX_EPOCH INT64_C(116444736000000000) /* 100 ns units since 1601 */
#define STEP_FLOOR_NS INT64_C(500000) /* the system time is adjusted in ticks of 0.5..15.6 ms, apart from the counter */

#define TIMER_PERIOD_MS 1           /* the finest that timeBeginPeriod takes */
#define STOP_EVENT "Global\\benchwright-stop-%lu" /* with the process's id: bw-job sets it, as `kill -TERM` does elsewhere */

static volatile LONG stop_requested; /* set by a console handler: cannot be passed in */

int64_t port_clock_now_ns(enum port_clock clock)
{
	if (clock == PORT_CLOCK_REALTIME) {
		FILETIME time;

		GetSystemTimePreciseAsFileTime(&time);
		return (((int64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) - FILETIME_OF_UNIX_EPOCH) * 100;
	} else {
		LARGE_INTEGER ticks, ticks_per_s;

		QueryPerformanceCounter(&ticks); /* neither can fail since Windows XP */
		QueryPerformanceFrequency(&ticks_per_s);
		return ticks.QuadPart / ticks_per_s.QuadPart * NS_PER_S +
		       ticks.QuadPart % ticks_per_s.QuadPart * NS_PER_S / ticks_per_s.QuadPart;
	}
}

void port_tai_init(struct port_tai *tai, int fallback_tai_utc_s)
{
	tai->kernel_tai_utc_s = 0;
	tai->tai_utc_s = fallback_tai_utc_s;
	tai->add_ns = fallback_tai_utc_s * NS_PER_S;
}

int port_random(uint64_t *bits)
{
	unsigned int high, low;

	if (rand_s(&high) || rand_s(&low))
		return -EIO;
	*bits = (uint64_t)high << 32 | low;
	return 0;
}

int port_seed_draw(int64_t *seed)
{
	uint64_t bits;
	int err = port_random(&bits);

	*seed = err ? 0 : (int64_t)(bits >> 1);
	return err;
}

int64_t port_tai_now_ns(const struct port_tai *tai)
{
	return port_clock_now_ns(PORT_CLOCK_REALTIME) + tai->add_ns;
}

int64_t port_tai_from_realtime_ns(const struct port_tai *tai, int64_t realtime_ns)
{
	return realtime_ns + tai->add_ns;
}

/* Wait on a high-resolution timer; where there is none (before 1803), on an ordinary one. */
static int wait_ns(int64_t duration_ns)
{
	LARGE_INTEGER due = { .QuadPart = -(duration_ns + 99) / 100 }; /* negative: relative */
	HANDLE timer = CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS);

	if (!timer)
		timer = CreateWaitableTimerExW(NULL, NULL, 0, TIMER_ALL_ACCESS);
	if (!timer)
		return -ENOMEM;
	SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE);
	WaitForSingleObject(timer, INFINITE);
	CloseHandle(timer);
	return 0;
}

int port_clock_sleep_until_ns(enum port_clock clock, int64_t deadline_ns)
{
	for (;;) {
		int64_t left_ns = deadline_ns - port_clock_now_ns(clock);
		int err;

		if (left_ns <= 0)
			return 0;
		err = wait_ns(left_ns);
		if (err)
			return err;
	}
}

int port_sleep_ns(int64_t duration_ns)
{
	return duration_ns > 0 ? wait_ns(duration_ns) : 0;
}

int64_t port_clock_step_floor_ns(void)
{
	return STEP_FLOOR_NS;
}

bool port_clocks_slew_together(void)
{
	return false;
}

/*
 * Ask for timely waking: what has a timeout of its own (WSAPoll) ends with a tick of the system, which has 15.6 ms unless
 * somebody asks for less. Since Windows 11 a process without a visible window is not heard unless it refuses to be throttled.
 */
static void ask_for_short_ticks(void)
{
	PROCESS_POWER_THROTTLING_STATE state = {
		.Version = PROCESS_POWER_THROTTLING_CURRENT_VERSION,
		.ControlMask = PROCESS_POWER_THROTTLING_EXECUTION_SPEED | PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION,
	};

	timeBeginPeriod(TIMER_PERIOD_MS); /* the system takes it back when the process ends */
	if (!SetProcessInformation(GetCurrentProcess(), ProcessPowerThrottling, &state, sizeof(state))) {
		state.ControlMask = PROCESS_POWER_THROTTLING_EXECUTION_SPEED; /* before Windows 11 */
		SetProcessInformation(GetCurrentProcess(), ProcessPowerThrottling, &state, sizeof(state));
	}
}

int port_init(void)
{
	WSADATA data;

	_setmode(_fileno(stdout), _O_BINARY); /* NDJSON ends its lines alike everywhere */
	ask_for_short_ticks();
	return WSAStartup(MAKEWORD(2, 2), &data) ? -ENOTSUP : 0;
}

static BOOL WINAPI on_console_event(DWORD event)
{
	(void)event;
	InterlockedExchange(&stop_requested, 1);
	return TRUE;
}

static void CALLBACK on_stop_event(void *unused, BOOLEAN timed_out)
{
	(void)unused;
	(void)timed_out;
	InterlockedExchange(&stop_requested, 1);
}

void port_stop_install(void)
{
	char name[64];
	HANDLE event, wait;

	SetConsoleCtrlHandler(on_console_event, TRUE);
	/* A tool that outlives its SSH connection has no console: a named event reaches it. Both end with the process. */
	snprintf(name, sizeof(name), STOP_EVENT, GetCurrentProcessId());
	event = CreateEventA(NULL, TRUE, FALSE, name);
	if (event)
		RegisterWaitForSingleObject(&wait, event, on_stop_event, NULL, INFINITE, WT_EXECUTEONLYONCE);
}

bool port_stop_requested(void)
{
	return stop_requested != 0;
}

int port_memory_lock(void)
{
	return -ENOTSUP; /* pages are locked one range at a time, within a working set: not for a whole process */
}

int port_cpus_keep_awake(void)
{
	return -ENOTSUP;
}

uint64_t port_rss_bytes(void)
{
	PROCESS_MEMORY_COUNTERS counters = { .cb = sizeof(counters) };

	return K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof(counters)) ? counters.WorkingSetSize : 0;
}

int port_directory_create(const char *path)
{
	DWORD attributes;

	if (CreateDirectoryA(path, NULL))
		return 0;
	if (GetLastError() == ERROR_PATH_NOT_FOUND)
		return -ENOENT;
	if (GetLastError() != ERROR_ALREADY_EXISTS)
		return -EACCES;
	attributes = GetFileAttributesA(path);
	return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) ? 0 : -ENOTDIR;
}
