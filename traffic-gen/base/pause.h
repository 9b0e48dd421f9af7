/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses of random length, so that the samples fall on no beat of the machine. splitmix64; pure. */
#ifndef BW_PAUSE_H
#define BW_PAUSE_H

#include <stdint.h>

struct pause_lengths {
	uint64_t state; /* any seed at first */
};

/** The next length, evenly spread over 0..max_ns; max_ns < 2^32. */
static inline int64_t pause_next_ns(struct pause_lengths *lengths, int64_t max_ns)
{
	uint64_t z = (lengths->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return (int64_t)(((z >> 32) * ((uint64_t)max_ns + 1)) >> 32);
}

#endif
