/* SPDX-License-Identifier: Apache-2.0 */
#include "clock/card/ticks.h"

#include "port/port.h"
#include "port/port_clock.h"

#define MEASURE_NS INT64_C(100000000)

enum { BRACKETS = 16 };

/* One point of the counter against MONOTONIC_RAW: the middle of the shortest of some brackets. */
static int64_t measure_point(uint64_t *ticks)
{
	uint64_t shortest = UINT64_MAX;
	int64_t point_monotonic_raw_ns = 0;

	for (int i = 0; i < BRACKETS; i++) {
		uint64_t before = port_counter_before();
		int64_t now_monotonic_raw_ns = port_kernel_clock_now_ns(PORT_KERNEL_MONOTONIC_RAW);
		uint64_t after = port_counter_after();

		if (after - before < shortest) {
			shortest = after - before;
			*ticks = before + shortest / 2;
			point_monotonic_raw_ns = now_monotonic_raw_ns;
		}
	}
	return point_monotonic_raw_ns;
}

uint64_t ticks_hz(void)
{
	int64_t first_monotonic_raw_ns, last_monotonic_raw_ns;
	uint64_t hz, first = 0, last = 0;

	if (port_counter_kind() == PORT_COUNTER_NONE)
		return 0;
	hz = port_counter_stated_hz();
	if (hz)
		return hz;
	first_monotonic_raw_ns = measure_point(&first);
	port_sleep_ns(MEASURE_NS);
	last_monotonic_raw_ns = measure_point(&last);
	return (uint64_t)((double)(last - first) * 1e9 /
			  (double)(last_monotonic_raw_ns - first_monotonic_raw_ns) + 0.5);
}

int64_t ticks_bracket(const struct port_tai *tai, uint64_t *before, uint64_t *after)
{
	int64_t now_tai_ns;

	*before = port_counter_before();
	now_tai_ns = port_tai_now_ns(tai);
	*after = port_counter_after();
	return now_tai_ns;
}
