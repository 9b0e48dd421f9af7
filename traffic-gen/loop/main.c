/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "config/verb_table.h"
#include "loop/verbs.h"
#include "port/port.h"

static const struct verb verbs[] = {
	{ "ring", verb_ring, "pass small messages on from machine to machine: source, node or sink of a ring" },
	{ "camera", verb_camera, "send pictures of a camera, and turn the synthetic one to where commands say" },
	{ "tracker", verb_tracker, "find the target in pictures, and send commands where to look" },
	{ "display", verb_display, "receive pictures, check them and keep some" },
	{ "render", verb_render, "make a picture of the synthetic camera once more, from its truth file" },
	{ "where", verb_where, "say where its target was" },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct verb_table table = { .name = "bw-loop", .verbs = verbs, .begin = port_init };

	return verb_table_run(&table, argc, argv);
}
