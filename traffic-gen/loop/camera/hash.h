/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers by their place, not by their order: the same (seed, place) gives the same bits on every machine. splitmix64; pure. */
#ifndef BW_LOOP_HASH_H
#define BW_LOOP_HASH_H

#include <stdint.h>

/** The bits at a place of a seed's sequence. */
static inline uint64_t hash_at(uint64_t seed, uint64_t place)
{
	uint64_t z = seed + (place + 1) * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/** A number in low..high, both of them included; low <= high. */
static inline int32_t hash_between(uint64_t seed, uint64_t place, int32_t low, int32_t high)
{
	return (int32_t)(low + (int64_t)((hash_at(seed, place) >> 32) * (uint64_t)((int64_t)high - low + 1) >> 32));
}

#endif
