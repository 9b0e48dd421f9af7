/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: threads and CPUs. */
#define _GNU_SOURCE
#include "port/port.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/time_units.h"

enum { STACK_BYTES = 256 * 1024, THREAD_NAME_BYTES = 16 };

struct port_thread {
	pthread_t thread;
	char name[THREAD_NAME_BYTES];
	int priority;
	int cpu;
	void (*run)(void *);
	void *argument;
	sem_t scheduled; /* posted once scheduling is filled in */
	struct port_scheduling scheduling;
};

struct port_thread_time {
	int file; /* /proc/TID/schedstat: time on a CPU in ns, time waiting for one, turns */
};

enum { ACCOUNT_BYTES_MAX = 16384 }; /* some 800 CPUs of 20 digits */

/* Of a CPU in /proc/stat: its times, and the room for the lines of all CPUs, which stand first. */
enum { CPU_HARD_INTERRUPTS = 5, CPU_SOFT_INTERRUPTS = 6, CPU_STOLEN = 7, CPU_TIMES = 8, STAT_BYTES_MAX = 65536 };

struct port_cpu_account {
	int file; /* cpuacct.usage_percpu: time in ns, CPU by CPU from 0 on */
};

static void note(struct port_scheduling *scheduling, const char *what, int err)
{
	size_t used = strlen(scheduling->note);

	snprintf(scheduling->note + used, sizeof(scheduling->note) - used, "%s%s: %s", used ? "; " : "", what,
		 strerror(err));
}

static void ask_for_cpu(struct port_thread *thread)
{
	cpu_set_t set;
	int err;

	thread->scheduling.cpu = PORT_CPU_ANY;
	if (thread->cpu == PORT_CPU_ANY)
		return;
	CPU_ZERO(&set);
	if (thread->cpu >= CPU_SETSIZE) {
		note(&thread->scheduling, "not pinned", EINVAL);
		return;
	}
	CPU_SET(thread->cpu, &set);
	err = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (err)
		note(&thread->scheduling, "not pinned", err);
	else
		thread->scheduling.cpu = thread->cpu;
}

static void ask_for_priority(struct port_thread *thread)
{
	struct sched_param parameter = { .sched_priority = thread->priority };
	int err;

	if (thread->priority == 0)
		return;
	err = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter);
	if (err) {
		note(&thread->scheduling, "no SCHED_FIFO", err);
		return;
	}
	thread->scheduling.fifo = true;
	thread->scheduling.priority = thread->priority;
}

static void ask_for_idle(struct port_thread *thread)
{
	const struct sched_param none = { .sched_priority = 0 };
	int err = pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);

	if (err)
		note(&thread->scheduling, "no SCHED_IDLE", err);
	else
		thread->scheduling.idle = true;
}

static void *thread_main(void *argument)
{
	struct port_thread *thread = argument;

	pthread_setname_np(pthread_self(), thread->name);
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* real-time threads have none; the fall-back has 50 us */
	ask_for_cpu(thread);
	if (thread->priority == PORT_PRIORITY_IDLE)
		ask_for_idle(thread);
	else
		ask_for_priority(thread);
	sem_post(&thread->scheduled);
	if (thread->priority != PORT_PRIORITY_IDLE || thread->scheduling.idle)
		thread->run(thread->argument);
	return NULL;
}

int port_thread_start(const char *name, int priority, int cpu, void (*run)(void *), void *argument,
		      struct port_thread **thread_out)
{
	struct port_thread *thread = calloc(1, sizeof(*thread));
	pthread_attr_t attributes;
	int err;

	if (!thread)
		return -ENOMEM;
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	thread->priority = priority;
	thread->cpu = cpu;
	thread->run = run;
	thread->argument = argument;
	sem_init(&thread->scheduled, 0, 0);
	err = pthread_attr_init(&attributes);
	if (err)
		goto free_thread;
	pthread_attr_setstacksize(&attributes, STACK_BYTES); /* all of it is locked: keep it small */
	err = pthread_create(&thread->thread, &attributes, thread_main, thread);
	pthread_attr_destroy(&attributes);
	if (err)
		goto free_thread;
	while (sem_wait(&thread->scheduled) && errno == EINTR)
		;
	*thread_out = thread;
	return 0;

free_thread:
	sem_destroy(&thread->scheduled);
	free(thread);
	return -err;
}

void port_thread_join(struct port_thread *thread)
{
	const struct sched_param none = { .sched_priority = 0 };

	if (thread->scheduling.idle)
		pthread_setschedparam(thread->thread, SCHED_OTHER, &none); /* refused: it ends later */
	pthread_join(thread->thread, NULL);
	sem_destroy(&thread->scheduled);
	free(thread);
}

const struct port_scheduling *port_thread_scheduling(const struct port_thread *thread)
{
	return &thread->scheduling;
}

int port_thread_set_cpus(const int *cpus, int count)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < count; i++) {
		if (cpus[i] >= 0 && cpus[i] < CPU_SETSIZE)
			CPU_SET(cpus[i], &set);
	}
	return -pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

void port_thread_yield(void)
{
	sched_yield();
}

int64_t port_thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts); /* cannot fail */
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int port_thread_ran_ns(const struct port_thread *thread, int64_t *cpu_ns)
{
	struct timespec ts;
	clockid_t clock;
	int err = pthread_getcpuclockid(thread->thread, &clock);

	if (err)
		return -err;
	if (clock_gettime(clock, &ts))
		return -ESRCH;
	*cpu_ns = ts.tv_sec * NS_PER_S + ts.tv_nsec;
	return 0;
}

