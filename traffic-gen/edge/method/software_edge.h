/* SPDX-License-Identifier: Apache-2.0 */
/* An edge that software makes: awake a little before, looking at the clock until the instant has come, then the line is set. */
#ifndef BW_EDGE_SOFTWARE_EDGE_H
#define BW_EDGE_SOFTWARE_EDGE_H

#include <stdint.h>

#include "edge/pins/pin.h"
#include "port/port.h"

#define SOFTWARE_EDGE_LEAD_NS INT64_C(500000) /* awake so long before: longer than a wake-up takes, in an emulated guest too */
#define SOFTWARE_EDGE_LEAD_MAX_NS INT64_C(4000000)
#define SOFTWARE_EDGE_PULSE_NS INT64_C(100000)

/** How long before an edge software is awake: a quarter of the period at most. */
static inline int64_t software_edge_lead_ns(int64_t period_ns)
{
	return period_ns / 4 < SOFTWARE_EDGE_LEAD_NS ? period_ns / 4 : SOFTWARE_EDGE_LEAD_NS;
}

/** A longer lead, after a wake-up that came too late for this one: a quarter of the period at most, or SOFTWARE_EDGE_LEAD_MAX_NS. */
static inline int64_t software_edge_longer_lead_ns(int64_t lead_ns, int64_t period_ns)
{
	int64_t max_ns = period_ns / 4 < SOFTWARE_EDGE_LEAD_MAX_NS ? period_ns / 4 : SOFTWARE_EDGE_LEAD_MAX_NS;

	return 2 * lead_ns < max_ns ? 2 * lead_ns : max_ns;
}

/**
 * Make one pulse at an instant of the system's TAI. Real-time safe.
 *
 * @param hz         of the counter, which bounds the wait should the clock be set back
 * @param period_ns  to the next one: the line is high for a quarter of it, or for SOFTWARE_EDGE_PULSE_NS
 * @param lead_ns    awake so long before: SOFTWARE_EDGE_LEAD_MAX_NS at most
 * @return 0; -ETIME: the instant had passed; -EINTR; or -errno of the pin
 */
int software_edge_make(struct edge_pin *output, const struct port_tai *tai, uint64_t hz, int64_t at_tai_ns,
		       int64_t period_ns, int64_t lead_ns);
/** The line has just been set: hold it, then set it low. */
int software_edge_end(struct edge_pin *output, int64_t period_ns);

#endif
