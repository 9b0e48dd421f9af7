/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers on the wire, the most significant byte first. */
#ifndef BW_BIG_ENDIAN_H
#define BW_BIG_ENDIAN_H

#include <stdint.h>

/** Read a number of 1..8 bytes. */
static inline uint64_t big_endian_get(const uint8_t *at, unsigned int bytes)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

/** Write the lowest 1..8 bytes of a number. */
static inline void big_endian_put(uint8_t *at, unsigned int bytes, uint64_t value)
{
	for (unsigned int i = bytes; i-- > 0; value >>= 8)
		at[i] = (uint8_t)value;
}

#endif
