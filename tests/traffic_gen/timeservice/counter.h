/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The counter of tests of the time service: the processor's, or, compiled with BWTIME_FAKE_COUNTER, nanoseconds of the system's
 * clock, where the processor's cannot be read (QEMU's user mode for ARM).
 */
#ifndef BW_TEST_TIMESERVICE_COUNTER_H
#define BW_TEST_TIMESERVICE_COUNTER_H

#include "port/port.h"
#include "port/port_clock.h"

#ifdef BWTIME_FAKE_COUNTER
uint64_t fake_counter_read(void);
uint32_t fake_counter_kind(void);

uint64_t fake_counter_read(void)
{
	return (uint64_t)port_clock_now_ns(PORT_CLOCK_MONOTONIC);
}

uint32_t fake_counter_kind(void)
{
	return PORT_COUNTER_TSC;
}

static inline uint64_t test_counter(void)
{
	return fake_counter_read();
}

static inline uint32_t test_counter_kind(void)
{
	return fake_counter_kind();
}
#else
static inline uint64_t test_counter(void)
{
	return port_counter_read();
}

static inline uint32_t test_counter_kind(void)
{
	return port_counter_kind();
}
#endif

#endif
