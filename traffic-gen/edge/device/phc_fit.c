/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/device/phc_fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONTRADICTION_NS 200.0 /* beyond half the reading: what a line may be off by */
#define RATE_MAX 2e-3          /* of a PHC against the nominal rate of the counter */

void phc_fit_init(struct phc_fit *fit, double ns_per_tick, struct histogram *residuals)
{
	memset(fit, 0, sizeof(*fit));
	fit->ns_per_tick = ns_per_tick;
	fit->residuals = residuals;
}

int phc_fit_take(struct phc_fit *fit, uint64_t before, int64_t phc_ns, uint64_t after)
{
	uint64_t width = after - before;

	if (width > UINT64_MAX / 2)
		return -EINVAL;
	if (fit->burst && width >= fit->shortest.width)
		return 0;
	fit->burst = true;
	fit->shortest = (struct phc_point){ .counter = before + width / 2, .phc_ns = phc_ns, .width = width };
	return 0;
}

/* PHC less line, in ns. */
static double residual_ns(const struct phc_fit *fit, const struct phc_point *point)
{
	return (double)(point->phc_ns - fit->origin_phc_ns) - fit->offset_ns -
	       fit->rate * (double)(int64_t)(point->counter - fit->origin);
}

static int compare_widths(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Half of the readings are at most this long. */
static uint64_t median_width(const struct phc_fit *fit)
{
	uint64_t widths[PHC_FIT_POINTS];

	for (int i = 0; i < fit->count; i++)
		widths[i] = fit->points[i].width;
	qsort(widths, (size_t)fit->count, sizeof(widths[0]), compare_widths);
	return widths[(fit->count - 1) / 2];
}

/* Least squares through the shorter half of the readings. */
static void fit_line(struct phc_fit *fit)
{
	const struct phc_point *last = &fit->points[(fit->next + PHC_FIT_POINTS - 1) % PHC_FIT_POINTS];
	uint64_t width = median_width(fit);
	double n = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, sum_square = 0, mean_x, mean_y, spread;

	fit->origin = last->counter;
	fit->origin_phc_ns = last->phc_ns;
	/* y: what the PHC has beyond the nominal rate, so that the sums lose nothing. */
	for (int i = 0; i < fit->count; i++) {
		const struct phc_point *point = &fit->points[i];
		double x = (double)(int64_t)(point->counter - fit->origin);
		double y = (double)(point->phc_ns - fit->origin_phc_ns) - x * fit->ns_per_tick;

		if (point->width > width)
			continue;
		n++;
		sum_x += x;
		sum_y += y;
		sum_xx += x * x;
		sum_xy += x * y;
	}
	mean_x = sum_x / n;
	mean_y = sum_y / n;
	spread = sum_xx - sum_x * mean_x;
	fit->rate = fit->ns_per_tick + (spread > 0 ? (sum_xy - sum_x * mean_y) / spread : 0);
	fit->offset_ns = mean_y - (fit->rate - fit->ns_per_tick) * mean_x;
	fit->fitted = true;
	for (int i = 0; i < fit->count; i++) {
		double residual = residual_ns(fit, &fit->points[i]);

		if (fit->points[i].width <= width)
			sum_square += residual * residual;
	}
	fit->deviation_ns = sqrt(sum_square / n);
}

static void restart(struct phc_fit *fit)
{
	fit->count = fit->next = 0;
	fit->fitted = false;
	fit->contradictions = 0;
	fit->restarts++;
}

/* Hold a point against the line: the PHC was read within the reading, so it cannot be further away than half of it. */
static void check(struct phc_fit *fit, const struct phc_point *point)
{
	double residual = residual_ns(fit, point);
	double allowed_ns = (double)point->width * fit->ns_per_tick / 2 + CONTRADICTION_NS + 6 * fit->deviation_ns;

	if (fabs(residual) > allowed_ns) {
		if (++fit->contradictions >= PHC_FIT_CONTRADICTED)
			restart(fit);
		return;
	}
	fit->contradictions = 0;
	if (fit->residuals && point->width <= median_width(fit))
		histogram_record(fit->residuals, (int64_t)nearbyint(residual));
}

int phc_fit_line(struct phc_fit *fit, struct card_line *line)
{
	double from_origin;
	int64_t phc_ns;

	if (!fit->burst)
		return -ENODATA;
	fit->burst = false;
	if (fit->fitted && fit->count >= PHC_FIT_SETTLED)
		check(fit, &fit->shortest);
	if (fit->contradictions)
		return -EAGAIN; /* neither believed nor used */
	fit->points[fit->next] = fit->shortest;
	fit->next = (fit->next + 1) % PHC_FIT_POINTS;
	fit->count += fit->count < PHC_FIT_POINTS;
	fit->taken++;
	fit_line(fit);
	if (fabs(fit->rate / fit->ns_per_tick - 1) > RATE_MAX && fit->count >= PHC_FIT_SETTLED)
		restart(fit); /* a step that came within the first points */
	if (fit->count < PHC_FIT_SETTLED)
		return -EAGAIN;
	/* A whole nanosecond, and the tick that is nearest to it. */
	phc_ns = fit->origin_phc_ns + llround(fit->offset_ns);
	from_origin = ((double)(phc_ns - fit->origin_phc_ns) - fit->offset_ns) / fit->rate;
	*line = (struct card_line){
		.unit = CARD_UNIT_TSC,
		.counter = fit->origin + (uint64_t)(int64_t)llround(from_origin),
		.tai_ns = phc_ns,
		.ns_per_unit = fit->rate,
		.bound_ns = (int64_t)ceil(2 * fit->deviation_ns),
		.published = ++fit->published,
		.steps = fit->restarts,
		.source = "phc",
	};
	return 0;
}
