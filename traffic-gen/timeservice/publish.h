/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an estimate to what readers see: a line that goes on where the last one is, small corrections slewed away, large ones stepped.
 * Pure.
 */
#ifndef BW_TIMESERVICE_PUBLISH_H
#define BW_TIMESERVICE_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "timeservice/estimate.h"
#include "timeservice/local.h"
#include "timeservice/page.h"

struct publish_settings {
	int64_t step_ns;       /* corrections beyond it are stepped */
	int64_t bound_max_ns;  /* a time that is less sure than that is none */
	int64_t slew_ppm;      /* fastest slew */
};

/* What is told beside the line. */
struct publish_words {
	uint32_t state, reason;
	int32_t leap, stratum, tai_utc_s;
	uint64_t now_ticks;
	uint64_t heard_ticks; /* of the last exchange with a server that is combined */
	bool disrupted;       /* time is withdrawn that was there: count it */
};

/** 10 ms, 100 ms, 500 ppm. */
struct publish_settings publish_default_settings(void);

/**
 * Make the next line.
 *
 * @param estimate   valid; offset of UTC against local time
 * @param now_ticks  from here on it holds
 * @param last       the line that readers have; NULL, or one without a time: none
 * @param next       receives the line; state: TIMEPAGE_UNSYNCHRONISED, reason TIMEPAGE_REASON_BOUND where the bound is too wide
 * @return the correction: UTC by the estimate less UTC by the last line; 0 without one
 */
int64_t publish_line(const struct publish_settings *settings, const struct local_time *local, const struct estimate_line *estimate,
		     uint64_t now_ticks, const struct timepage_line *last, const struct publish_words *words,
		     struct timepage_line *next);

/**
 * Say that there is no time, or what has become of the last one: the figures stay, so that the next line can go on from them.
 * TIMEPAGE_ENDED leaves a time that there was, and is not usable where there was none.
 */
void publish_withdraw(const struct timepage_line *last, const struct publish_words *words, struct timepage_line *next);

/** Does a line of this state give a time as long as it is usable? */
bool publish_gives_time(uint32_t state);

/** Can a next line go on from this one? */
bool publish_continues(const struct timepage_line *last);

#endif
