/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a point of ours: event_cost BLOCKS. */
#include "bwevents.h"

BW_EVENT_POINT(number, "cost", "number", "an event that is timed; tag: its number");

#define RECORD(number_) BW_EVENT(number, number_)
#include "event_loop.h"

int main(int argc, char **argv)
{
	return time_loops(argc > 1 ? strtoll(argv[1], NULL, 10) : 0);
}
