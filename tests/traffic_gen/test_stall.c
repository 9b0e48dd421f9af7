/* SPDX-License-Identifier: Apache-2.0 */
/** Bookkeeping of stalls: thresholds, deadlines that passed, and the time that windows cover together. */
#include "traffic/witness/stall.h"

#include "check.h"
#include "random.h"

static void check_log(void)
{
	const struct stall_shares none = { 0 }, some = { .target_ran_ns = 40, .unclaimed_ns = 7 };
	struct stall_log log;

	CHECK_INT(stall_log_init(&log, 3, 100, 2), 0);
	stall_log_take(&log, 100, 1000, none); /* at the threshold: none */
	CHECK_INT(log.stalls, 0);
	stall_log_take(&log, 101, 2000, none);
	stall_log_take(&log, 500, 3000, some);
	stall_log_take(&log, 200, 4000, none); /* finds no room */
	CHECK_INT(log.samples, 4);
	CHECK_INT(log.stalls, 3);
	CHECK_INT(log.stalled_ns, 801);
	CHECK_INT(log.max_ns, 500);
	CHECK_INT(log.window_count, 2);
	CHECK_INT(log.windows[1].start_tai_ns, 2500);
	CHECK_INT(log.windows[1].end_tai_ns, 3000);
	CHECK_INT(log.windows[1].shares.target_ran_ns, 40);
	CHECK_INT(log.windows[1].shares.unclaimed_ns, 7);
	CHECK_INT(log.windows[1].cpu, 3);
	CHECK_INT(log.dropped, 1);
	CHECK_INT(log.dropped_ns, 200);
	stall_log_release(&log);
}

static void check_deadlines(void)
{
	CHECK_INT(stall_next_deadline_monotonic_ns(1000, 500, 1000), 1500);
	CHECK_INT(stall_next_deadline_monotonic_ns(1000, 500, 900), 1500);
	CHECK_INT(stall_next_deadline_monotonic_ns(1000, 500, 1499), 1500);
	CHECK_INT(stall_next_deadline_monotonic_ns(1000, 500, 1500), 2000);
	CHECK_INT(stall_next_deadline_monotonic_ns(1000, 500, 9999), 10000);
}

/* The union against a line of marks. */
static void check_union(uint64_t seed)
{
	struct random random = { seed };
	struct stall_window windows[20];
	char marks[256] = { 0 };
	int64_t expected = 0;
	size_t count = (size_t)random_between(&random, 0, 20);

	for (size_t i = 0; i < count; i++) {
		windows[i].cpu = (int)random_between(&random, 0, 3);
		windows[i].start_tai_ns = random_between(&random, 0, 200);
		windows[i].end_tai_ns = windows[i].start_tai_ns + random_between(&random, 0, 50);
		for (int64_t at = windows[i].start_tai_ns; at < windows[i].end_tai_ns; at++)
			marks[at] = 1;
	}
	for (size_t at = 0; at < sizeof(marks); at++)
		expected += marks[at];
	CHECK_INT(stall_union_ns(windows, count), expected);
	for (size_t i = 1; i < count; i++)
		CHECK(windows[i - 1].start_tai_ns <= windows[i].start_tai_ns);
}

int main(void)
{
	check_log();
	check_deadlines();
	for (uint64_t seed = 1; seed <= 2000; seed++)
		check_union(seed);
	return check_result();
}