/*
 * The CPU clock of a thread (pthread_getcpuclockid) can be read by its own process alone; its statistics by all. What a
 * thread has run is added to them when its CPU changes threads, and at each tick.
 */
int port_thread_time_open(int64_t tid, struct port_thread_time **time_out)
{
	struct port_thread_time *time;
	char path[64];
	int64_t cpu_ns;
	int err;

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/", tid);
	if (access(path, F_OK))
		return -ESRCH;
	time = malloc(sizeof(*time));
	if (!time)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%" PRId64 "/schedstat", tid);
	time->file = open(path, O_RDONLY | O_CLOEXEC);
	if (time->file < 0) {
		err = errno == ENOENT ? -ENOTSUP : -errno;
		goto free_time;
	}
	err = port_thread_time_read(time, &cpu_ns);
	if (!err && cpu_ns == 0)
		err = -ENOTSUP; /* a kernel that keeps no statistics writes zeros */
	if (err)
		goto close_file;
	*time_out = time;
	return 0;

close_file:
	close(time->file);
free_time:
	free(time);
	return err;
}

void port_thread_time_close(struct port_thread_time *time)
{
	close(time->file);
	free(time);
}

int port_thread_time_read(const struct port_thread_time *time, int64_t *cpu_ns)
{
	char text[64];
	ssize_t length = pread(time->file, text, sizeof(text) - 1, 0);

	if (length <= 0)
		return -ESRCH;
	text[length] = '\0';
	*cpu_ns = strtoll(text, NULL, 10);
	return 0;
}

int port_cpu_account_open(const char *path, struct port_cpu_account **account_out)
{
	struct port_cpu_account *account = malloc(sizeof(*account));
	int64_t cpu_ns;
	int err;

	if (!account)
		return -ENOMEM;
	account->file = open(path, O_RDONLY | O_CLOEXEC);
	if (account->file < 0) {
		err = -errno;
		goto free_account;
	}
	err = port_cpu_account_read(account, 0, &cpu_ns);
	if (err)
		goto close_file;
	*account_out = account;
	return 0;

close_file:
	close(account->file);
free_account:
	free(account);
	return err;
}

void port_cpu_account_close(struct port_cpu_account *account)
{
	close(account->file);
	free(account);
}

int port_cpu_account_read(const struct port_cpu_account *account, int cpu, int64_t *cpu_ns)
{
	char text[ACCOUNT_BYTES_MAX], *number = text, *end;
	ssize_t length = pread(account->file, text, sizeof(text) - 1, 0);

	if (length <= 0 || (size_t)length == sizeof(text) - 1)
		return -ENOENT;
	text[length] = '\0';
	for (int i = 0; i <= cpu; i++) {
		*cpu_ns = strtoll(number, &end, 10);
		if (end == number)
			return -ENOENT;
		number = end;
	}
	return 0;
}

static bool allowed_cpus(cpu_set_t *set)
{
	return sched_getaffinity(0, sizeof(*set), set) == 0;
}

int port_cpu_count(void)
{
	cpu_set_t set;

	return allowed_cpus(&set) ? CPU_COUNT(&set) : 1;
}

int port_cpu_at(int index)
{
	cpu_set_t set;

	if (!allowed_cpus(&set))
		return index;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set) && index-- == 0)
			return cpu;
	}
	return PORT_CPU_ANY;
}

/* Find the line of a CPU in /proc/stat and read its eight times. Return 0, or -ENOTSUP. */
static int read_cpu_times(int cpu, long long ticks[CPU_TIMES])
{
	char text[STAT_BYTES_MAX], name[16];
	int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	ssize_t length;
	const char *line;

	if (file < 0)
		return -ENOTSUP;
	length = read(file, text, sizeof(text) - 1);
	close(file);
	if (length <= 0)
		return -ENOTSUP;
	text[length] = '\0';
	snprintf(name, sizeof(name), "\ncpu%d ", cpu);
	line = strstr(text, name);
	if (!line)
		return -ENOTSUP;
	line += strlen(name);
	for (int i = 0; i < CPU_TIMES; i++) {
		char *end;

		ticks[i] = strtoll(line, &end, 10);
		if (end == line)
			return -ENOTSUP;
		line = end;
	}
	return 0;
}

int port_cpu_steal_ns(int cpu, int64_t *steal_ns)
{
	long long ticks[CPU_TIMES];
	int err = read_cpu_times(cpu, ticks);

	if (!err)
		*steal_ns = ticks[CPU_STOLEN] * (NS_PER_S / sysconf(_SC_CLK_TCK));
	return err;
}

/*
 * A kernel that charges interrupts to threads finds out at its ticks what a CPU does. Those are hard interrupts, and no other
 * one runs meanwhile: of hard interrupts it counts none. One that counts them apart has counted some soon after boot.
 */
int port_cpu_interrupts_ns(int cpu, int64_t *interrupts_ns)
{
	long long ticks[CPU_TIMES];
	int err = read_cpu_times(cpu, ticks);

	if (!err && !ticks[CPU_HARD_INTERRUPTS])
		err = -ENOTSUP;
	if (!err)
		*interrupts_ns = (ticks[CPU_HARD_INTERRUPTS] + ticks[CPU_SOFT_INTERRUPTS]) *
				 (NS_PER_S / sysconf(_SC_CLK_TCK));
	return err;
}
