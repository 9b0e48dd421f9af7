/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: this machine's clocks as they are read, in nanoseconds, and its random numbers. */
#ifndef BW_PORT_TIME_H
#define BW_PORT_TIME_H

#include <stdint.h>

/** CLOCK_REALTIME: UTC since 1970, may be stepped. */
int64_t time_realtime_ns(void);
/** CLOCK_MONOTONIC: never stepped; epoch undefined. */
int64_t time_monotonic_ns(void);
/** TAI - UTC as the kernel has it, or 37 where it was never told. */
int time_tai_utc_s(void);

/** Draw a seed of 63 bits. @return 0 or -errno */
int time_seed_draw(int64_t *seed);

#endif
