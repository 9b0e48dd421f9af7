/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "config/verb_table.h"
#include "local_socket/service_command.h"
#include "service/serve.h"
#include "service/stackd.h"

static const struct service_command service = {
	.serve_name = "bw-stackd serve",
	.serve_about = "Give ports on an interface to programs that have a TCP and UDP of their own, until SIGTERM. Needs root and Linux 6.6.\n",
	.show_name = "bw-stackd show",
	.show_about = "Print programs, ports and counters of a service, drops by their reasons, as one JSON object.\n",
	.socket_path = STACKD_SOCKET,
	.serve = stackd_serve,
	.show = stackd_show,
};

static int verb_serve(int argc, char **argv)
{
	return service_command_serve(&service, argc, argv);
}

static int verb_show(int argc, char **argv)
{
	return service_command_show(&service, argc, argv);
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
