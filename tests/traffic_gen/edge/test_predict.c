/* SPDX-License-Identifier: Apache-2.0 */
/* Edges predicted from latches that a timer rounds down, with some missing and some too many. */
#include <math.h>

#include "check.h"
#include "edge/method/predict.h"
#include "random.h"

#define PERIOD_TICKS INT64_C(5600000)
#define ART_TICKS 73                   /* of a tick of ART */
#define FIRST_TICKS (UINT64_MAX - 300 * (uint64_t)PERIOD_TICKS)

struct signal {
	double period_ticks;
	uint64_t first;
};

static double true_offset(const struct signal *signal, int64_t edge)
{
	return (double)edge * signal->period_ticks;
}

/* Latched: the last tick of ART at or before the edge; its middle is handed on, as the software does. */
static uint64_t latched(const struct signal *signal, int64_t edge)
{
	return signal->first + (uint64_t)(floor(true_offset(signal, edge) / ART_TICKS) * ART_TICKS) + ART_TICKS / 2;
}

static double error_ticks(const struct predictor *predictor, const struct signal *signal, int64_t edge)
{
	return (double)(int64_t)(predictor_ticks_at(predictor, edge) - signal->first) - true_offset(signal, edge);
}

/* The line averages the rounding away: better than a tick's twelfth root by far. */
static void test_rounding(double ppm, int64_t ahead)
{
	struct signal signal = { (double)PERIOD_TICKS * (1 + ppm * 1e-6) + 0.37, FIRST_TICKS };
	struct predictor predictor;
	double sum_squares = 0, sum = 0;
	int n = 0;

	predictor_init(&predictor, PERIOD_TICKS, PREDICTOR_LATCHES);
	CHECK(!predictor_ready(&predictor));
	for (int64_t edge = 0; edge < 1000; edge++) {
		double error;

		CHECK(predictor_add(&predictor, latched(&signal, edge)));
		CHECK_INT(predictor_newest_edge(&predictor), edge);
		if (edge < PREDICTOR_LATCHES)
			continue;
		error = error_ticks(&predictor, &signal, edge + ahead);
		sum += error;
		sum_squares += error * error;
		n++;
	}
	CHECK_THAT(sqrt(sum_squares / n) < ART_TICKS / sqrt(12) * 0.5, "deviation %.1f ticks", sqrt(sum_squares / n));
	CHECK_THAT(fabs(sum / n) < 4, "mean %.1f ticks", sum / n);
	CHECK_INT(predictor.strays, 0);
}

static void test_missing(void)
{
	struct signal signal = { (double)PERIOD_TICKS * 1.00002, FIRST_TICKS };
	struct predictor predictor;
	struct random random = { 11 };

	predictor_init(&predictor, PERIOD_TICKS, 16);
	CHECK(predictor_add(&predictor, latched(&signal, 0)));
	CHECK(predictor_ticks_at(&predictor, 3) == latched(&signal, 0) + 3 * (uint64_t)PERIOD_TICKS); /* no line yet */
	for (int64_t edge = 1; edge < 2000; edge++) {
		if (random_unit(&random) < 0.6 || (edge > 500 && edge < 700))
			continue;
		CHECK(predictor_add(&predictor, latched(&signal, edge)));
		CHECK_INT(predictor_newest_edge(&predictor), edge);
		if (edge > 50)
			CHECK(fabs(error_ticks(&predictor, &signal, edge + 3)) < ART_TICKS);
	}
}

static void test_strays(void)
{
	struct signal signal = { (double)PERIOD_TICKS, FIRST_TICKS };
	struct predictor predictor;

	predictor_init(&predictor, PERIOD_TICKS, 8);
	for (int64_t edge = 0; edge < 20; edge++) {
		CHECK(predictor_add(&predictor, latched(&signal, edge)));
		CHECK(!predictor_add(&predictor, latched(&signal, edge) + PERIOD_TICKS / 2));
		CHECK(!predictor_add(&predictor, latched(&signal, edge))); /* the same again */
	}
	CHECK_INT(predictor.strays, 40);
	CHECK_INT(predictor.restarts, 0);
	CHECK(fabs(error_ticks(&predictor, &signal, 25)) < ART_TICKS);
	/* The signal moves for good: four in a row begin anew. */
	CHECK(predictor_add(&predictor, latched(&signal, 20)));
	signal.first += PERIOD_TICKS / 3;
	for (int64_t edge = 21; edge < 24; edge++)
		CHECK(!predictor_add(&predictor, latched(&signal, edge)));
	CHECK_INT(predictor.restarts, 0);
	CHECK(!predictor_add(&predictor, latched(&signal, 24)));
	CHECK_INT(predictor.restarts, 1);
	CHECK(!predictor_ready(&predictor));
	CHECK(predictor_add(&predictor, latched(&signal, 25)));
	CHECK_INT(predictor_newest_edge(&predictor), 25);
	CHECK(fabs(error_ticks(&predictor, &signal, 26)) < 3 * ART_TICKS);
}

int main(void)
{
	test_rounding(0, 1);
	test_rounding(30, 1);
	test_rounding(-90, 20);
	test_missing();
	test_strays();
	return check_result();
}
