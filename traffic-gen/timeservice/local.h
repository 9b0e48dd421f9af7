/* SPDX-License-Identifier: Apache-2.0 */
/* Local time of the time service: the counter in ns, at its nominal rate, from an origin. Exact whole numbers. */
#ifndef BW_TIMESERVICE_LOCAL_H
#define BW_TIMESERVICE_LOCAL_H

#include <stdint.h>

struct local_time {
	uint64_t origin_ticks;
	int64_t origin_local_ns;
	uint64_t hz; /* nominal, to 9 GHz */
};

static inline int64_t local_from_ticks(const struct local_time *local, uint64_t ticks)
{
	int64_t distance = (int64_t)(ticks - local->origin_ticks);
	uint64_t size = distance < 0 ? 0 - (uint64_t)distance : (uint64_t)distance;
	int64_t ns = (int64_t)(size / local->hz * UINT64_C(1000000000) + size % local->hz * UINT64_C(1000000000) / local->hz);

	return local->origin_local_ns + (distance < 0 ? -ns : ns);
}

static inline uint64_t local_to_ticks(const struct local_time *local, int64_t local_ns)
{
	int64_t distance_ns = local_ns - local->origin_local_ns;
	uint64_t size_ns = distance_ns < 0 ? 0 - (uint64_t)distance_ns : (uint64_t)distance_ns;
	uint64_t ticks = size_ns / UINT64_C(1000000000) * local->hz + size_ns % UINT64_C(1000000000) * local->hz / UINT64_C(1000000000);

	return local->origin_ticks + (distance_ns < 0 ? 0 - ticks : ticks);
}

#endif
