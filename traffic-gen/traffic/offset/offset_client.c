/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/offset/offset.h"

#define TIMEOUT_NS INT64_C(200000000)

enum { BURST = 8 };

/* Sleep to a monotonic instant, unless a stop is requested. */
static void wait_until(int64_t monotonic_ns)
{
	while (!port_stop_requested() && port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, monotonic_ns))
		;
}

void offset_client_run(void *argument)
{
	struct offset_client *client = argument;
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), next_monotonic_ns = begin_monotonic_ns;

	client->first_local_ns = port_tai_now_ns(&client->tai);
	while (!port_stop_requested()) {
		int64_t step_ns = 0, now_monotonic_ns;

		if (exchange_burst(&client->peer, &client->tai, client->twoway, BURST, TIMEOUT_NS, &step_ns) ==
			    TWOWAY_STEPPED && !client->peer_step_ns) {
			client->peer_step_ns = step_ns;
			client->peer_step_local_ns = port_tai_now_ns(&client->tai);
		}
		stepwatch_tai_now_ns(&client->watch, &client->tai);
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		/* A burst that took longer than the interval delays the next one; none is made up for. */
		do
			next_monotonic_ns += client->interval_ns;
		while (next_monotonic_ns < now_monotonic_ns);
		if (next_monotonic_ns - begin_monotonic_ns > client->duration_ns) {
			client->complete = true;
			break;
		}
		wait_until(next_monotonic_ns);
	}
	client->last_local_ns = port_tai_now_ns(&client->tai);
}
