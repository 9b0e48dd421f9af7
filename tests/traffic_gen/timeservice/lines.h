/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Lines that all tell the same time, by figures that are far apart: a mixture of two of them tells a time that is off by a
 * tenth of a second or more, or figures that do not belong together.
 */
#ifndef BW_TEST_TIMESERVICE_LINES_H
#define BW_TEST_TIMESERVICE_LINES_H

#include "timeservice/bwtime.h"
#include "timeservice/fixed_mul.h"
#include "timeservice/page.h"

#define LINES_RATE (UINT64_C(7) << 44)              /* 0.4375 ns a tick */
#define LINES_UTC_NS (INT64_C(1) << 60)
#define LINES_APART_TICKS (UINT64_C(1) << 30)
enum { LINES_KINDS = 1000, LINES_BOUND_NS = 1000, LINES_ROUNDING_NS = 4 };

/** What every line tells. */
static inline int64_t lines_utc_ns(uint64_t ticks)
{
	return LINES_UTC_NS + (int64_t)fixed_mul(ticks + (UINT64_C(1) << 50), LINES_RATE);
}

/** Line number k, for a counter that stands at ticks now. */
static inline struct timepage_line lines_make(uint64_t k, uint64_t ticks)
{
	uint64_t kind = k % LINES_KINDS + 1, base = ticks - kind * LINES_APART_TICKS, settled = base + kind * (LINES_APART_TICKS / 2);
	uint64_t mult = LINES_RATE + (k % 7) * (LINES_RATE >> 13);

	return (struct timepage_line){
		.base_ticks = base,
		.base_utc_ns = lines_utc_ns(settled) - (int64_t)fixed_mul(settled - base, mult),
		.mult = mult,
		.settled_ticks = settled,
		.settled_mult = LINES_RATE,
		.low_ns = (int64_t)kind * LINES_BOUND_NS,
		.high_ns = (int64_t)kind * LINES_BOUND_NS,
		.usable_until_ticks = ticks + (UINT64_C(1) << 50),
		.epoch = 7,
		.state = k % 2 ? TIMEPAGE_HOLDOVER : TIMEPAGE_SYNCHRONISED,
		.leap = (int32_t)(k % 4),
		.stratum = (int32_t)(k % 16),
		.tai_utc_s = (int32_t)kind,
	};
}

/** True when a stamp is of one line. before, after: the counter around the reading. */
static inline int lines_whole(const struct bwtime_stamp *stamp, uint64_t before, uint64_t after)
{
	uint32_t k = (uint32_t)stamp->tai_utc_s - 1;
	int64_t rest_ns = stamp->bound_ns - (int64_t)stamp->tai_utc_s * LINES_BOUND_NS;

	return stamp->utc_ns >= lines_utc_ns(before) - LINES_ROUNDING_NS && stamp->utc_ns <= lines_utc_ns(after) + LINES_ROUNDING_NS &&
	       rest_ns >= 0 && rest_ns <= (int64_t)2 * LINES_ROUNDING_NS && stamp->epoch == 7 && k < LINES_KINDS &&
	       stamp->leap == (int32_t)(k % 4) && stamp->state == (k % 2 ? TIMEPAGE_HOLDOVER : TIMEPAGE_SYNCHRONISED);
}

/** True when all of a line that was copied is of one. */
static inline int lines_copied_whole(const struct timepage_line *line)
{
	uint32_t k = (uint32_t)line->tai_utc_s - 1;

	return k < LINES_KINDS && line->low_ns == (int64_t)line->tai_utc_s * LINES_BOUND_NS && line->high_ns == line->low_ns &&
	       line->leap == (int32_t)(k % 4) && line->settled_ticks - line->base_ticks == (k + 1) * (LINES_APART_TICKS / 2) &&
	       timepage_utc_ns(line, line->settled_ticks) - lines_utc_ns(line->settled_ticks) <= LINES_ROUNDING_NS;
}

#endif
