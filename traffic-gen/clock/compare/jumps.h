/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds steps and gaps in a stream of samples. A step is a change of level that stays: single samples that lie far away
 * (a reading that was interrupted) are none, and what a clock may drift or be slewed between two samples, or what the
 * samples' own uncertainty explains, is none either. A gap is a time without a sample. Pure.
 */
#ifndef BW_CLOCK_JUMPS_H
#define BW_CLOCK_JUMPS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	JUMPS_STEPS_MAX = 1024,
	JUMPS_GAPS_MAX = 1024,
	JUMPS_CONFIRM = 3, /* so many samples in a row on the new level make a step */
};

#define JUMPS_SLEW_PPB INT64_C(500000) /* the kernel slews by at most 500 ppm; that is no step */

struct jump_step {
	int64_t time_tai_ns; /* of the first sample on the new level */
	int64_t step_ns;
};

struct jump_gap {
	int64_t from_tai_ns, to_tai_ns;
};

struct jumps {
	int64_t threshold_ns, gap_ns;
	bool started;
	int64_t last_time_tai_ns;
	int64_t level_ns, level_time_tai_ns; /* of the last sample that was no outlier, and certain enough */
	int64_t level_uncertainty_ns;
	int level_support;               /* samples that have agreed with it, up to JUMPS_CONFIRM */
	int candidates;                  /* samples that agree on another level */
	int64_t candidate_ns[JUMPS_CONFIRM], candidate_time_tai_ns;
	int64_t candidate_last_tai_ns;   /* time of the last of them */
	uint64_t step_count, gap_count;  /* all; the tables hold the first ones */
	struct jump_step steps[JUMPS_STEPS_MAX];
	struct jump_gap gaps[JUMPS_GAPS_MAX];
};

void jumps_init(struct jumps *jumps, int64_t threshold_ns, int64_t gap_ns);
/**
 * Look at the next sample.
 *
 * @param uncertainty_ns  by how much its offset may be wrong (half its window)
 */
void jumps_take(struct jumps *jumps, int64_t time_tai_ns, int64_t offset_ns, int64_t uncertainty_ns);
/** Number of findings that did not fit into a table of `room`. */
static inline uint64_t jumps_dropped(uint64_t count, uint64_t room)
{
	return count > room ? count - room : 0;
}

#endif
