/* SPDX-License-Identifier: Apache-2.0 */
/* The line to the clock that the consumer stamps with, over clocks that the test plays: its rate, and a step. */
#include <errno.h>

#include "check.h"
#include "clock/source.h"
#include "config/options.h"
#include "traffic/receive/own_clock.h"

#define START_TAI_NS INT64_C(1800000000000000000)
#define READ_NS INT64_C(1000)     /* what a look at a clock takes */
#define OFFSET_NS INT64_C(250000)
#define STEP_NS INT64_C(300000)   /* small enough for a rate that might be believed */

enum { ROUNDS = 40, STEP_ROUND = 15 };

static struct own_clock clock_under_test;
static void (*thread_body)(void *);
static int64_t system_tai_ns, rate_ppb, told_step_ns;
static int round_number;
static int64_t rate_min_ppb, rate_max_ppb;

int64_t port_tai_now_ns(const struct port_tai *tai)
{
	(void)tai;
	return system_tai_ns += READ_NS;
}

int port_thread_start(const char *name, int priority, int cpu, void (*run)(void *), void *argument,
		      struct port_thread **thread_out)
{
	(void)name;
	(void)priority;
	(void)cpu;
	CHECK(argument == &clock_under_test);
	thread_body = run;
	*thread_out = NULL;
	return 0;
}

void port_thread_join(struct port_thread *thread)
{
	(void)thread;
}

/* Between two readings: look at the line, go on in time, and step the clock where it is time for that. */
int port_sleep_ns(int64_t duration_ns)
{
	struct twoway_line line = clockline_read(&clock_under_test.line);

	CHECK(line.valid);
	if (round_number > 0) {
		rate_min_ppb = line.rate_ppb < rate_min_ppb ? line.rate_ppb : rate_min_ppb;
		rate_max_ppb = line.rate_ppb > rate_max_ppb ? line.rate_ppb : rate_max_ppb;
	}
	system_tai_ns += duration_ns;
	if (++round_number == ROUNDS)
		atomic_store(&clock_under_test.stop, true);
	return 0;
}

static int read_clock(struct source *source, int64_t *tai_ns)
{
	int64_t now_tai_ns = system_tai_ns + READ_NS / 2; /* in the middle of the bracket */

	(void)source;
	*tai_ns = now_tai_ns + OFFSET_NS + (now_tai_ns - START_TAI_NS) / 1000 * rate_ppb / 1000000;
	if (told_step_ns && round_number >= STEP_ROUND)
		*tai_ns += STEP_NS;
	return 0;
}

static const struct source_kind kind = { .name = "played", .read = read_clock };

int source_open(struct source *source, const char *text, int tai_utc_s, char *error, size_t error_bytes)
{
	(void)text;
	(void)tai_utc_s;
	(void)error;
	(void)error_bytes;
	source->kind = &kind;
	return 0;
}

void source_close(struct source *source)
{
	(void)source;
}

int source_begin(struct source *source, char *error, size_t error_bytes)
{
	(void)source;
	(void)error;
	(void)error_bytes;
	return 0;
}

int source_end(struct source *source, char *error, size_t error_bytes)
{
	(void)source;
	(void)error;
	(void)error_bytes;
	return 0;
}

/* Told with the first reading after it, once. */
int64_t source_step_ns(const struct source *source)
{
	static int told_in;
	bool is_now = told_step_ns && round_number == STEP_ROUND && told_in != STEP_ROUND;

	(void)source;
	told_in = round_number;
	return is_now ? told_step_ns : 0;
}

int64_t source_reading_bound_ns(const struct source *source)
{
	(void)source;
	return 5000;
}

int source_exit_code(int err)
{
	return err;
}

const char *source_why(const struct source *source, int err)
{
	(void)source;
	(void)err;
	return "played";
}

/* Follow a clock of this rate for some seconds, with or without a step. */
static void follow(int64_t of_ppb, int64_t step_ns)
{
	static const struct port_tai tai = { .tai_utc_s = 37 };
	struct plan plan = { .correction = CORRECTION_NONE, .consumer_clock = "played" };

	system_tai_ns = START_TAI_NS;
	rate_ppb = of_ppb;
	told_step_ns = step_ns;
	round_number = 0;
	rate_min_ppb = INT64_MAX;
	rate_max_ppb = INT64_MIN;
	CHECK_INT(own_clock_open(&clock_under_test, &plan, &tai), EXIT_DONE);
	CHECK_INT(own_clock_start(&clock_under_test), 0);
	thread_body(&clock_under_test);
	CHECK_INT(clock_under_test.account.readings, ROUNDS);
	own_clock_close(&clock_under_test);
}

static void test_the_line_has_the_clocks_rate(void)
{
	follow(80000, 0);
	CHECK_INT(clock_under_test.account.steps, 0);
	CHECK_INT(clock_under_test.account.bound_max_ns, 5000);
	CHECK(rate_min_ppb > 70000 && rate_max_ppb < 90000);
	CHECK(clock_under_test.account.line_error_max_ns < 5000);
}

/* What lies before a step says nothing of the rate behind it, and the step itself is no error of a line. */
static void test_no_rate_over_a_step(void)
{
	follow(0, STEP_NS);
	CHECK_INT(clock_under_test.account.steps, 1);
	CHECK_INT(clock_under_test.account.last_step_ns, STEP_NS);
	CHECK_INT(rate_min_ppb, 0);
	CHECK_INT(rate_max_ppb, 0);
	CHECK(clock_under_test.account.line_error_max_ns < 5000);
	CHECK_INT(clockline_read(&clock_under_test.line).offset_ns, OFFSET_NS + STEP_NS);
}

int main(void)
{
	test_the_line_has_the_clocks_rate();
	test_no_rate_over_a_step();
	return check_result();
}
