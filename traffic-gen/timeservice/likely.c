/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/likely.h"

#include <math.h>
#include <string.h>

#define SECONDS_PER_NS 1e-9
#define RATE_UNKNOWN_PPB 2e5      /* standard deviation before anything is known */
#define WHITE_NS2_PER_S 1.0       /* what clocks do besides walking */
#define GATE 3.0                  /* standard deviations */

void likely_init(struct likely *likely, double walk_ppb_per_sqrt_s)
{
	memset(likely, 0, sizeof(*likely));
	likely->walk_ppb_per_sqrt_s = walk_ppb_per_sqrt_s;
}

/* Move on to a later time. */
static void likely_move(struct likely *likely, int64_t local_ns)
{
	double dt_s = (double)(local_ns - likely->at_local_ns) * SECONDS_PER_NS;
	double walk = likely->walk_ppb_per_sqrt_s * likely->walk_ppb_per_sqrt_s;

	if (!likely->begun || dt_s <= 0.0)
		return;
	likely->offset_ns += likely->rate_ppb * dt_s;
	likely->var_offset += dt_s * (2 * likely->cov + dt_s * likely->var_rate) + walk * dt_s * dt_s * dt_s / 3 +
			      WHITE_NS2_PER_S * dt_s;
	likely->cov += dt_s * likely->var_rate + walk * dt_s * dt_s / 2;
	likely->var_rate += walk * dt_s;
	likely->at_local_ns = local_ns;
}

static void begin(struct likely *likely, int64_t local_ns, int64_t offset_ns, double noise_ns)
{
	likely->begun = true;
	likely->at_local_ns = local_ns;
	likely->origin_ns = offset_ns;
	likely->offset_ns = 0.0;
	likely->rate_ppb = 0.0;
	likely->var_offset = noise_ns * noise_ns;
	likely->cov = 0.0;
	likely->var_rate = RATE_UNKNOWN_PPB * RATE_UNKNOWN_PPB;
}

void likely_take(struct likely *likely, int64_t local_ns, int64_t offset_ns, double noise_ns)
{
	double surprise, variance, noise = noise_ns * noise_ns, gain_offset, gain_rate;

	if (!likely->begun) {
		begin(likely, local_ns, offset_ns, noise_ns);
		return;
	}
	likely_move(likely, local_ns);
	surprise = (double)(offset_ns - likely->origin_ns) - likely->offset_ns;
	variance = likely->var_offset + noise;
	/* Student's t with four degrees of freedom: a batch that is far off says much, but not everything. */
	likely->log_likelihood -= log(variance) / 2 + 2.5 * log1p(surprise * surprise / (4 * variance));
	if (surprise * surprise > GATE * GATE * variance) /* noisier than it claims to be */
		variance = surprise * surprise / (GATE * GATE);
	gain_offset = likely->var_offset / variance;
	gain_rate = likely->cov / variance;
	likely->offset_ns += gain_offset * surprise;
	likely->rate_ppb += gain_rate * surprise;
	likely->var_rate -= gain_rate * likely->cov;
	likely->cov -= gain_offset * likely->cov;
	likely->var_offset -= gain_offset * likely->var_offset;
}

double likely_offset_ns(const struct likely *likely, int64_t local_ns, int64_t from_ns)
{
	return (double)(likely->origin_ns - from_ns) + likely->offset_ns +
	       likely->rate_ppb * (double)(local_ns - likely->at_local_ns) * SECONDS_PER_NS;
}
