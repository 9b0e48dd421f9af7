/* SPDX-License-Identifier: Apache-2.0 */
/* The round trips of a measurement, one a request, in memory that is taken and touched before it. Pure. */
#ifndef BW_TRIPS_H
#define BW_TRIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TRIP_UNKNOWN_NS INT64_MIN

enum { TRIPS_MAX = 1000000 };

struct trip {
	int64_t t1_realtime_ns;
	int64_t round_trip_ns, residence_ns;  /* TRIP_UNKNOWN_NS: no reply that is used */
	int64_t own_send_ns, own_receive_ns;  /* TRIP_UNKNOWN_NS: the kernel has not stamped */
	int64_t known_delay_ns;               /* of both ends, as it was; TRIP_UNKNOWN_NS: the reflector does not say */
	bool sent, answered;                  /* answered also by a late reply, or one that cannot be */
	bool counts;                          /* it is none of a run-up */
};

/** @param capacity  1..TRIPS_MAX. @return NULL: no memory; the caller frees it */
struct trip *trips_create(size_t capacity);

/**
 * Write the trips that were sent and count as CSV, with a line of names.
 *
 * @param tai_minus_realtime_ns  added to t1
 * @return 0 or -errno
 */
int trips_write(FILE *file, const struct trip *trips, size_t count, int64_t tai_minus_realtime_ns);

#endif
