/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "config/verb_table.h"
#include "loop/verbs.h"
#include "port/port.h"

static const struct verb verbs[] = {
	{ "ring", verb_ring, "pass small messages on from machine to machine: source, node or sink of a ring" },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct verb_table table = { .name = "bw-loop", .verbs = verbs, .begin = port_init };

	return verb_table_run(&table, argc, argv);
}
