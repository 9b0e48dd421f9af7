/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of a service of an interface: `serve` and `show`. */
#ifndef BW_SERVICE_COMMAND_H
#define BW_SERVICE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

/* What differs from one service to another. */
struct service_command {
	const char *serve_name, *serve_about; /* as in struct command */
	const char *show_name, *show_about;
	const char *socket_path; /* where nothing else is told */

	/**
	 * Serve an interface until SIGTERM or SIGINT.
	 *
	 * @param group whose members may have ports, besides root and the service's own user; negative: nobody else
	 * @return an exit code, with a line on stderr
	 */
	int (*serve)(const char *interface, const char *socket_path, int64_t group, bool generic);

	/** Print what a service says of itself. @return an exit code, with a line on stderr */
	int (*show)(const char *socket_path);
};

/** Run the verb `serve`. @return an exit code */
int service_command_serve(const struct service_command *service, int argc, char **argv);
/** Run the verb `show`. @return an exit code */
int service_command_show(const struct service_command *service, int argc, char **argv);

#endif
