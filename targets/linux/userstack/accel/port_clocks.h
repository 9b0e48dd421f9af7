/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of the machine that the library reads. */
#ifndef BW_ACCEL_CLOCKS_H
#define BW_ACCEL_CLOCKS_H

#include <stdint.h>

/** The time that all deadlines here are in: CLOCK_MONOTONIC. */
uint64_t clocks_now_us(void);
#define CLOCKS_ENDLESS_US UINT64_MAX
/** @return a timeout in µs; less than none is none, and what lasts for more than 68 years never ends */
uint64_t clocks_span_us(int64_t s, int64_t us);
/** @return the instant so long from now */
uint64_t clocks_after_us(uint64_t span_us);
uint64_t clocks_realtime_ns(void);

#endif
