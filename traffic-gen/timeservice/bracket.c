/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/bracket.h"

#include <math.h>

#include "port/port.h"
#include "port/port_clock.h"

enum { READINGS = 3 };

#define RATE_LARGEST 1e-3 /* of the stamps' clock against the counter */

void bracket_read(const struct local_time *local, struct bracket *bracket)
{
	uint64_t best_ticks = UINT64_MAX;
	int64_t step_ns;
	enum port_clock clock = port_stamp_clock(&step_ns);

	for (int i = 0; i < READINGS; i++) {
		uint64_t before = port_counter_read();
		int64_t kernel_ns = port_clock_now_ns(clock);
		uint64_t after = port_counter_read();

		if (after - before >= best_ticks)
			continue;
		best_ticks = after - before;
		bracket->kernel_ns = kernel_ns;
		bracket->local_ns = local_from_ticks(local, before + best_ticks / 2);
	}
	bracket->error_ns = (int64_t)((double)best_ticks * 5e8 / (double)local->hz) + step_ns;
}

bool bracket_map(const struct bracket *before, const struct bracket *after, int64_t stamp_kernel_ns, int64_t *local_ns,
		 int64_t *error_ns)
{
	int64_t span_local_ns = after->local_ns - before->local_ns;
	int64_t span_kernel_ns = after->kernel_ns - before->kernel_ns;
	int64_t into_kernel_ns = stamp_kernel_ns - before->kernel_ns;
	int64_t errors_ns = before->error_ns + after->error_ns;

	if (span_local_ns <= 0 || span_kernel_ns <= 0 || into_kernel_ns < 0 || into_kernel_ns > span_kernel_ns)
		return false;
	if (fabs((double)(span_kernel_ns - span_local_ns)) > (double)errors_ns + RATE_LARGEST * (double)span_local_ns)
		return false;
	*local_ns = before->local_ns + llround((double)into_kernel_ns / (double)span_kernel_ns * (double)span_local_ns);
	*error_ns = before->error_ns > after->error_ns ? before->error_ns : after->error_ns;
	return true;
}
