/* SPDX-License-Identifier: Apache-2.0 */
#include "clock/compare/jumps.h"

#include <stdlib.h>
#include <string.h>

#define PPB INT64_C(1000000000)

void jumps_init(struct jumps *jumps, int64_t threshold_ns, int64_t gap_ns)
{
	memset(jumps, 0, sizeof(*jumps));
	jumps->threshold_ns = threshold_ns;
	jumps->gap_ns = gap_ns;
}

/* How far two samples of one level may be apart. */
static int64_t allowance_ns(const struct jumps *jumps, int64_t apart_ns, int64_t uncertainty_ns)
{
	double slewed_ns = (double)apart_ns * ((double)JUMPS_SLEW_PPB / (double)PPB);

	return jumps->threshold_ns + jumps->level_uncertainty_ns + uncertainty_ns + (apart_ns > 0 ? (int64_t)slewed_ns : 0);
}

static bool near(int64_t a_ns, int64_t b_ns, int64_t allowed_ns)
{
	int64_t difference_ns;

	/* Readings may be anything: no overflow. */
	if (__builtin_sub_overflow(a_ns, b_ns, &difference_ns))
		return false;
	return difference_ns <= allowed_ns && difference_ns >= -allowed_ns;
}

static void set_level(struct jumps *jumps, int64_t time_tai_ns, int64_t offset_ns, int64_t uncertainty_ns)
{
	jumps->level_ns = offset_ns;
	jumps->level_time_tai_ns = time_tai_ns;
	jumps->level_uncertainty_ns = uncertainty_ns;
	jumps->candidates = 0;
}

/* A sample on the level: follow it, unless it is so uncertain that it says nothing about the level. */
static void accept(struct jumps *jumps, int64_t time_tai_ns, int64_t offset_ns, int64_t uncertainty_ns)
{
	if (jumps->level_support < JUMPS_CONFIRM)
		jumps->level_support++;
	jumps->candidates = 0;
	if (uncertainty_ns <= jumps->threshold_ns / 2 || uncertainty_ns <= 2 * jumps->level_uncertainty_ns)
		set_level(jumps, time_tai_ns, offset_ns, uncertainty_ns);
}

static int64_t median_of_three(const int64_t values[JUMPS_CONFIRM])
{
	int64_t low = values[0] < values[1] ? values[0] : values[1], high = values[0] < values[1] ? values[1] : values[0];

	return values[2] < low ? low : values[2] > high ? high : values[2];
}

/* The candidates are the level now. When hardly a sample was on the old one, that was an outlier at the begin: no step. */
static void confirm(struct jumps *jumps, int64_t time_tai_ns, int64_t uncertainty_ns)
{
	int64_t level_ns = median_of_three(jumps->candidate_ns);

	if (jumps->level_support == JUMPS_CONFIRM) {
		if (jumps->step_count < JUMPS_STEPS_MAX)
			jumps->steps[jumps->step_count] = (struct jump_step){
				.time_tai_ns = jumps->candidate_time_tai_ns,
				.step_ns = level_ns - jumps->level_ns,
			};
		jumps->step_count++;
	}
	jumps->level_support = JUMPS_CONFIRM;
	set_level(jumps, time_tai_ns, level_ns, uncertainty_ns);
}

static void look_for_gap(struct jumps *jumps, int64_t time_tai_ns)
{
	int64_t passed_ns;

	if (__builtin_sub_overflow(time_tai_ns, jumps->last_time_tai_ns, &passed_ns) || passed_ns <= jumps->gap_ns)
		return;
	if (jumps->gap_count < JUMPS_GAPS_MAX)
		jumps->gaps[jumps->gap_count] = (struct jump_gap){ jumps->last_time_tai_ns, time_tai_ns };
	jumps->gap_count++;
}

void jumps_take(struct jumps *jumps, int64_t time_tai_ns, int64_t offset_ns, int64_t uncertainty_ns)
{
	_Static_assert(JUMPS_CONFIRM == 3, "median of three");

	if (jumps->started)
		look_for_gap(jumps, time_tai_ns);
	jumps->last_time_tai_ns = time_tai_ns;
	if (!jumps->started) {
		jumps->started = true;
		jumps->level_support = 1;
		set_level(jumps, time_tai_ns, offset_ns, uncertainty_ns);
		return;
	}
	if (near(offset_ns, jumps->level_ns,
		 allowance_ns(jumps, time_tai_ns - jumps->level_time_tai_ns, uncertainty_ns))) {
		accept(jumps, time_tai_ns, offset_ns, uncertainty_ns);
		return;
	}
	if (jumps->candidates && !near(offset_ns, jumps->candidate_ns[jumps->candidates - 1],
				       allowance_ns(jumps, time_tai_ns - jumps->candidate_last_tai_ns, uncertainty_ns)))
		jumps->candidates = 0;
	if (jumps->candidates == 0)
		jumps->candidate_time_tai_ns = time_tai_ns;
	jumps->candidate_last_tai_ns = time_tai_ns;
	jumps->candidate_ns[jumps->candidates++] = offset_ns;
	if (jumps->candidates == JUMPS_CONFIRM)
		confirm(jumps, time_tai_ns, uncertainty_ns);
}
