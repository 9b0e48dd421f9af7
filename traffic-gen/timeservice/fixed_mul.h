/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks times a rate, exactly: (a * b) >> 48 of the whole product of 128 bits, on processors with and without such a product. */
#ifndef BW_TIMESERVICE_FIXED_MUL_H
#define BW_TIMESERVICE_FIXED_MUL_H

#include <stdint.h>

enum { FIXED_MUL_SHIFT = 48 };

/** (a * b) >> 48 modulo 2^64, by products of 32 bits. */
static inline uint64_t fixed_mul_narrow(uint64_t a, uint64_t b)
{
	uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
	uint64_t low = a_low * b_low, cross = a_high * b_low, other = a_low * b_high, high = a_high * b_high;
	/* Bits 32.. of the product: at most 3 * (2^32 - 1), no carry is lost. */
	uint64_t middle = (low >> 32) + (uint32_t)cross + (uint32_t)other;

	high += (cross >> 32) + (other >> 32) + (middle >> 32);
	low = middle << 32 | (uint32_t)low;
	return high << (64 - FIXED_MUL_SHIFT) | low >> FIXED_MUL_SHIFT;
}

/** (a * b) >> 64, by products of 32 bits. */
static inline uint64_t fixed_mul_high_narrow(uint64_t a, uint64_t b)
{
	uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
	uint64_t cross = a_high * b_low, other = a_low * b_high;
	uint64_t middle = (a_low * b_low >> 32) + (uint32_t)cross + (uint32_t)other;

	return a_high * b_high + (cross >> 32) + (other >> 32) + (middle >> 32);
}

/** (a * b) >> 64: one instruction where there is a product of 128 bits. */
static inline uint64_t fixed_mul_high(uint64_t a, uint64_t b)
{
#if defined(__SIZEOF_INT128__)
	return (uint64_t)((unsigned __int128)a * b >> 64);
#else
	return fixed_mul_high_narrow(a, b);
#endif
}

/** (a * b) >> 48 modulo 2^64. */
static inline uint64_t fixed_mul(uint64_t a, uint64_t b)
{
#if defined(__SIZEOF_INT128__)
	return (uint64_t)((unsigned __int128)a * b >> FIXED_MUL_SHIFT);
#else
	return fixed_mul_narrow(a, b);
#endif
}

#endif
