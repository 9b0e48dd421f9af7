/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Kalman filter of offset and rate between two clocks whose rate walks at random. Robust: what is further off than three standard
 * deviations is taken as that far off. How much the rate walks is chosen by the likelihood of what was taken. Pure.
 */
#ifndef BW_TIMESERVICE_WEIGHTED_FIT_H
#define BW_TIMESERVICE_WEIGHTED_FIT_H

#include <stdbool.h>
#include <stdint.h>

struct weighted_fit {
	double walk_ppb_per_sqrt_s; /* of the rate */
	bool begun;
	int64_t at_local_ns;
	int64_t origin_ns;          /* offsets are kept relative to it, so that doubles are exact enough */
	double offset_ns, rate_ppb; /* relative to origin_ns; the rate as it is */
	double var_offset, cov, var_rate; /* ns^2, ns ppb, ppb^2 */
	double log_likelihood;      /* of what was taken, given the walk */
};

void weighted_fit_init(struct weighted_fit *fit, double walk_ppb_per_sqrt_s);

/**
 * Take a measurement.
 *
 * @param noise_ns  its standard deviation
 */
void weighted_fit_take(struct weighted_fit *fit, int64_t local_ns, int64_t offset_ns, double noise_ns);

/** Offset at a time, by the line, less from_ns. */
double weighted_fit_offset_ns(const struct weighted_fit *fit, int64_t local_ns, int64_t from_ns);

#endif
