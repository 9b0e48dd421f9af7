/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of UDP over IPv4 for one of two ports go to sockets of AF_XDP on the card itself. Compiled for BPF; packet_path.c loads it. */
#include <linux/bpf.h>

#define SECTION(name) __attribute__((section(name), used))

static void *(*const map_lookup)(const void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*const redirect)(const void *map, __u64 key, __u64 flags) = (void *)BPF_FUNC_redirect_map;

enum { TYPE_AT = 12, PROTOCOL_AT = 23, PORT_AT = 36, HEADERS_BYTES = 42, UDP = 17 };

SECTION("maps") char ports;
SECTION("maps") char sockets;

SECTION("card") int take_frame(struct xdp_md *frame)
{
	const unsigned char *data = (void *)(long)frame->data, *end = (void *)(long)frame->data_end;
	__u32 port;
	const __u32 *place;

	if (data + HEADERS_BYTES > end || data[TYPE_AT] != 0x08 || data[TYPE_AT + 1] || data[PROTOCOL_AT] != UDP)
		return XDP_PASS;
	port = (__u32)data[PORT_AT] << 8 | data[PORT_AT + 1];
	place = map_lookup(&ports, &port);
	return place ? redirect(&sockets, *place, XDP_PASS) : XDP_PASS;
}
