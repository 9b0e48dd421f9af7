/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/method/software_edge.h"

#include <errno.h>

#include "port/port_clock.h"
#include "time/heard_sleep.h"

enum { SPIN_MAX_PER_S = 200 }; /* 5 ms: a clock that was set back must not hold the processor */

int software_edge_end(struct edge_pin *output, int64_t period_ns)
{
	port_sleep_ns(period_ns / 4 < SOFTWARE_EDGE_PULSE_NS ? period_ns / 4 : SOFTWARE_EDGE_PULSE_NS);
	return output->kind->set(output, false, NULL, NULL);
}

int software_edge_make(struct edge_pin *output, const struct port_tai *tai, uint64_t hz, int64_t at_tai_ns,
		       int64_t period_ns, int64_t lead_ns)
{
	uint64_t begin;
	int err = heard_sleep_until_tai_ns(tai, at_tai_ns - lead_ns);

	if (err)
		return err;
	if (port_tai_now_ns(tai) >= at_tai_ns)
		return -ETIME;
	begin = port_counter_read();
	while (port_tai_now_ns(tai) < at_tai_ns) {
		if (port_counter_before() - begin > hz / SPIN_MAX_PER_S)
			return -ETIME;
	}
	err = output->kind->set(output, true, NULL, NULL);
	return err ? err : software_edge_end(output, period_ns);
}
