/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/camera/fixed.h"

/* Taylor's series to the eleventh power, over a quarter of a turn. */
int64_t sine_q30(uint32_t angle)
{
	static const int64_t one = INT64_C(1) << 30, half_pi_q30 = 1686629713;
	static const int divisors[] = { 110, 72, 42, 20, 6 };
	int64_t quarter = angle & UINT32_C(0x3fffffff), x, square, factor = one;

	if (angle & UINT32_C(0x40000000))
		quarter = one - quarter;
	x = quarter * half_pi_q30 / one;
	square = x * x / one;
	for (unsigned int i = 0; i < sizeof(divisors) / sizeof(divisors[0]); i++)
		factor = one - square * factor / one / divisors[i];
	x = x * factor / one;
	if (x > one)
		x = one;
	return angle & UINT32_C(0x80000000) ? -x : x;
}
