/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lose frames that come in by an interface: `drop INTERFACE LOSS_PPM SEED EVERY LEAST_BYTES`. Says `ready`; at SIGTERM it prints how
 * many it has seen and lost, as JSON, and the line is sound again.
 */
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/port_bpf.h"
#include "drop.h"
#include "drop_program.h"

#define PPM UINT64_C(1000000)

int main(int argc, char **argv)
{
	static char log[BPF_LOG_BYTES];
	const uint32_t first = 0;
	struct line state = { 0 };
	struct bpf_named_map maps[] = { { "line", -1 }, { NULL, -1 } };
	sigset_t ends;
	bool native = true;
	int program, link, number;

	if (argc != 6)
		return 2;
	state.loss = (strtoull(argv[2], NULL, 10) << 32) / PPM;
	state.random = strtoull(argv[3], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15) | 1;
	state.every = strtoull(argv[4], NULL, 10);
	state.least_bytes = strtoull(argv[5], NULL, 10);
	maps[0].map = bpf_make_map(BPF_MAP_TYPE_ARRAY, "line", sizeof(first), sizeof(state), 1, 0);
	if (maps[0].map < 0 || bpf_map_update(maps[0].map, &first, &state, BPF_ANY))
		return 3;
	program = bpf_load(&line_drop, BPF_XDP, maps, log);
	link = program < 0 ? program : bpf_attach_xdp(program, (int)if_nametoindex(argv[1]), &native);
	if (link < 0) {
		fprintf(stderr, "drop: %s: %s%s\n", argv[1], strerror(-link), log);
		return 3;
	}
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	printf("ready\n");
	fflush(stdout);
	sigwait(&ends, &number);
	bpf_map_look_up(maps[0].map, &first, &state);
	printf("{\"seen\":%llu,\"dropped\":%llu}\n", (unsigned long long)state.seen, (unsigned long long)state.dropped);
	return 0;
}
