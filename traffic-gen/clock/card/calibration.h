/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offset of the host's counter to this machine's, from two-way exchanges over the page: t1 here, t2 on the host, t3
 * here. The host's stamp was taken between the two of ours, so that host - here lies in [t2 - t3, t2 - t1]; the shortest
 * exchange says most. Pure.
 */
#ifndef BW_CLOCK_CALIBRATION_H
#define BW_CLOCK_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

struct calibration {
	uint64_t offset;        /* host - here, in units of the host's counter, modulo 2^64 */
	uint64_t bound;         /* the true offset is at most this far away */
	uint64_t round_trip;    /* of the shortest exchange */
	uint64_t exchanges;     /* 0: there is no offset yet */
	uint64_t refused;       /* exchanges whose stamps cannot be */
};

/** Ticks of a counter as units of the host's counter: nanoseconds where they are no multiple of the ticks, else ticks. */
struct counter_scale {
	bool nanoseconds;
	uint64_t hz;     /* of the ticks */
	uint64_t whole;  /* nanoseconds a tick; 0: not a whole number */
	uint64_t resolution; /* in units: a reading may be this much before its instant */
};

/** Ticks that are taken as they are. */
struct counter_scale counter_scale_ticks(uint64_t hz);
/** Ticks that are turned into nanoseconds; 1 <= hz <= 10^9. */
struct counter_scale counter_scale_ns(uint64_t hz);

static inline uint64_t counter_scale_units(const struct counter_scale *scale, uint64_t ticks)
{
	if (!scale->nanoseconds)
		return ticks;
	if (scale->whole)
		return ticks * scale->whole;
	return ticks / scale->hz * UINT64_C(1000000000) + ticks % scale->hz * UINT64_C(1000000000) / scale->hz;
}

/** Nanoseconds of one unit. */
double counter_scale_ns_per_unit(const struct counter_scale *scale);

/**
 * Take an exchange.
 *
 * @param resolution  our stamps may be up to this much before their instants
 * @return 0, or -EINVAL (counted, not used): t3 is before t1, or more than a minute of any counter after it
 */
int calibration_take(struct calibration *calibration, uint64_t t1, uint64_t t2, uint64_t t3, uint64_t resolution);

/** True when two calibrations of the same pair of counters exclude each other. */
bool calibration_differs(const struct calibration *a, const struct calibration *b);

#endif
