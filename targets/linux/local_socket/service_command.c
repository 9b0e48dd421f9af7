/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "config/options.h"
#include "local_socket/service_command.h"

enum { HELP_BYTES = 256 };

int service_command_serve(const struct service_command *service, int argc, char **argv)
{
	const char *interface = NULL, *socket_path = service->socket_path;
	bool generic = false;
	int64_t group = -1;
	char socket_help[HELP_BYTES];
	const struct option options[] = {
		{ .name = "interface", .kind = OPTION_TEXT, .target = &interface, .argument = "NAME", .help = "which one" },
		{ .name = "socket", .kind = OPTION_TEXT, .target = &socket_path, .argument = "PATH", .help = socket_help },
		{ .name = "group", .kind = OPTION_INT, .target = &group, .min = 0, .max = INT32_MAX, .argument = "GID",
		  .help = "whose members may have ports (default: root alone)" },
		{ .name = "generic", .kind = OPTION_FLAG, .target = &generic,
		  .help = "not in the driver, but before the kernel's own receive path" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = service->serve_name, .usage = "--interface NAME [options]", .about = service->serve_about, .options = options,
	};
	int parsed;

	snprintf(socket_help, sizeof(socket_help), "where programs ask for ports (default %s)", service->socket_path);
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0)
		return options_exit_code(parsed);
	if (!interface) {
		fprintf(stderr, "%s: --interface: missing\n", service->serve_name);
		return EXIT_BAD_INPUT;
	}
	return service->serve(interface, socket_path, group, generic);
}

int service_command_show(const struct service_command *service, int argc, char **argv)
{
	const char *socket_path = service->socket_path;
	char socket_help[HELP_BYTES];
	const struct option options[] = {
		{ .name = "socket", .kind = OPTION_TEXT, .target = &socket_path, .argument = "PATH", .help = socket_help },
		{ .name = NULL },
	};
	const struct command command = {
		.name = service->show_name, .usage = "[options]", .about = service->show_about, .options = options,
	};
	int parsed;

	snprintf(socket_help, sizeof(socket_help), "of the service (default %s)", service->socket_path);
	parsed = options_parse(&command, argc, argv, NULL);
	return parsed < 0 ? options_exit_code(parsed) : service->show(socket_path);
}
