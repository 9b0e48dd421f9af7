/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "config/options.h"
#include "config/verb_table.h"
#include "measure.h"
#include "service.h"

static int verb_serve(int argc, char **argv)
{
	const char *interface = NULL, *socket_path = RTDIP_SOCKET;
	bool generic = false;
	int64_t group = -1;
	const struct option options[] = {
		{ .name = "interface", .kind = OPTION_TEXT, .target = &interface, .argument = "NAME", .help = "which one" },
		{ .name = "socket", .kind = OPTION_TEXT, .target = &socket_path, .argument = "PATH",
		  .help = "where processes ask for ports (default " RTDIP_SOCKET ")" },
		{ .name = "group", .kind = OPTION_INT, .target = &group, .min = 0, .max = INT32_MAX, .argument = "GID",
		  .help = "whose members may have ports (default: root alone)" },
		{ .name = "generic", .kind = OPTION_FLAG, .target = &generic,
		  .help = "not in the driver, but before the kernel's own receive path" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = "bw-rtdip serve", .usage = "--interface NAME [options]",
		.about = "Give ports of RTDiP on an interface to processes, until SIGTERM. Needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL);

	if (parsed < 0)
		return options_exit_code(parsed);
	if (!interface) {
		fputs("bw-rtdip serve: --interface: missing\n", stderr);
		return EXIT_BAD_INPUT;
	}
	return rtdip_serve(interface, socket_path, group, generic);
}

static int verb_show(int argc, char **argv)
{
	const char *socket_path = RTDIP_SOCKET;
	const struct option options[] = {
		{ .name = "socket", .kind = OPTION_TEXT, .target = &socket_path, .argument = "PATH",
		  .help = "of the service (default " RTDIP_SOCKET ")" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = "bw-rtdip show", .usage = "[options]",
		.about = "Print ports, owners and counters of a service, drops by their reasons, as one JSON object.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL);

	return parsed < 0 ? options_exit_code(parsed) : rtdip_show(socket_path);
}

static const struct verb verbs[] = {
	{ "serve", verb_serve, "give ports on an interface to processes" },
	{ "show", verb_show, "print ports, owners and counters" },
	{ "echo", verb_echo, "send messages back" },
	{ "latency", verb_latency, "time round trips to an echo" },
	{ "source", verb_source, "send windows of messages to a sink" },
	{ "sink", verb_sink, "acknowledge windows of messages" },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct verb_table table = { .name = "bw-rtdip", .verbs = verbs };

	return verb_table_run(&table, argc, argv);
}
