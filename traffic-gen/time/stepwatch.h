/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches TAI against MONOTONIC for steps. The check is two clock readings and one comparison; only when they
 * disagree is the difference measured with care. Each thread has a watch of its own.
 */
#ifndef BW_STEPWATCH_H
#define BW_STEPWATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

enum { STEPWATCH_STEPS_MAX = 64, STEPWATCH_FOLLOW = 16 };

struct clock_step {
	int64_t time_tai_ns; /* local, after the step, when it was noticed */
	int64_t step_ns;     /* positive: the clock jumped ahead */
};

struct stepwatch {
	int64_t base_ns;  /* TAI - MONOTONIC */
	bool follow;      /* the difference also drifts: let base_ns follow it */
	int64_t floor_ns; /* smaller differences are reading error */
	uint64_t count;   /* all steps */
	struct clock_step steps[STEPWATCH_STEPS_MAX]; /* the first ones */
};

void stepwatch_init(struct stepwatch *watch, const struct port_tai *tai);

/** Part of stepwatch_tai_now_ns: measure with care, record a step if there was one. */
void stepwatch_examine(struct stepwatch *watch, const struct port_tai *tai);

/** Read TAI and check it for steps since the last reading. Real-time safe. */
static inline int64_t stepwatch_tai_now_ns(struct stepwatch *watch, const struct port_tai *tai)
{
	int64_t now_tai_ns = port_tai_now_ns(tai);
	int64_t difference_ns = now_tai_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC) - watch->base_ns;

	if (difference_ns > watch->floor_ns || difference_ns < -watch->floor_ns)
		stepwatch_examine(watch, tai);
	else if (watch->follow)
		watch->base_ns += difference_ns / STEPWATCH_FOLLOW;
	return now_tai_ns;
}

#endif
