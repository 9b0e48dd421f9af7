/* SPDX-License-Identifier: Apache-2.0 */
/* From stamps of the kernel to the counter: what they may be wrong by is told, and what cannot be is refused. */
#include "check.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "timeservice/bracket.h"

static const struct bracket before = { .local_ns = 1000000, .error_ns = 40, .kernel_ns = 500000000 };
static const struct bracket after = { .local_ns = 3000000, .error_ns = 160, .kernel_ns = 502000100 };

static void test_map(void)
{
	struct bracket stepped = after;
	int64_t local_ns = 0, error_ns = 0;

	CHECK(bracket_map(&before, &after, 501000050, &local_ns, &error_ns));
	CHECK_INT(local_ns, 2000000);
	CHECK_INT(error_ns, 160);
	CHECK(bracket_map(&before, &after, before.kernel_ns, &local_ns, &error_ns));
	CHECK_INT(local_ns, before.local_ns);
	CHECK(!bracket_map(&before, &after, before.kernel_ns - 1, &local_ns, &error_ns));
	CHECK(!bracket_map(&before, &after, after.kernel_ns + 1, &local_ns, &error_ns));
	CHECK(!bracket_map(&before, &after, INT64_MAX, &local_ns, &error_ns)); /* of a card's own clock */
	stepped.kernel_ns += 5000;
	CHECK(!bracket_map(&before, &stepped, 501000000, &local_ns, &error_ns));
	CHECK(!bracket_map(&after, &before, 501000000, &local_ns, &error_ns));
}

/* What is read is of the clock by which this system stamps, and by how much its stamps are cut off is a part of the error. */
static void test_read(void)
{
	struct local_time local = { .origin_ticks = port_counter_read(), .origin_local_ns = 1000000000, .hz = 1000000000 };
	struct bracket bracket = { .kernel_ns = 0 };
	int64_t step_ns, low_ns;
	enum port_clock clock = port_stamp_clock(&step_ns);

	CHECK(step_ns >= 1);
	low_ns = port_clock_now_ns(clock);
	bracket_read(&local, &bracket);
	CHECK(bracket.kernel_ns >= low_ns && bracket.kernel_ns <= port_clock_now_ns(clock));
	CHECK(bracket.error_ns >= step_ns);
}

int main(void)
{
	CHECK_INT(port_init(), 0);
	test_map();
	if (port_counter_kind() != PORT_COUNTER_NONE)
		test_read();
	return check_result();
}
