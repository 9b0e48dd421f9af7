/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library for LD_PRELOAD that makes a program's reader late by a known time: what epoll has to say comes LATE_US later.
 * Compiled by bench_stacks_live.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

typedef int (*wait_function)(int, struct epoll_event *, int, int);
typedef int (*precise_function)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void find(const char *name, void *function, size_t size)
{
	void *found = dlsym(RTLD_NEXT, name);

	memcpy(function, &found, size);
}

static int late(int count)
{
	static long long late_ns;
	const long long begin_monotonic_ns = now_ns();

	if (!late_ns)
		late_ns = atoll(getenv("LATE_US")) * 1000;
	while (count > 0 && now_ns() < begin_monotonic_ns + late_ns)
		;
	return count;
}

int epoll_wait(int epoll, struct epoll_event *events, int capacity, int timeout_ms)
{
	static wait_function system_wait;

	if (!system_wait)
		find("epoll_wait", &system_wait, sizeof(system_wait));
	return late(system_wait(epoll, events, capacity, timeout_ms));
}

int epoll_pwait2(int epoll, struct epoll_event *events, int capacity, const struct timespec *timeout, const sigset_t *mask)
{
	static precise_function system_wait;

	if (!system_wait)
		find("epoll_pwait2", &system_wait, sizeof(system_wait));
	return late(system_wait(epoll, events, capacity, timeout, mask));
}
