/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "port/port.h"
#include "config/verb_table.h"
#include "traffic/verbs.h"

static const struct verb verbs[] = {
	{ "check", verb_check, "validate a pattern and print its streams" },
	{ "send", verb_send, "play the streams of producers" },
	{ "recv", verb_recv, "receive all streams; count, time and judge each message" },
	{ "offset", verb_offset, "measure, or serve, the offset between two clocks" },
	{ "echo", verb_echo, "send STAMP test packets back" },
	{ "roundtrip", verb_roundtrip, "time round trips to a STAMP reflector" },
	{ "stimulus", verb_stimulus, "send stimuli to a client that answers each, or be that client" },
	{ "bulk", verb_bulk, "send random data in bulk over TCP, or receive it" },
	{ "work", verb_work, "load the machine as a build does, by many short processes" },
	{ "witness", verb_witness, "record when this machine stalled" },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct verb_table table = { .name = "bw-traffic", .verbs = verbs, .begin = port_init };

	return verb_table_run(&table, argc, argv);
}
