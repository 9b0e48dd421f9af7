/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: what processor and kernel say of the counter. */
#define _GNU_SOURCE
#include "port/port_timeservice.h"

#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

enum { POWER_LEAF = 0x80000007, INVARIANT_BIT = 8 };

bool port_counter_invariant(void)
{
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid(POWER_LEAF, &eax, &ebx, &ecx, &edx) && (edx >> INVARIANT_BIT & 1);
}
#else
bool port_counter_invariant(void)
{
	return true;
}
#endif

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	return clock_gettime(clock, &now) ? 0 : now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t port_suspended_ns(void)
{
	int64_t before_ns = clock_ns(CLOCK_MONOTONIC), boot_ns = clock_ns(CLOCK_BOOTTIME), after_ns = clock_ns(CLOCK_MONOTONIC);

	return boot_ns - (before_ns + (after_ns - before_ns) / 2);
}
