/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of the machine that the library reads. */
#ifndef BW_ACCEL_CLOCKS_H
#define BW_ACCEL_CLOCKS_H

#include <stdint.h>

/** The time that all deadlines here are in: CLOCK_MONOTONIC. */
uint64_t clocks_now_us(void);
uint64_t clocks_realtime_ns(void);

#endif
