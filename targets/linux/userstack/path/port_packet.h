/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of frames in BPF: Ethernet, IP, fragments, ports. Included once by port_programs.c. */
#ifndef BW_PORT_PACKET_H
#define BW_PORT_PACKET_H

#include <linux/bpf.h>

#include "path.h"

#define SECTION(name) __attribute__((section(name), used))
#define ALWAYS_INLINE static __attribute__((always_inline)) inline

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NETWORK16(value) __builtin_bswap16(value)
#else
#define NETWORK16(value) (value)
#endif

enum {
	ETHERTYPE_IPV4 = 0x0800, ETHERTYPE_IPV6 = 0x86dd,
	PROTOCOL_ICMP = 1, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, PROTOCOL_FRAGMENT = 44, PROTOCOL_ICMPV6 = 58,
	IPV4_MORE = 0x2000, IPV4_OFFSET = 0x1fff, IPV6_MORE = 1, IPV6_OFFSET = 0xfff8,
};

/* Helpers of the kernel, by their numbers. */
static void *(*const map_lookup)(const void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*const map_update)(const void *map, const void *key, const void *value, uint64_t flags) =
	(void *)BPF_FUNC_map_update_elem;
static long (*const map_delete)(const void *map, const void *key) = (void *)BPF_FUNC_map_delete_elem;
static uint64_t (*const frame_bytes)(struct xdp_md *frame) = (void *)BPF_FUNC_xdp_get_buff_len;

/* Bytes of a frame, which may be in several buffers: 0, or less than that if it is shorter. */
static long (*const load_xdp)(struct xdp_md *frame, uint64_t offset, void *to, uint64_t bytes) = (void *)BPF_FUNC_xdp_load_bytes;
static long (*const load_skb)(struct __sk_buff *frame, uint64_t offset, void *to, uint64_t bytes) =
	(void *)BPF_FUNC_skb_load_bytes;
#define load_frame(context, offset, to, bytes) \
	_Generic((context), struct xdp_md *: load_xdp, struct __sk_buff *: load_skb)(context, offset, to, bytes)

struct ethernet_header {
	uint8_t destination[PATH_MAC_BYTES], source[PATH_MAC_BYTES];
	uint16_t type;
};

struct ipv4_header {
	uint8_t version_words, service;
	uint16_t total_bytes, id, fragment;
	uint8_t hops, protocol;
	uint16_t checksum;
	uint8_t source[4], destination[4];
};

struct ipv6_header {
	uint8_t version, flow[3];
	uint16_t payload_bytes;
	uint8_t protocol, hops;
	uint8_t source[PATH_IP_BYTES], destination[PATH_IP_BYTES];
};

struct ipv6_fragment {
	uint8_t protocol, reserved;
	uint16_t offset;
	uint32_t id;
};

struct icmp_header {
	uint8_t type, code;
	uint16_t checksum;
	uint32_t rest;
};

struct packet {
	struct path_fragment key; /* its protocol is the one behind all headers of IP */
	uint32_t ip_bytes;       /* from the header of IP on */
	uint32_t transport_at;   /* in the frame */
	uint16_t ports[2];       /* source, destination; in the order of this machine */
	uint8_t fragment;        /* one of several */
	uint8_t has_ports;       /* TCP or UDP, and not a later fragment */
};

ALWAYS_INLINE int same_mac(const uint8_t *one, const uint8_t *other)
{
	const uint16_t *a = (const uint16_t *)one, *b = (const uint16_t *)other;

	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

ALWAYS_INLINE int same_address(const struct path_address *one, const struct path_address *other)
{
	const uint32_t *a = (const uint32_t *)one->ip, *b = (const uint32_t *)other->ip;

	return one->family == other->family && a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

ALWAYS_INLINE uint32_t family_of(const struct ethernet_header *ethernet)
{
	if (ethernet->type == NETWORK16(ETHERTYPE_IPV4))
		return 4;
	return ethernet->type == NETWORK16(ETHERTYPE_IPV6) ? 6 : 0;
}

/*
 * Fill in a packet from the header of IP at an offset of a frame: 0, or other than that where the header is not sound. Options
 * of IPv4 are passed over; of the extension headers of IPv6 that of fragments alone, directly behind the fixed one.
 */
#define READ_IPV4(context, at, packet) ({ \
	struct ipv4_header ip; \
	long bad = load_frame(context, at, &ip, sizeof(ip)) || ip.version_words >> 4 != 4 || (ip.version_words & 15) < 5; \
	if (!bad) { \
		const uint16_t place = NETWORK16(ip.fragment); \
		(packet)->ip_bytes = NETWORK16(ip.total_bytes); \
		(packet)->transport_at = (at) + 4 * (ip.version_words & 15); \
		(packet)->key.protocol = ip.protocol; \
		(packet)->key.id = ip.id; \
		(packet)->fragment = (place & (IPV4_MORE | IPV4_OFFSET)) != 0; \
		(packet)->has_ports = (place & IPV4_OFFSET) == 0; \
		__builtin_memcpy((packet)->key.source.ip, ip.source, 4); \
		__builtin_memcpy((packet)->key.destination.ip, ip.destination, 4); \
	} \
	bad; })

#define READ_IPV6(context, at, packet) ({ \
	struct ipv6_header ip; \
	struct ipv6_fragment part; \
	long bad = load_frame(context, at, &ip, sizeof(ip)) || ip.version >> 4 != 6; \
	if (!bad) { \
		(packet)->ip_bytes = sizeof(ip) + NETWORK16(ip.payload_bytes); \
		(packet)->transport_at = (at) + sizeof(ip); \
		(packet)->key.protocol = ip.protocol; \
		(packet)->has_ports = 1; \
		__builtin_memcpy((packet)->key.source.ip, ip.source, PATH_IP_BYTES); \
		__builtin_memcpy((packet)->key.destination.ip, ip.destination, PATH_IP_BYTES); \
		if (ip.protocol == PROTOCOL_FRAGMENT) { \
			bad = load_frame(context, (at) + sizeof(ip), &part, sizeof(part)); \
			if (!bad) { \
				(packet)->transport_at += sizeof(part); \
				(packet)->key.protocol = part.protocol; \
				(packet)->key.id = part.id; \
				(packet)->fragment = 1; \
				(packet)->has_ports = (NETWORK16(part.offset) & IPV6_OFFSET) == 0; \
			} \
		} \
	} \
	bad; })

/* The same for the family that the key names; ports, too. The headers have to lie in the packet, as it says itself. */
#define READ_IP(context, at, packet) ({ \
	uint16_t ports[2] = { 0 }; \
	long unsound = (packet)->key.source.family == 4 ? READ_IPV4(context, at, packet) : READ_IPV6(context, at, packet); \
	if ((packet)->key.protocol != PROTOCOL_TCP && (packet)->key.protocol != PROTOCOL_UDP) \
		(packet)->has_ports = 0; \
	if (!unsound && (packet)->has_ports) \
		unsound = (at) + (packet)->ip_bytes < (packet)->transport_at + sizeof(ports) || \
			  load_frame(context, (packet)->transport_at, ports, sizeof(ports)); \
	(packet)->ports[0] = NETWORK16(ports[0]); \
	(packet)->ports[1] = NETWORK16(ports[1]); \
	unsound; })

#endif
