/* SPDX-License-Identifier: Apache-2.0 */
#include "clock/card/sampler.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "time/twoway.h"

#define LOCAL_START_NS INT64_C(1000000000000) /* the estimator wants positive stamps */
#define CLOCK_BOUND_MAX_NS INT64_C(100000000000)

int sampler_init(struct sampler *sampler, double ns_per_unit)
{
	const struct twoway_config config = {
		.window_ns = SAMPLER_WINDOW_NS,
		.wander_ppb_per_s = SAMPLER_WANDER_PPB_PER_S,
		.rate_limit_ppb = SAMPLER_RATE_LIMIT_PPB,
	};

	memset(sampler, 0, sizeof(*sampler));
	sampler->ns_per_unit = ns_per_unit;
	sampler->twoway = twoway_create(&config);
	return sampler->twoway ? 0 : -ENOMEM;
}

void sampler_release(struct sampler *sampler)
{
	twoway_destroy(sampler->twoway);
	sampler->twoway = NULL;
}

/* Nominal nanoseconds since the first reading; rounding goes outwards. */
static int64_t local_ns(const struct sampler *sampler, uint64_t units, bool up)
{
	double ns = (double)(int64_t)(units - sampler->first_units) * sampler->ns_per_unit;

	return LOCAL_START_NS + (int64_t)(up ? ceil(ns) : floor(ns));
}

int sampler_take(struct sampler *sampler, uint64_t before, int64_t tai_ns, uint64_t after, int64_t clock_bound_ns)
{
	struct twoway_exchange exchange = { .t2_peer_ns = tai_ns, .t3_peer_ns = tai_ns };

	if (clock_bound_ns < 0 || clock_bound_ns > CLOCK_BOUND_MAX_NS)
		return -EINVAL;
	if (!sampler->started) {
		sampler->started = true;
		sampler->first_units = before;
	}
	exchange.t1_local_ns = local_ns(sampler, before, false) - clock_bound_ns;
	exchange.t4_local_ns = local_ns(sampler, after, true) + clock_bound_ns;
	return twoway_add(sampler->twoway, &exchange);
}

int sampler_line(struct sampler *sampler, struct card_line *line)
{
	enum twoway_outcome outcome = twoway_end_burst(sampler->twoway, NULL);
	struct twoway_line fit;
	double units;

	if (outcome == TWOWAY_NOTHING)
		return -ENODATA;
	if (outcome == TWOWAY_STEPPED)
		sampler->steps++;
	fit = twoway_current(sampler->twoway);
	units = (double)(fit.at_local_ns - LOCAL_START_NS) / sampler->ns_per_unit;
	line->counter = sampler->first_units + (uint64_t)(int64_t)llround(units);
	line->tai_ns = twoway_line_to_peer_ns(&fit, fit.at_local_ns);
	line->ns_per_unit = sampler->ns_per_unit * (1 + (double)fit.rate_ppb * 1e-9);
	line->bound_ns = fit.bound_ns + 1 + (int64_t)ceil(sampler->ns_per_unit / 2); /* of the counter's rounding */
	line->bound_growth_ppb = fit.bound_growth_ppb;
	line->wander_ppb_per_s = fit.wander_ppb_per_s;
	line->published = ++sampler->published;
	line->steps = sampler->steps;
	return 0;
}
