/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "edge/edge_verbs.h"
#include "port/port.h"
#include "config/verb_table.h"

static const struct verb verbs[] = {
	{ "serve", verb_serve, "on the virtual bench's host: make the edges of guests" },
	{ "follow-phc", verb_follow_phc, "in a guest: tell its edge device the PTP hardware clock" },
	{ "output", verb_output, "make edges at instants of a pin's clock" },
	{ "capture", verb_capture, "note when the edges of an input come" },
	{ "run", verb_run, "the software under test: edges that coincide with those of a clock" },
	{ "latch", verb_latch, "software's idea of the time of an edge, against its capture" },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct verb_table table = { .name = "bw-edge", .verbs = verbs, .begin = port_init };

	return verb_table_run(&table, argc, argv);
}
