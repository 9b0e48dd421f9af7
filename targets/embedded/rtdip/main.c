/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "config/verb_table.h"
#include "local_socket/service_command.h"
#include "measure.h"
#include "service.h"

static const struct service_command service = {
	.serve_name = "bw-rtdip serve",
	.serve_about = "Give ports of RTDiP on an interface to programs, until SIGTERM. Needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW.\n",
	.show_name = "bw-rtdip show",
	.show_about = "Print ports, owners and counters of a service, drops by their reasons, as one JSON object.\n",
	.socket_path = RTDIP_SOCKET,
	.serve = rtdip_serve,
	.show = rtdip_show,
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
