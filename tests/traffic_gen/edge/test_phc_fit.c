/* SPDX-License-Identifier: Apache-2.0 */
/* The line through readings of a PHC: how near it comes to the truth, and that it starts anew when the PHC is set. */
#include <errno.h>

#include "check.h"
#include "edge/device/phc_fit.h"
#include "random.h"

#define NS_PER_TICK 0.4347828
#define PHC_NS INT64_C(1800000000000000000)
#define PERIOD_TICKS UINT64_C(115000000) /* 50 ms */

enum { BURST = 12 };

static struct phc_fit fit;
static struct random noise;
static uint64_t counter;
static double phc_ns, rate; /* the truth at `counter`, after PHC_NS */

static void pass(uint64_t ticks)
{
	counter += ticks;
	phc_ns += (double)ticks * rate;
}

/* Read the PHC in brackets of random length, alike on both sides as far as one knows. */
static int burst(struct card_line *line)
{
	uint64_t begin = counter;

	for (int i = 0; i < BURST; i++) {
		uint64_t before = counter;
		int64_t read_phc_ns;

		pass(2000 + (uint64_t)random_exponential(&noise, 1500));
		read_phc_ns = PHC_NS + (int64_t)floor(phc_ns);
		pass(2000 + (uint64_t)random_exponential(&noise, 1500));
		CHECK_INT(phc_fit_take(&fit, before, read_phc_ns, counter), 0);
	}
	CHECK_INT(phc_fit_take(&fit, counter, PHC_NS, counter - 1), -EINVAL);
	pass(PERIOD_TICKS - (counter - begin));
	return phc_fit_line(&fit, line);
}

/* How far a line is off now. A floor of the clock is half a nanosecond late on average. */
static double error_ns(const struct card_line *line)
{
	return (double)(line->tai_ns - PHC_NS) + (double)(int64_t)(counter - line->counter) * line->ns_per_unit - phc_ns;
}

static double follow(int bursts)
{
	struct card_line line;
	double worst_ns = 0;

	for (int i = 0; i < bursts; i++) {
		if (burst(&line) == 0 && fabs(error_ns(&line)) > worst_ns)
			worst_ns = fabs(error_ns(&line));
	}
	return worst_ns;
}

static void start(double ppm, uint64_t seed)
{
	noise.state = seed;
	counter = UINT64_C(1) << 40;
	phc_ns = 1e9;
	rate = NS_PER_TICK * (1 + ppm * 1e-6);
	phc_fit_init(&fit, NS_PER_TICK, NULL);
}

static void test_line(double ppm, uint64_t seed)
{
	struct card_line line, before;
	double worst_ns, jump_ns = 0;

	start(ppm, seed);
	CHECK_INT(phc_fit_line(&fit, &line), -ENODATA);
	for (int i = 1; i < PHC_FIT_SETTLED; i++)
		CHECK_INT(burst(&line), -EAGAIN);
	CHECK_INT(burst(&line), 0);
	CHECK_THAT(fabs(error_ns(&line)) < 250, "first line off by %f ns", error_ns(&line));
	follow(PHC_FIT_POINTS);
	worst_ns = follow(400);
	CHECK_THAT(worst_ns < 60, "line off by %f ns", worst_ns);
	CHECK_THAT(fabs(line.ns_per_unit / rate - 1) < 2e-7, "rate off by %g", line.ns_per_unit / rate - 1);
	/* From one line to the next a pulse moves by little. */
	CHECK_INT(burst(&before), 0);
	for (int i = 0; i < 400; i++) {
		CHECK_INT(burst(&line), 0);
		if (fabs(error_ns(&line) - error_ns(&before)) > jump_ns)
			jump_ns = fabs(error_ns(&line) - error_ns(&before));
		before = line;
	}
	CHECK_THAT(jump_ns < 8, "jump of %f ns", jump_ns);
	CHECK_INT(fit.restarts, 0);
	CHECK_INT(line.steps, 0);
	CHECK(line.bound_ns > 0 && strcmp(line.source, "phc") == 0);
}

/* A step, forth or back, large or small, and a change of the rate: no line of before is published after some bursts. */
static void test_restart(double step_ns, double ppm)
{
	struct card_line line;

	start(20, 8);
	follow(200);
	phc_ns += step_ns;
	rate *= 1 + ppm * 1e-6;
	for (int i = 0; i < 40; i++)
		burst(&line);
	CHECK_INT(fit.restarts, 1);
	for (int i = 0; i < PHC_FIT_SETTLED; i++)
		burst(&line);
	CHECK_INT(burst(&line), 0);
	CHECK_INT(line.steps, 1);
	CHECK_THAT(fabs(error_ns(&line)) < 250, "line off by %f ns after a step of %f", error_ns(&line), step_ns);
}

/* A reading of a stall is no step. */
static void test_stall(void)
{
	struct card_line line;

	start(0, 5);
	follow(200);
	for (int i = 0; i < 3; i++) {
		uint64_t before = counter;

		pass(600000);
		CHECK_INT(phc_fit_take(&fit, before, PHC_NS + (int64_t)phc_ns, counter + 100), 0);
		pass(PERIOD_TICKS);
		CHECK_INT(phc_fit_line(&fit, &line), 0);
	}
	CHECK_INT(fit.restarts, 0);
	CHECK_THAT(fabs(error_ns(&line)) < 100, "line off by %f ns", error_ns(&line));
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 4; seed++)
		test_line((double)seed * 40 - 100, seed);
	test_restart(1e9, 0);
	test_restart(-3.6e12, 0);
	test_restart(8000, 0);
	test_restart(-8000, 0);
	test_restart(0, 50);
	test_stall();
	return check_result();
}
