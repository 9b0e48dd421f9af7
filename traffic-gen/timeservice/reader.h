/* SPDX-License-Identifier: Apache-2.0 */
/* A handle of the library, and its slow way: a new line, no line, no page. */
#ifndef BW_TIMESERVICE_READER_H
#define BW_TIMESERVICE_READER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "port/port_timeservice.h"
#include "timeservice/bwtime.h"
#include "timeservice/fixed_mul.h"
#include "timeservice/page.h"

/* The system's clock at a reading of the counter. */
struct past_look {
	uint64_t ticks; /* 0: none yet */
	int64_t realtime_ns, error_ns;
};

struct bwtime {
	/*
	 * The fast way: the segment of the line in which the counter was last. A time is
	 * segment_utc_ns + ((ticks - segment_ticks) << shift) * segment_mult / 2^64, which is exactly the line's own.
	 */
	const _Atomic uint32_t *sequence_at; /* of the page, or of `none` */
	uint32_t sequence;
	uint8_t shift;
	bool ordered, tell_steps;
	uint64_t segment_ticks;
	uint64_t segment_length;             /* in ticks; 0: the fast way is closed */
	int64_t segment_utc_ns;
	uint64_t segment_mult;
	int64_t last_utc_ns;                 /* INT64_MIN: none yet */
	uint64_t told_length;                /* of the segment, in ticks, up to which told holds; 0: to be calculated */
	struct bwtime_stamp told;            /* all of the next stamp but its times */
	int64_t low_ns, high_ns;             /* told's interval around its time */
	int64_t second_utc_ns;               /* the second that was last told in NTP's format, */
	uint64_t second_ntp;                 /* and what it is there; before 1970: none */
	/* the slow way */
	uint64_t told_step;                  /* ticks for which interval and U are calculated at a time */
	uint64_t usable;                     /* ticks from the line's base to its end; 0: it gives no time */
	struct timepage_line line;
	struct port_timepage file;
	_Atomic uint32_t none;
	uint64_t epoch, tried_ticks, retry_ticks;
	bool attached, tried, knows_epoch, blocked, stepped;
	int64_t step_ns;
	int result;
	const char *why;
	struct past_look past;
	char *path; /* NULL: the default */
};

/* The time at a distance from segment_ticks that lies within the segment. */
static inline int64_t utc_at(const struct bwtime *handle, uint64_t distance)
{
	return handle->segment_utc_ns + (int64_t)fixed_mul_high(distance << handle->shift, handle->segment_mult);
}

/** Set up a handle that is all zeros but for its path: it looks for a page at the first reading. */
void reader_init(struct bwtime *handle, unsigned int flags);
/**
 * Read where the fast way is closed: look at the page, or for it.
 *
 * @param line_utc_ns  what the line says, not yet held against earlier readings
 * @param ticks        receives the counter; just before the line begins, or in the segment
 * @return of enum bwtime_result; handle->why says more
 */
int reader_read_slow(struct bwtime *handle, int64_t *line_utc_ns, uint64_t *ticks);

#endif
