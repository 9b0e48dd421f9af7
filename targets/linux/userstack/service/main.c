/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "config/options.h"
#include "config/verb_table.h"
#include "service/serve.h"
#include "service/stackd.h"

static int verb_serve(int argc, char **argv)
{
	const char *interface = NULL, *socket_path = STACKD_SOCKET;
	bool generic = false;
	int64_t group = -1;
	const struct option options[] = {
		{ .name = "interface", .kind = OPTION_TEXT, .target = &interface, .argument = "NAME", .help = "which one" },
		{ .name = "socket", .kind = OPTION_TEXT, .target = &socket_path, .argument = "PATH",
		  .help = "where programs ask for ports (default " STACKD_SOCKET ")" },
		{ .name = "group", .kind = OPTION_INT, .target = &group, .min = 0, .max = INT32_MAX, .argument = "GID",
		  .help = "whose members may have ports (default: root alone)" },
		{ .name = "generic", .kind = OPTION_FLAG, .target = &generic,
		  .help = "not in the driver, but before the kernel's own receive path" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = "bw-stackd serve", .usage = "--interface NAME [options]",
		.about = "Give ports on an interface to programs that have a TCP and UDP of their own, until SIGTERM. Needs root and Linux 6.6.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL);

	if (parsed < 0)
		return options_exit_code(parsed);
	if (!interface) {
		fputs("bw-stackd serve: --interface: missing\n", stderr);
		return EXIT_BAD_INPUT;
	}
	return stackd_serve(interface, socket_path, group, generic);
}

static int verb_show(int argc, char **argv)
{
	const char *socket_path = STACKD_SOCKET;
	const struct option options[] = {
		{ .name = "socket", .kind = OPTION_TEXT, .target = &socket_path, .argument = "PATH",
		  .help = "of the service (default " STACKD_SOCKET ")" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = "bw-stackd show", .usage = "[options]",
		.about = "Print programs, ports and counters of a service, drops by their reasons, as one JSON object.\n",
		.options = options,
	};
	int parsed = options_parse(&command, argc, argv, NULL);

	return parsed < 0 ? options_exit_code(parsed) : stackd_show(socket_path);
}

static const struct verb verbs[] = {
	{ "serve", verb_serve, "give ports on an interface to programs" },
	{ "show", verb_show, "print programs, ports and counters" },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct verb_table table = { .name = "bw-stackd", .verbs = verbs };

	return verb_table_run(&table, argc, argv);
}
