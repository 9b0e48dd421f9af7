/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: reading clocks. */
#define _GNU_SOURCE
#include "port_time.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/timex.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

enum { TAI_UTC_DEFAULT_S = 37 };

static int64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t time_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

int64_t time_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int time_tai_utc_s(void)
{
	struct timex tx = { .modes = 0 };

	return adjtimex(&tx) < 0 || !tx.tai ? TAI_UTC_DEFAULT_S : tx.tai;
}

int time_seed_draw(int64_t *seed)
{
	uint64_t bits;

	if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return -errno;
	*seed = (int64_t)(bits >> 1);
	return 0;
}
