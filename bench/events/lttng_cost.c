/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a tracepoint of LTTng-UST with one number: lttng_cost BLOCKS. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_point.h"

#define RECORD(number_) lttng_ust_tracepoint(cost, number, number_)
#include "event_loop.h"

int main(int argc, char **argv)
{
	return time_loops(argc > 1 ? strtoll(argv[1], NULL, 10) : 0);
}
