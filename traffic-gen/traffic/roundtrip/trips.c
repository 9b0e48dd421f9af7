/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/roundtrip/trips.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct trip *trips_create(size_t capacity)
{
	struct trip *trips = malloc(capacity * sizeof(*trips));

	/* A first touch of a page must not look like latency. */
	for (size_t i = 0; trips && i < capacity; i++) {
		trips[i] = (struct trip){
			.round_trip_ns = TRIP_UNKNOWN_NS,
			.residence_ns = TRIP_UNKNOWN_NS,
			.own_send_ns = TRIP_UNKNOWN_NS,
			.own_receive_ns = TRIP_UNKNOWN_NS,
			.known_delay_ns = TRIP_UNKNOWN_NS,
		};
	}
	return trips;
}

static void write_field(FILE *file, int64_t value_ns)
{
	fputc(',', file);
	if (value_ns != TRIP_UNKNOWN_NS)
		fprintf(file, "%" PRId64, value_ns);
}

int trips_write(FILE *file, const struct trip *trips, size_t count, int64_t tai_minus_realtime_ns)
{
	errno = 0;
	fputs("sequence,t1_local_tai_ns,round_trip_ns,residence_ns,own_send_ns,own_receive_ns,known_delay_ns\n", file);
	for (size_t i = 0; i < count && !ferror(file); i++) {
		if (!trips[i].sent || !trips[i].counts)
			continue;
		fprintf(file, "%zu", i);
		write_field(file, trips[i].t1_realtime_ns + tai_minus_realtime_ns);
		write_field(file, trips[i].round_trip_ns);
		write_field(file, trips[i].residence_ns);
		write_field(file, trips[i].own_send_ns);
		write_field(file, trips[i].own_receive_ns);
		write_field(file, trips[i].known_delay_ns);
		fputc('\n', file);
	}
	if (fflush(file) == 0 && !ferror(file))
		return 0;
	return errno ? -errno : -EIO;
}
