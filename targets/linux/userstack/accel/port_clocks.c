/* SPDX-License-Identifier: Apache-2.0 */
#include "port_clocks.h"

#include <time.h>

#include "base/time_units.h"

uint64_t clocks_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
}

uint64_t clocks_span_us(int64_t s, int64_t us)
{
	enum { LONG_S = INT32_MAX };

	return s < 0 ? 0 : s >= LONG_S ? CLOCKS_ENDLESS_US : (uint64_t)s * US_PER_S + (uint64_t)us;
}

uint64_t clocks_after_us(uint64_t span_us)
{
	return span_us == CLOCKS_ENDLESS_US ? UINT64_MAX : clocks_now_us() + span_us;
}

uint64_t clocks_realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}
