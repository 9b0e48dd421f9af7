/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-drop: lose frames that come in by interfaces, by chance from a seed. It says `ready`; at SIGTERM it says how many it has seen and
 * lost of each, and the line is sound again, as it is when this program dies.
 */
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "answer/answer.h"
#include "bpf/port_bpf.h"
#include "config/options.h"
#include "port_drop.h"
#include "drop_program.h"

#define TOOL "bw-drop"
#define PPM UINT64_C(1000000)
#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

enum { INTERFACES_MAX = 64 };

struct request {
	int64_t loss_ppm, seed, every, least_bytes;
	const char *interfaces[INTERFACES_MAX];
	int count;
};

static int read_options(struct request *request, int argc, char **argv)
{
	const struct option options[] = {
		{ .name = "loss-ppm", .kind = OPTION_INT, .target = &request->loss_ppm, .min = 0, .max = 1000000, .argument = "N",
		  .help = "of a million frames so many are lost, by chance (default 0)" },
		{ .name = "seed", .kind = OPTION_INT, .target = &request->seed, .min = 1, .max = INT64_MAX, .argument = "N",
		  .help = "of that chance; each interface has its own of it (default 1)" },
		{ .name = "every", .kind = OPTION_INT, .target = &request->every, .min = 0, .max = INT64_MAX, .argument = "N",
		  .help = "besides, each so manieth is lost (default 0: none)" },
		{ .name = "least-bytes", .kind = OPTION_INT, .target = &request->least_bytes, .min = 0, .max = INT64_MAX, .argument = "N",
		  .help = "smaller frames are neither counted nor lost (default 0)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "INTERFACE... [options]",
		.about = "Lose frames that come in by interfaces of this network namespace, until SIGTERM.\n",
		.options = options,
		.positional_min = 1,
		.positional_max = INTERFACES_MAX,
	};

	return options_parse(&command, argc, argv, request->interfaces);
}

/* @return 0, or an exit code, with a line on stderr */
static int begin(const struct request *request, int place, int *map)
{
	static char log[BPF_LOG_BYTES];
	const char *name = request->interfaces[place];
	const uint32_t first = 0;
	struct line state = {
		.random = (((uint64_t)request->seed << 8) + (uint64_t)place) * GOLDEN | 1,
		.loss = ((uint64_t)request->loss_ppm << 32) / PPM,
		.every = (uint64_t)request->every,
		.least_bytes = (uint64_t)request->least_bytes,
	};
	struct bpf_named_map maps[] = { { "line", -1 }, { NULL, -1 } };
	unsigned int number = if_nametoindex(name);
	bool native = true; /* where it can be: what a driver hands on by itself comes past the generic path */
	int program, link;

	if (!number) {
		fprintf(stderr, TOOL ": %s: no such interface here\n", name);
		return EXIT_BAD_INPUT;
	}
	*map = bpf_make_map(BPF_MAP_TYPE_ARRAY, "line", sizeof(first), sizeof(state), 1, 0);
	program = *map < 0 ? *map : bpf_map_update(*map, &first, &state, BPF_ANY);
	maps[0].map = *map;
	if (program == 0)
		program = bpf_load(&line_drop, BPF_XDP, maps, log);
	link = program < 0 ? program : bpf_attach_xdp(program, (int)number, &native);
	if (link < 0) {
		fprintf(stderr, TOOL ": %s: %s%s%s\n", name, strerror(-link), *log ? ": " : "", log);
		return link == -EPERM ? EXIT_CAPABILITY : EXIT_FAULT;
	}
	return EXIT_DONE;
}

static void tell(struct json *json, const struct request *request, const int *line_maps)
{
	const uint32_t first = 0;

	answer_result(json, TOOL);
	json_object_open(json, "interfaces");
	for (int i = 0; i < request->count; i++) {
		struct line state = { 0 };

		bpf_map_look_up(line_maps[i], &first, &state);
		json_object_open(json, request->interfaces[i]);
		json_uint(json, "seen", state.seen);
		json_uint(json, "dropped", state.dropped);
		json_object_close(json);
	}
	json_object_close(json);
	answer_valid_unless(json, true, NULL);
}

int main(int argc, char **argv)
{
	static struct request request = { .seed = 1 };
	static int line_maps[INTERFACES_MAX];
	struct json json;
	sigset_t ends;
	int number;

	request.count = read_options(&request, argc, argv);
	if (request.count < 1)
		return options_exit_code(request.count);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	for (int i = 0; i < request.count; i++) {
		int code = begin(&request, i, &line_maps[i]);

		if (code)
			return code;
	}
	json_init(&json, stdout);
	answer_begin(&json, "ready", TOOL);
	if (answer_end(&json))
		return EXIT_FAULT;
	sigwait(&ends, &number);
	tell(&json, &request, line_maps);
	return exit_code_if_written(TOOL, answer_end(&json) ? EXIT_FAULT : EXIT_DONE);
}
