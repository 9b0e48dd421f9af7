/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: the estimator under a peer that answers whatever it likes, at whatever local times. A valid line always
 * has a bound, and the newest kept exchange agrees with it.
 */
#include <string.h>

#include "fuzz.h"
#include "time/twoway.h"

/* Of the default rate of 500 ppm in half of the longest exchange, 2^40 ns. */
#define DRIFT_MAX_NS INT64_C(274877908)

static void check_line(const struct twoway *twoway)
{
	struct twoway_line line = twoway_current(twoway);
	const struct twoway_sample *samples;
	size_t count = twoway_series(twoway, &samples);
	int64_t distance_ns;

	promise(line.valid && count > 0 && line.bound_ns >= 0 && line.bound_growth_ppb >= 0);
	promise(twoway_line_bound_ns(&line, line.at_local_ns) >= line.bound_ns);
	distance_ns = twoway_line_offset_ns(&line, samples[count - 1].local_ns) - samples[count - 1].offset_ns;
	promise(llabs(distance_ns) <= samples[count - 1].bound_ns + DRIFT_MAX_NS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct twoway_config config = twoway_default_config();
	struct twoway *twoway = twoway_create(&config);
	struct twoway_summary summary;
	struct twoway_exchange exchange;

	if (!twoway)
		return 0;
	for (; size >= sizeof(exchange); data += sizeof(exchange), size -= sizeof(exchange)) {
		int64_t step_ns;

		memcpy(&exchange, data, sizeof(exchange));
		twoway_add(twoway, &exchange);
		if ((exchange.t4_local_ns & 3) && twoway_end_burst(twoway, &step_ns) != TWOWAY_NOTHING)
			check_line(twoway);
	}
	twoway_summarise(twoway, 0, INT64_C(1) << 62, &summary);
	promise(summary.residual_ns >= 0 && summary.bound_ns >= 0);
	twoway_destroy(twoway);
	return 0;
}
