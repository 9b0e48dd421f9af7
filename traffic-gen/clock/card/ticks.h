/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of this machine's counter. */
#ifndef BW_CLOCK_TICKS_H
#define BW_CLOCK_TICKS_H

#include <stdint.h>

/**
 * Ticks per second of the processor's counter: what the architecture states, or else measured against
 * MONOTONIC_RAW for about 0.1 s, to some parts per million.
 *
 * @return 0: there is no counter
 */
uint64_t ticks_hz(void);

/** TAI, read between two readings of the counter, which are returned beside it. */
struct port_tai;
int64_t ticks_bracket(const struct port_tai *tai, uint64_t *before, uint64_t *after);

#endif
