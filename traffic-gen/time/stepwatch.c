/* SPDX-License-Identifier: Apache-2.0 */
#include "time/stepwatch.h"

#include <string.h>

enum { READINGS = 8 };

/*
 * Measure TAI - MONOTONIC: of several readings of MONOTONIC, TAI, MONOTONIC the tightest one. Half of its width
 * bounds the error; a thread that is preempted in one reading gets another.
 */
static int64_t measure_ns(const struct port_tai *tai, int64_t *error_ns)
{
	int64_t best_width_ns = INT64_MAX, difference_ns = 0;

	for (int i = 0; i < READINGS; i++) {
		int64_t before_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int64_t tai_ns = port_tai_now_ns(tai);
		int64_t width_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) - before_monotonic_ns;

		if (width_ns < best_width_ns) {
			best_width_ns = width_ns;
			difference_ns = tai_ns - before_monotonic_ns - width_ns / 2;
		}
	}
	*error_ns = best_width_ns / 2;
	return difference_ns;
}

void stepwatch_init(struct stepwatch *watch, const struct port_tai *tai)
{
	int64_t error_ns;

	memset(watch, 0, sizeof(*watch));
	watch->follow = !port_clocks_slew_together();
	watch->base_ns = measure_ns(tai, &error_ns);
	watch->floor_ns = port_clock_step_floor_ns() + error_ns;
}

void stepwatch_examine(struct stepwatch *watch, const struct port_tai *tai)
{
	int64_t error_ns;
	int64_t difference_ns = measure_ns(tai, &error_ns);
	int64_t step_ns = difference_ns - watch->base_ns;
	int64_t magnitude_ns = step_ns < 0 ? -step_ns : step_ns;

	if (magnitude_ns <= watch->floor_ns + error_ns)
		return; /* the thread was preempted between the two readings */
	if (watch->count < STEPWATCH_STEPS_MAX)
		watch->steps[watch->count] = (struct clock_step){ port_tai_now_ns(tai), step_ns };
	watch->count++;
	watch->base_ns = difference_ns;
}
