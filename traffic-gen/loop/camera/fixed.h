/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integer arithmetic of the camera: pictures are the same bytes on every machine, so nothing here is floating point.
 * Lengths and places are in 1/256 pixel (_q8), of the world or of the picture. Pure.
 */
#ifndef BW_LOOP_FIXED_H
#define BW_LOOP_FIXED_H

#include <stdint.h>

/** Quotient rounded down, of negative numbers too; divisor > 0. */
static inline int64_t floor_div(int64_t value, int64_t divisor)
{
	return value / divisor - (value % divisor < 0);
}

static inline int64_t clamp(int64_t value, int64_t low, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/** What a rate amounts to after a time, rounded down. @param per_s  at most 2^29 either way  @param t_ns  not negative */
static inline int64_t amount_after(int64_t per_s, int64_t t_ns)
{
	const int64_t s_ns = INT64_C(1000000000);

	return per_s * (t_ns / s_ns) + floor_div(per_s * (t_ns % s_ns), s_ns);
}

/** The largest integer whose square is not more. @param value  not negative, less than 2^62 */
static inline int64_t square_root(int64_t value)
{
	int64_t root = 0;

	for (int64_t bit = INT64_C(1) << 30; bit; bit /= 2)
		if ((root + bit) * (root + bit) <= value)
			root += bit;
	return root;
}

/** Sine of an angle in 1/2^32 turn, in 1/2^30; off by 2e-7 at most. */
int64_t sine_q30(uint32_t angle);
static inline int64_t cosine_q30(uint32_t angle)
{
	return sine_q30(angle + UINT32_C(0x40000000));
}

#endif
