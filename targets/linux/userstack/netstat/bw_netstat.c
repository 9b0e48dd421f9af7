/* SPDX-License-Identifier: Apache-2.0 */
/* bw-netstat: what the programs of a user-mode stack are doing, for a person used to ss(8) and netstat(8). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/options.h"
#include "netstat/json_text.h"
#include "netstat/netstat.h"
#include "netstat/port_ask.h"
#include "service/stackd.h"

#define TOOL "bw-netstat"

struct request {
	const char *socket_path;
	bool json, statistics;
	struct choice choice;
};

static const char about[] =
	"Print the connections of all programs that a service of the user-mode stack serves, or by --statistics their counters.\n";

static int read_options(struct request *request, int argc, char **argv)
{
	struct choice *choice = &request->choice;
	const struct option options[] = {
		{ .name = "socket", .kind = OPTION_TEXT, .target = &request->socket_path, .argument = "PATH",
		  .help = "of the service (default " STACKD_SOCKET ")" },
		{ .name = "all", .kind = OPTION_FLAG, .target = &choice->all, .help = "connections, listeners and sockets without a peer" },
		{ .name = "listening", .kind = OPTION_FLAG, .target = &choice->listening,
		  .help = "only listeners, and sockets of UDP without a peer" },
		{ .name = "tcp", .kind = OPTION_FLAG, .target = &choice->tcp, .help = "only TCP" },
		{ .name = "udp", .kind = OPTION_FLAG, .target = &choice->udp, .help = "only UDP" },
		{ .name = "extended", .kind = OPTION_FLAG, .target = &choice->extended,
		  .help = "round trips, windows (bytes) and retransmissions of each connection" },
		{ .name = "program", .kind = OPTION_FLAG, .target = &choice->program, .help = "the program's descriptor of each, as ss -p" },
		{ .name = "statistics", .kind = OPTION_FLAG, .target = &request->statistics,
		  .help = "counters, of programs that have ended, too" },
		{ .name = "json", .kind = OPTION_FLAG, .target = &request->json, .help = "all of it as one JSON object" },
		{ .name = NULL },
	};
	const struct command command = { .name = TOOL, .usage = "[options]", .about = about, .options = options };

	return options_parse(&command, argc, argv, NULL);
}

static int complain(const char *socket_path, int err)
{
	fprintf(stderr, TOOL ": %s: %s\n", socket_path, stackd_error(err));
	return err == -ENAMETOOLONG ? EXIT_BAD_INPUT : EXIT_CAPABILITY;
}

static void warn_of(const char *program)
{
	static const struct { const char *report, *words; } all[] = {
		{ "late", "does not answer: what is shown of it is as it was when it did last" },
		{ "malformed", "has told of itself what makes no sense: its sockets are not shown" },
		{ "none", "does not tell of itself: its sockets are not shown" },
	};
	char name[NETSTAT_NAME_BYTES], report[NETSTAT_NAME_BYTES];
	const uint64_t left_out = json_text_number(json_text_member(program, "sockets_left_out"));
	const uint64_t pid = json_text_number(json_text_member(program, "pid"));

	json_text_string(json_text_member(program, "name"), name, sizeof(name));
	if (!*name)
		strcpy(name, "?");
	json_text_string(json_text_member(program, "report"), report, sizeof(report));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(all[i].report, report) == 0)
			fprintf(stderr, TOOL ": %s/%" PRIu64 " %s\n", name, pid, all[i].words);
	}
	if (left_out)
		fprintf(stderr, TOOL ": %s/%" PRIu64 " has %" PRIu64 " sockets more than are shown\n", name, pid, left_out);
}

static void print(const char *text, const struct request *request)
{
	const char *program = json_text_first(json_text_member(text, "programs"));

	if (request->json) {
		fputs(text, stdout);
		return;
	}
	if (request->statistics)
		counters_print(text, &request->choice);
	else
		sockets_print(text, &request->choice);
	fflush(stdout);
	for (; program; program = json_text_next(program))
		warn_of(program);
}

int main(int argc, char **argv)
{
	struct request request = { .socket_path = STACKD_SOCKET };
	int err = read_options(&request, argc, argv);
	char *text;

	if (err < 0)
		return options_exit_code(err);
	err = ask_statistics(request.socket_path, &text);
	if (err)
		return complain(request.socket_path, err);
	print(text, &request);
	free(text);
	return exit_code_if_written(TOOL, EXIT_DONE);
}
