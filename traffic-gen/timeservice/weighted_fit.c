/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/weighted_fit.h"

#include <math.h>
#include <string.h>

#define SECONDS_PER_NS 1e-9
#define RATE_UNKNOWN_PPB 2e5      /* standard deviation before anything is known */
#define WHITE_NS2_PER_S 1.0       /* what clocks do besides walking */
#define GATE 3.0                  /* standard deviations */

void weighted_fit_init(struct weighted_fit *fit, double walk_ppb_per_sqrt_s)
{
	memset(fit, 0, sizeof(*fit));
	fit->walk_ppb_per_sqrt_s = walk_ppb_per_sqrt_s;
}

/* Move on to a later time. */
static void weighted_fit_move(struct weighted_fit *fit, int64_t local_ns)
{
	double dt_s = (double)(local_ns - fit->at_local_ns) * SECONDS_PER_NS;
	double walk = fit->walk_ppb_per_sqrt_s * fit->walk_ppb_per_sqrt_s;

	if (!fit->begun || dt_s <= 0.0)
		return;
	fit->offset_ns += fit->rate_ppb * dt_s;
	fit->var_offset += dt_s * (2 * fit->cov + dt_s * fit->var_rate) + walk * dt_s * dt_s * dt_s / 3 +
			      WHITE_NS2_PER_S * dt_s;
	fit->cov += dt_s * fit->var_rate + walk * dt_s * dt_s / 2;
	fit->var_rate += walk * dt_s;
	fit->at_local_ns = local_ns;
}

static void begin(struct weighted_fit *fit, int64_t local_ns, int64_t offset_ns, double noise_ns)
{
	fit->begun = true;
	fit->at_local_ns = local_ns;
	fit->origin_ns = offset_ns;
	fit->offset_ns = 0.0;
	fit->rate_ppb = 0.0;
	fit->var_offset = noise_ns * noise_ns;
	fit->cov = 0.0;
	fit->var_rate = RATE_UNKNOWN_PPB * RATE_UNKNOWN_PPB;
}

void weighted_fit_take(struct weighted_fit *fit, int64_t local_ns, int64_t offset_ns, double noise_ns)
{
	double surprise, variance, noise = noise_ns * noise_ns, gain_offset, gain_rate;

	if (!fit->begun) {
		begin(fit, local_ns, offset_ns, noise_ns);
		return;
	}
	weighted_fit_move(fit, local_ns);
	surprise = (double)(offset_ns - fit->origin_ns) - fit->offset_ns;
	variance = fit->var_offset + noise;
	/* Student's t with four degrees of freedom: a batch that is far off says much, but not everything. */
	fit->log_likelihood -= log(variance) / 2 + 2.5 * log1p(surprise * surprise / (4 * variance));
	if (surprise * surprise > GATE * GATE * variance) /* noisier than it claims to be */
		variance = surprise * surprise / (GATE * GATE);
	gain_offset = fit->var_offset / variance;
	gain_rate = fit->cov / variance;
	fit->offset_ns += gain_offset * surprise;
	fit->rate_ppb += gain_rate * surprise;
	fit->var_rate -= gain_rate * fit->cov;
	fit->cov -= gain_offset * fit->cov;
	fit->var_offset -= gain_offset * fit->var_offset;
}

double weighted_fit_offset_ns(const struct weighted_fit *fit, int64_t local_ns, int64_t from_ns)
{
	return (double)(fit->origin_ns - from_ns) + fit->offset_ns +
	       fit->rate_ppb * (double)(local_ns - fit->at_local_ns) * SECONDS_PER_NS;
}
