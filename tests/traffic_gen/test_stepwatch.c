/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the real clock would harm the machine: here the way in which TAI is read jumps, which is the same to the watch. */
#include "check.h"
#include "time/stepwatch.h"

enum { READINGS = 20000 };

static void test_no_false_alarm(void)
{
	struct port_tai tai;
	struct stepwatch watch;

	port_tai_init(&tai, 37);
	stepwatch_init(&watch, &tai);
	for (int i = 0; i < READINGS; i++)
		stepwatch_tai_now_ns(&watch, &tai);
	CHECK_INT(watch.count, 0);
}

static void test_step(int64_t step_ns)
{
	struct port_tai tai;
	struct stepwatch watch;
	int64_t error_ns;

	port_tai_init(&tai, 37);
	stepwatch_init(&watch, &tai);
	stepwatch_tai_now_ns(&watch, &tai);
	tai.add_ns += step_ns;
	stepwatch_tai_now_ns(&watch, &tai);
	stepwatch_tai_now_ns(&watch, &tai);
	CHECK_INT(watch.count, 1);
	error_ns = watch.steps[0].step_ns - step_ns;
	CHECK_THAT(error_ns <= watch.floor_ns && error_ns >= -watch.floor_ns, "a step of %" PRId64 " ns was taken for %" PRId64,
		   step_ns, watch.steps[0].step_ns);
}

static void test_many_steps(void)
{
	struct port_tai tai;
	struct stepwatch watch;

	port_tai_init(&tai, 37);
	stepwatch_init(&watch, &tai);
	for (int i = 0; i < 2 * STEPWATCH_STEPS_MAX; i++) {
		tai.add_ns += 50000000;
		stepwatch_tai_now_ns(&watch, &tai);
	}
	CHECK_INT(watch.count, 2 * STEPWATCH_STEPS_MAX);
}

int main(void)
{
	test_no_false_alarm();
	test_step(3000000);
	test_step(-3000000);
	test_step(INT64_C(37) * 1000000000);
	test_many_steps();
	return check_result();
}
