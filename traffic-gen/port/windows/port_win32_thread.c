/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer for Windows: threads and CPUs. SCHED_FIFO is the real-time class; pinning reaches CPUs 0..63.
 *
 * The class belongs to the whole process: every thread of it is above all ordinary processes then, and one that asks for nothing
 * would be in the middle of the class, above receivers. So level 16, the lowest, is for the threads that ask for nothing, and
 * those that ask have 17 and more.
 */
#include "port/port.h"

#include <winsock2.h>
#include <windows.h>

#include <tlhelp32.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 256 * 1024, CPUS_MAX = 64 };

/* The real-time class has 16 levels, 16..31. Tools tell their threads apart by two, around 50: one level for two. */
enum { FIFO_OF_BASE = 50, LEVEL_BASE = 24, LEVEL_MIN = 17, LEVEL_MAX = 31, FIFO_PER_LEVEL = 2 };

static SRWLOCK class_lock = SRWLOCK_INIT; /* the class is the process's, and so is what protects it */
static int idle_threads;                  /* that run now: no class may lift them */

struct port_thread {
	HANDLE handle;
	HANDLE scheduled; /* set once scheduling is filled in */
	int priority;
	int cpu;
	void (*run)(void *);
	void *argument;
	struct port_scheduling scheduling;
};

static void note(struct port_scheduling *scheduling, const char *what)
{
	size_t used = strlen(scheduling->note);

	snprintf(scheduling->note + used, sizeof(scheduling->note) - used, "%s%s: error %lu", used ? "; " : "", what,
		 GetLastError());
}

/* What SetThreadPriority takes in the real-time class for a priority of SCHED_FIFO, 1..99. */
static int real_time_priority(int fifo)
{
	int level = LEVEL_BASE + (fifo - FIFO_OF_BASE) / FIFO_PER_LEVEL;

	if (level < LEVEL_MIN)
		level = LEVEL_MIN;
	return level >= LEVEL_MAX ? THREAD_PRIORITY_TIME_CRITICAL : level - LEVEL_BASE;
}

/* Let the scheduler of multimedia lift the thread: to 23..26, which the real-time class alone surpasses. */
static void join_multimedia(struct port_scheduling *scheduling)
{
	typedef HANDLE WINAPI set_characteristics(const wchar_t *task, DWORD *index);
	HMODULE library = LoadLibraryW(L"avrt.dll");
	FARPROC address = library ? GetProcAddress(library, "AvSetMmThreadCharacteristicsW") : NULL;
	set_characteristics *join = NULL;
	DWORD index = 0;

	if (address)
		memcpy(&join, &address, sizeof(join));
	if (!join || !join(L"Pro Audio", &index)) /* ends with the thread */
		note(scheduling, "nor one of multimedia");
}

static bool is_real_time(void)
{
	return GetPriorityClass(GetCurrentProcess()) == REALTIME_PRIORITY_CLASS;
}

/* Put all other threads of this process to the lowest level of its class. */
static void lower_the_others(void)
{
	HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0); /* of all processes: it has no other form */
	THREADENTRY32 entry = { .dwSize = sizeof(entry) };

	for (BOOL more = Thread32First(snapshot, &entry); more; more = Thread32Next(snapshot, &entry)) {
		HANDLE thread;

		if (entry.th32OwnerProcessID != GetCurrentProcessId() || entry.th32ThreadID == GetCurrentThreadId())
			continue;
		thread = OpenThread(THREAD_SET_INFORMATION, FALSE, entry.th32ThreadID);
		if (thread) {
			SetThreadPriority(thread, THREAD_PRIORITY_IDLE);
			CloseHandle(thread);
		}
	}
	CloseHandle(snapshot);
}

/* The real-time class needs the right to increase scheduling priority; without it Windows gives the class below, silently. */
static bool enter_real_time(struct port_scheduling *scheduling)
{
	bool entered = true;

	AcquireSRWLockExclusive(&class_lock);
	if (idle_threads) {
		SetLastError(ERROR_NOT_SUPPORTED);
		note(scheduling, "no real-time class beside idle threads");
		entered = false;
	} else if (!is_real_time()) {
		entered = SetPriorityClass(GetCurrentProcess(), REALTIME_PRIORITY_CLASS) && is_real_time();
		if (entered)
			lower_the_others();
		else
			note(scheduling, "no real-time class");
	}
	ReleaseSRWLockExclusive(&class_lock);
	return entered;
}

static void take_priority(struct port_scheduling *scheduling, int priority)
{
	bool real_time = enter_real_time(scheduling);
	int wanted = real_time ? real_time_priority(priority) : THREAD_PRIORITY_TIME_CRITICAL;

	if (!real_time)
		join_multimedia(scheduling);
	if (SetThreadPriority(GetCurrentThread(), wanted)) {
		scheduling->fifo = true;
		scheduling->priority = priority;
	} else {
		note(scheduling, "no time-critical priority");
	}
}

/* A thread that asks for nothing: below all that do. */
static void take_none(void)
{
	AcquireSRWLockExclusive(&class_lock);
	if (is_real_time())
		SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_IDLE);
	ReleaseSRWLockExclusive(&class_lock);
}

/* In the real-time class even the idle priority is above that of all ordinary processes. */
static void take_idle(struct port_scheduling *scheduling)
{
	AcquireSRWLockExclusive(&class_lock);
	if (is_real_time()) {
		SetLastError(ERROR_NOT_SUPPORTED);
		note(scheduling, "no idle priority beside real-time threads");
	} else if (SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_IDLE)) {
		scheduling->idle = true;
		idle_threads++;
	} else {
		note(scheduling, "no idle priority");
	}
	ReleaseSRWLockExclusive(&class_lock);
}

