/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with points of every kind, for the tests and the benchmark of bw-events. What it did is on stdout, one JSON object. Windows
 * has neither forks nor signals of this kind.
 *
 *	count N            N events, tags from 0
 *	threads T N        T threads of N events each: tag = thread * 2^32 + number
 *	forks T N          T children likewise, and children of theirs
 *	signals N          N events, interrupted by as many signals as come, each handler one event
 *	data N             N events with bytes, as many as the tag modulo 150, each byte the tag's lowest
 *	values             a counter, a histogram, an interval
 *	until-killed       events until it is killed, or who started it has ended: each number is in the page on stdin once its call has
 *	                   returned
 *	pace N PER_S       N events, evenly, as near as the machine permits
 *	daemon N           closes all that is open, then N events
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifndef _WIN32
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#endif

#include "events/bwevents.h"

BW_EVENT_POINT(number, "probe", "number", "an event; tag: its number");
BW_EVENT_POINT(handler, "probe", "handler", "an event in a signal handler; tag: its number");
BW_EVENT_POINT(never, "other", "never", "is never reached");
BW_DATA_POINT(bytes, "probe", "bytes", "bytes", "an event with bytes; tag: its number");
BW_INTERVAL_POINT(pause_interval, "probe", "pause", "a sleep of 2 ms; tag: its number");
BW_COUNTER_POINT(total, "values", "total", "sum of what was added");
BW_HISTOGRAM_POINT(spread, "values", "spread", -10, 90, 50, "values from -20 to 99");

static volatile sig_atomic_t handled;

static void count_from(int64_t first, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		BW_EVENT(number, first + i);
}

struct share {
	pthread_t thread;
	int64_t first, count;
};

static void *count_share(void *argument)
{
	const struct share *share = argument;

	count_from(share->first, share->count);
	return NULL;
}

static void threads(int64_t thread_count, int64_t count)
{
	struct share *shares = thread_count > 0 ? calloc((size_t)thread_count, sizeof(*shares)) : NULL;

	for (int64_t i = 0; shares && i < thread_count; i++) {
		shares[i].first = i << 32;
		shares[i].count = count;
		pthread_create(&shares[i].thread, NULL, count_share, &shares[i]);
	}
	for (int64_t i = 0; shares && i < thread_count; i++)
		pthread_join(shares[i].thread, NULL);
	free(shares);
}

static void data(int64_t count)
{
	uint8_t all[150];

	for (int64_t i = 0; i < count; i++) {
		memset(all, (int)(i & 0xff), sizeof(all));
		BW_EVENT_DATA(bytes, i, all, (size_t)i % sizeof(all));
	}
}

static void values(void)
{
	const struct timespec pause_2ms = { 0, 2000000 };

	for (int64_t value = -20; value < 100; value++) {
		BW_ADD(total, value);
		BW_ADD(spread, value);
	}
	BW_LOG(total);
	BW_LOG(spread);
	BW_RESET(total);
	BW_ADD(total, 7);
	for (int64_t i = 0; i < 3; i++) {
		uint64_t began = BW_INTERVAL_BEGIN(pause_interval);

		nanosleep(&pause_2ms, NULL);
		BW_INTERVAL_END(pause_interval, began, i);
	}
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Bursts of 100, so that asking for the time is not what is measured; what was missed is caught up with. */
static void pace(int64_t count, int64_t per_s)
{
	int64_t began_ns = now_ns();

	for (int64_t i = 0; i < count; i += 100) {
		while (now_ns() < began_ns + i * (INT64_C(1000000000) / 1000) / (per_s / 1000)) {
		}
		count_from(i, count - i < 100 ? count - i : 100);
	}
}

#ifndef _WIN32
static void forks(int64_t children, int64_t count)
{
	for (int64_t i = 0; i < children; i++) {
		if (fork())
			continue;
		count_from((2 * i) << 32, count);
		if (!fork()) {
			count_from((2 * i + 1) << 32, count);
			_exit(0);
		}
		wait(NULL);
		_exit(0);
	}
	while (wait(NULL) > 0) {
	}
}

static void on_alarm(int signal_number)
{
	(void)signal_number;
	BW_EVENT(handler, handled);
	handled = handled + 1;
}

static void signals(int64_t count)
{
	const struct itimerval often = { { 0, 50 }, { 0, 50 } }, never_more = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	count_from(0, count);
	setitimer(ITIMER_REAL, &never_more, NULL);
}

static void until_killed(void)
{
	volatile uint64_t *done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, STDIN_FILENO, 0);

	if (done == MAP_FAILED || prctl(PR_SET_PDEATHSIG, SIGKILL))
		exit(5);
	for (uint64_t i = 0;; i++) {
		BW_EVENT(number, (int64_t)i);
		__atomic_store_n(done, i + 1, __ATOMIC_RELEASE);
	}
}

static void become_daemon(int64_t count)
{
	for (int fd = 3; fd < 256; fd++)
		close(fd);
	count_from(0, count);
}
#endif

int main(int argc, char **argv)
{
	int64_t first = argc > 2 ? strtoll(argv[2], NULL, 10) : 0, second = argc > 3 ? strtoll(argv[3], NULL, 10) : 0;
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "count"))
		count_from(0, first);
	else if (!strcmp(mode, "threads"))
		threads(first, second);
	else if (!strcmp(mode, "data"))
		data(first);
	else if (!strcmp(mode, "values"))
		values();
	else if (!strcmp(mode, "pace"))
		pace(first, second);
#ifndef _WIN32
	else if (!strcmp(mode, "forks"))
		forks(first, second);
	else if (!strcmp(mode, "signals"))
		signals(first);
	else if (!strcmp(mode, "until-killed"))
		until_killed();
	else if (!strcmp(mode, "daemon"))
		become_daemon(first);
#endif
	else
		return 2;
	if (argc < 1)
		BW_EVENT(never, 0);
	printf("{\"pid\": %d, \"handled\": %d}\n", (int)getpid(), (int)handled);
	return 0;
}
