/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: clocks and the process. */
#include "port/port.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/time_units.h"

static volatile sig_atomic_t stop_requested; /* set by a signal handler: cannot be passed in */

static int64_t timespec_ns(const struct timespec *ts)
{
	return ts->tv_sec * NS_PER_S + ts->tv_nsec;
}

static struct timespec timespec_from_ns(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };

	if (ts.tv_nsec < 0) {
		ts.tv_sec--;
		ts.tv_nsec += NS_PER_S;
	}
	return ts;
}

static int64_t clock_now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts); /* cannot fail for the clocks used here */
	return timespec_ns(&ts);
}

static int clock_sleep_until_ns(clockid_t clock, int64_t deadline_ns)
{
	struct timespec ts = timespec_from_ns(deadline_ns);

	return -clock_nanosleep(clock, TIMER_ABSTIME, &ts, NULL);
}

static clockid_t clock_id(enum port_clock clock)
{
	return clock == PORT_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

int64_t port_clock_now_ns(enum port_clock clock)
{
	return clock_now_ns(clock_id(clock));
}

void port_tai_init(struct port_tai *tai, int fallback_tai_utc_s)
{
	struct timex timex = { .modes = 0 };

	tai->kernel_tai_utc_s = adjtimex(&timex) >= 0 ? timex.tai : 0;
	tai->tai_utc_s = tai->kernel_tai_utc_s ? tai->kernel_tai_utc_s : fallback_tai_utc_s;
	tai->add_ns = (tai->tai_utc_s - tai->kernel_tai_utc_s) * NS_PER_S;
}

int port_random(uint64_t *bits)
{
	return getrandom(bits, sizeof(*bits), 0) == (ssize_t)sizeof(*bits) ? 0 : -errno;
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
	return clock_now_ns(CLOCK_TAI) + tai->add_ns;
}

int64_t port_tai_from_realtime_ns(const struct port_tai *tai, int64_t realtime_ns)
{
	return realtime_ns + tai->tai_utc_s * NS_PER_S;
}

int port_clock_sleep_until_ns(enum port_clock clock, int64_t deadline_ns)
{
	return clock_sleep_until_ns(clock_id(clock), deadline_ns);
}

int port_sleep_ns(int64_t duration_ns)
{
	return clock_sleep_until_ns(CLOCK_MONOTONIC, clock_now_ns(CLOCK_MONOTONIC) + duration_ns);
}

int64_t port_clock_step_floor_ns(void)
{
	return 10000; /* what is left is the time between the two readings */
}

bool port_clocks_slew_together(void)
{
	return true;
}

int port_init(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	return sigaction(SIGPIPE, &ignore, NULL) || sigaction(SIGXFSZ, &ignore, NULL) ? -errno : 0;
}

static void on_stop_signal(int number)
{
	(void)number;
	stop_requested = 1;
}

void port_stop_install(void)
{
	struct sigaction action = { .sa_handler = on_stop_signal };

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool port_stop_requested(void)
{
	return stop_requested != 0;
}

int port_memory_lock(void)
{
	return mlockall(MCL_CURRENT | MCL_FUTURE) ? -errno : 0;
}

int port_cpus_keep_awake(void)
{
	const int32_t latency_us = 0;
	int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC); /* the request holds as long as the file is open */
	int err = 0;

	if (fd < 0)
		return errno == ENOENT ? -ENOTSUP : -errno;
	if (write(fd, &latency_us, sizeof(latency_us)) != sizeof(latency_us)) {
		err = -errno;
		close(fd);
	}
	return err;
}

uint64_t port_rss_bytes(void)
{
	unsigned long long size_pages, resident_pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &size_pages, &resident_pages) != 2)
		resident_pages = 0;
	fclose(file);
	return resident_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int port_directory_create(const char *path)
{
	struct stat status;

	if (mkdir(path, 0777) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (stat(path, &status))
		return -errno;
	return S_ISDIR(status.st_mode) ? 0 : -ENOTDIR;
}