static DWORD WINAPI thread_main(void *argument)
{
	struct port_thread *thread = argument;
	struct port_scheduling *scheduling = &thread->scheduling;

	scheduling->cpu = PORT_CPU_ANY;
	if (thread->cpu != PORT_CPU_ANY) {
		DWORD_PTR mask = thread->cpu < CPUS_MAX ? (DWORD_PTR)1 << thread->cpu : 0;

		if (mask && SetThreadAffinityMask(GetCurrentThread(), mask))
			scheduling->cpu = thread->cpu;
		else
			note(scheduling, "not pinned");
	}
	if (thread->priority > 0)
		take_priority(scheduling, thread->priority);
	else if (thread->priority == PORT_PRIORITY_IDLE)
		take_idle(scheduling);
	else
		take_none();
	SetEvent(thread->scheduled);
	if (thread->priority != PORT_PRIORITY_IDLE || scheduling->idle)
		thread->run(thread->argument);
	return 0;
}

int port_thread_start(const char *name, int priority, int cpu, void (*run)(void *), void *argument,
		      struct port_thread **thread_out)
{
	struct port_thread *thread = calloc(1, sizeof(*thread));

	(void)name; /* shown by debuggers of later systems alone */
	if (!thread)
		return -ENOMEM;
	thread->priority = priority;
	thread->cpu = cpu;
	thread->run = run;
	thread->argument = argument;
	thread->scheduled = CreateEventW(NULL, TRUE, FALSE, NULL);
	if (thread->scheduled)
		thread->handle = CreateThread(NULL, STACK_BYTES, thread_main, thread, 0, NULL);
	if (!thread->handle) {
		if (thread->scheduled)
			CloseHandle(thread->scheduled);
		free(thread);
		return -EAGAIN;
	}
	WaitForSingleObject(thread->scheduled, INFINITE);
	*thread_out = thread;
	return 0;
}

void port_thread_join(struct port_thread *thread)
{
	if (thread->scheduling.idle)
		SetThreadPriority(thread->handle, THREAD_PRIORITY_NORMAL);
	WaitForSingleObject(thread->handle, INFINITE);
	if (thread->scheduling.idle) {
		AcquireSRWLockExclusive(&class_lock);
		idle_threads--;
		ReleaseSRWLockExclusive(&class_lock);
	}
	CloseHandle(thread->handle);
	CloseHandle(thread->scheduled);
	free(thread);
}

const struct port_scheduling *port_thread_scheduling(const struct port_thread *thread)
{
	return &thread->scheduling;
}

int port_thread_set_cpus(const int *cpus, int count)
{
	DWORD_PTR mask = 0;

	for (int i = 0; i < count; i++) {
		if (cpus[i] >= 0 && cpus[i] < (int)(8 * sizeof(mask)))
			mask |= (DWORD_PTR)1 << cpus[i];
	}
	return SetThreadAffinityMask(GetCurrentThread(), mask) ? 0 : -EINVAL;
}

void port_thread_yield(void)
{
	SwitchToThread();
}

static int64_t filetime_ns(const FILETIME *time)
{
	return ((int64_t)time->dwHighDateTime << 32 | time->dwLowDateTime) * 100;
}

int64_t port_thread_cpu_ns(void)
{
	FILETIME created, ended, kernel, user;

	if (!GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user))
		return 0; /* no process is refused its own */
	return filetime_ns(&kernel) + filetime_ns(&user);
}

int port_thread_ran_ns(const struct port_thread *thread, int64_t *cpu_ns)
{
	(void)thread;
	(void)cpu_ns;
	return -ENOTSUP; /* GetThreadTimes counts in ticks of up to 15.6 ms */
}

int port_thread_time_open(int64_t tid, struct port_thread_time **time_out)
{
	(void)tid;
	(void)time_out;
	return -ENOTSUP; /* GetThreadTimes counts in ticks of up to 15.6 ms */
}

void port_thread_time_close(struct port_thread_time *time)
{
	(void)time;
}

int port_thread_time_read(const struct port_thread_time *time, int64_t *cpu_ns)
{
	(void)time;
	(void)cpu_ns;
	return -ENOTSUP;
}

int port_cpu_account_open(const char *path, struct port_cpu_account **account_out)
{
	(void)path;
	(void)account_out;
	return -ENOTSUP;
}

void port_cpu_account_close(struct port_cpu_account *account)
{
	(void)account;
}

int port_cpu_account_read(const struct port_cpu_account *account, int cpu, int64_t *cpu_ns)
{
	(void)account;
	(void)cpu;
	(void)cpu_ns;
	return -ENOTSUP;
}

static DWORD_PTR allowed_cpus(void)
{
	DWORD_PTR process = 0, system = 0;

	return GetProcessAffinityMask(GetCurrentProcess(), &process, &system) && process ? process : 1;
}

int port_cpu_count(void)
{
	return __builtin_popcountll(allowed_cpus());
}

int port_cpu_at(int index)
{
	DWORD_PTR mask = allowed_cpus();

	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if ((mask >> cpu & 1) && index-- == 0)
			return cpu;
	}
	return PORT_CPU_ANY;
}

int port_cpu_steal_ns(int cpu, int64_t *steal_ns)
{
	(void)cpu;
	(void)steal_ns;
	return -ENOTSUP;
}

int port_cpu_interrupts_ns(int cpu, int64_t *interrupts_ns)
{
	(void)cpu;
	(void)interrupts_ns;
	return -ENOTSUP;
}
