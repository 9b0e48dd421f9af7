/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "config/verb_table.h"
#include "events/verbs.h"
#include "port/port.h"

static const struct verb verbs[] = {
	{ "list", verb_list, "find the points in the file of a program" },
	{ "record", verb_record, "record what points of programs tell, into files" },
	{ "on", verb_on, "turn points on in programs that are recorded" },
	{ "off", verb_off, "turn them off" },
	{ "trigger", verb_trigger, "have histories written" },
	{ "show", verb_show, "list the programs that are recorded, and what is on" },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct verb_table table = { .name = "bw-events", .verbs = verbs, .begin = port_init };

	return verb_table_run(&table, argc, argv);
}
