/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter as the reader library reads it.
 *
 * Plain: on x86 a bare RDTSC. The sequence lock needs no more: a line that was replaced while the counter was read still tells
 * the truth by its own bound. The processor may however execute it while loads that precede are still under way, so that "I saw X,
 * then I read the time" can be wrong by the length of such a load. Ordered: after all loads that precede, as the kernel's
 * clock_gettime reads it. Neither waits for stores. On ARM both are ordered.
 */
#ifndef BW_TIMESERVICE_COUNTER_NOW_H
#define BW_TIMESERVICE_COUNTER_NOW_H

#include <stdbool.h>
#include <stdint.h>

#include "port/port_clock.h"

#ifdef BWTIME_FAKE_COUNTER
/* Of the test that is compiled with it. */
uint64_t fake_counter_read(void);
uint32_t fake_counter_kind(void);

static inline uint64_t counter_now(bool ordered)
{
	(void)ordered;
	return fake_counter_read();
}

static inline uint32_t counter_now_kind(void)
{
	return fake_counter_kind();
}

static inline uint64_t counter_now_hz(void)
{
	return 0;
}
#else
static inline uint64_t counter_now(bool ordered)
{
	return ordered ? port_counter_after() : port_counter_before();
}

static inline uint32_t counter_now_kind(void)
{
	return port_counter_kind();
}

static inline uint64_t counter_now_hz(void)
{
	return port_counter_stated_hz();
}
#endif

#endif
