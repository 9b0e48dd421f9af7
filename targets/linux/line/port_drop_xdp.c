/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line that loses frames: by chance from a seed, so that two stacks meet the same losses, or every so many of a size. Compiled for
 * BPF; port_drop.c loads it.
 */
#include <linux/bpf.h>

#include "port_drop.h"

#define SECTION(name) __attribute__((section(name), used))

static void *(*const map_lookup)(const void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u64 (*const frame_bytes)(struct xdp_md *frame) = (void *)BPF_FUNC_xdp_get_buff_len;

SECTION("maps") char line;

SECTION("drop") int drop_frame(struct xdp_md *frame)
{
	const __u32 first = 0;
	struct line *state = map_lookup(&line, &first);
	__u64 random;

	if (!state || frame_bytes(frame) < state->least_bytes)
		return XDP_PASS;
	state->seen++;
	random = state->random; /* xorshift64 */
	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	state->random = random;
	if ((random >> 32) >= state->loss && !(state->every && state->seen % state->every == 0))
		return XDP_PASS;
	state->dropped++;
	return XDP_DROP;
}
