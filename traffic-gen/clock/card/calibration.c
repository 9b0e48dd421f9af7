/* SPDX-License-Identifier: Apache-2.0 */
#include "clock/card/calibration.h"

#include <errno.h>

#include "base/time_units.h"

#define ROUND_TRIP_MAX (UINT64_C(1) << 38) /* a minute of the fastest counter */

struct counter_scale counter_scale_ticks(uint64_t hz)
{
	return (struct counter_scale){ .hz = hz };
}

struct counter_scale counter_scale_ns(uint64_t hz)
{
	return (struct counter_scale){
		.nanoseconds = true,
		.hz = hz,
		.whole = NS_PER_S % hz ? 0 : NS_PER_S / hz,
		.resolution = (NS_PER_S + hz - 1) / hz,
	};
}

double counter_scale_ns_per_unit(const struct counter_scale *scale)
{
	return scale->nanoseconds ? 1.0 : 1e9 / (double)scale->hz;
}

int calibration_take(struct calibration *calibration, uint64_t t1, uint64_t t2, uint64_t t3, uint64_t resolution)
{
	uint64_t round_trip = t3 - t1;

	if (round_trip > ROUND_TRIP_MAX) {
		calibration->refused++;
		return -EINVAL;
	}
	round_trip += resolution; /* the true t3 is up to that much later */
	if (calibration->exchanges++ && round_trip >= calibration->round_trip)
		return 0;
	calibration->round_trip = round_trip;
	calibration->offset = t2 - t1 - round_trip / 2;
	calibration->bound = (round_trip + 1) / 2;
	return 0;
}

bool calibration_differs(const struct calibration *a, const struct calibration *b)
{
	int64_t difference = (int64_t)(b->offset - a->offset);
	uint64_t distance = difference < 0 ? UINT64_C(0) - (uint64_t)difference : (uint64_t)difference;

	return distance > a->bound + b->bound;
}
