/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packet path between an interface and the programs that have ports on it.
 *
 *   ingress  at the driver of the interface: what is for a program's port goes to its veth; all else goes on to the kernel untouched
 *   deliver  at the program's end of the veth: everything goes into the program's socket of AF_XDP
 *   egress   where the veth comes out again: only what the program may send goes on to the interface
 *
 * Programs without calls of sub-programs or kernel functions, so that the interpreter of a 32-bit ARM runs them, too.
 */
#include <linux/bpf.h>

#include "port_packet.h"
#include "path.h"

enum { DROP = 2 }; /* of tcx */

/* Stand for the maps, which port_path.c makes; the names are what it knows them by. */
SECTION("maps") char interface, addresses, owners, numbers, slots, counts, veths, fragments_in, fragments_out, sockets;

static long (*const redirect_map)(const void *map, uint64_t key, uint64_t otherwise) = (void *)BPF_FUNC_redirect_map;
static long (*const redirect)(uint32_t interface_index, uint64_t flags) = (void *)BPF_FUNC_redirect;
static long (*const store_skb)(struct __sk_buff *frame, uint64_t offset, const void *from, uint64_t bytes, uint64_t flags) =
	(void *)BPF_FUNC_skb_store_bytes;

ALWAYS_INLINE const struct path_interface *the_interface(void)
{
	const uint32_t first = 0;

	return map_lookup(&interface, &first);
}

/* Whether an address is among those that an owner has the port on. */
ALWAYS_INLINE int is_among(const struct path_address *own, const struct path_address *only)
{
	const uint32_t *ip = (const uint32_t *)only->ip;

	return !only->family || same_address(only, own) || (only->family == own->family && !(ip[0] | ip[1] | ip[2] | ip[3]));
}

/* The number of the program that has a port of an address; 0: none. */
ALWAYS_INLINE uint32_t owner_of(uint32_t protocol, const struct path_address *own, uint16_t port)
{
	const uint32_t key = path_port_key(protocol, port);
	const struct path_owner *owner = map_lookup(&owners, &key);

	return owner && is_among(own, &owner->only) ? owner->number : 0;
}

/* A program's number, as long as the program is there: what was noted of a first fragment may be older. */
ALWAYS_INLINE uint32_t if_still_there(const uint32_t *noted)
{
	const uint32_t number = noted ? *noted : 0, slot = number % PATH_SLOTS;
	const uint32_t *now = map_lookup(&numbers, &slot);

	return now && *now == number ? number : 0;
}

ALWAYS_INLINE struct path_counts *counts_of(uint32_t number)
{
	const uint32_t slot = number % PATH_SLOTS;

	return map_lookup(&counts, &slot); /* one for each processor */
}

/* The program that an error of ICMP is for: it is about a packet that the program has sent. */
ALWAYS_INLINE uint32_t receiver_of_error(struct xdp_md *context, const struct packet *packet)
{
	struct packet about = { 0 };
	struct icmp_header icmp;

	if (packet->fragment || load_frame(context, packet->transport_at, &icmp, sizeof(icmp)))
		return 0;
	if (packet->key.protocol == PROTOCOL_ICMP ? icmp.type != 3 && icmp.type != 11 && icmp.type != 12
						  : icmp.type < 1 || icmp.type > 4)
		return 0;
	about.key.source.family = about.key.destination.family = packet->key.source.family;
	if (READ_IP(context, packet->transport_at + sizeof(icmp), &about) || !about.has_ports)
		return 0;
	if (!same_address(&about.key.source, &packet->key.destination))
		return 0;
	return owner_of(about.key.protocol, &about.key.source, about.ports[0]);
}

/* The number of the program that a packet to this machine is for; 0: the kernel's own stack. */
ALWAYS_INLINE uint32_t receiver_of(struct xdp_md *context, const struct packet *packet)
{
	const uint32_t protocol = packet->key.protocol;
	uint32_t number;

	if (protocol == (packet->key.source.family == 4 ? PROTOCOL_ICMP : PROTOCOL_ICMPV6))
		return receiver_of_error(context, packet);
	if (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP)
		return 0;
	if (!packet->has_ports)
		return if_still_there(map_lookup(&fragments_in, &packet->key));
	number = owner_of(protocol, &packet->key.destination, packet->ports[1]);
	if (packet->fragment && number)
		map_update(&fragments_in, &packet->key, &number, BPF_ANY);
	else if (packet->fragment) /* an older packet may have had its number */
		map_delete(&fragments_in, &packet->key);
	return number;
}

SECTION("ingress") int take_in(struct xdp_md *context)
{
	const struct path_interface *own = the_interface();
	struct ethernet_header ethernet;
	struct path_counts *of_program;
	struct packet packet = { 0 };
	uint32_t number;

	if (!own || load_frame(context, 0, &ethernet, sizeof(ethernet)) || !same_mac(ethernet.destination, own->mac))
		return XDP_PASS;
	packet.key.source.family = packet.key.destination.family = family_of(&ethernet);
	if (!packet.key.source.family || READ_IP(context, sizeof(ethernet), &packet))
		return XDP_PASS;
	if (sizeof(ethernet) + packet.ip_bytes > frame_bytes(context) || !map_lookup(&addresses, &packet.key.destination))
		return XDP_PASS;
	number = receiver_of(context, &packet);
	of_program = counts_of(number);
	if (!number || !of_program)
		return XDP_PASS;
	of_program->of[PATH_IN]++;
	of_program->of[PATH_BYTES_IN] += packet.ip_bytes;
	return (int)redirect_map(&veths, number % PATH_SLOTS, XDP_DROP);
}

SECTION("deliver") int hand_over(struct xdp_md *context)
{
	return (int)redirect_map(&sockets, context->rx_queue_index, XDP_DROP);
}

/* Why a program may not send a frame, as what is counted; PATH_OUT: it may. */
ALWAYS_INLINE uint32_t judge(struct __sk_buff *context, uint32_t number, const struct path_interface *own, struct packet *packet)
{
	struct ethernet_header ethernet;

	if (load_frame(context, 0, &ethernet, sizeof(ethernet)))
		return PATH_MALFORMED;
	packet->key.source.family = packet->key.destination.family = family_of(&ethernet);
	if (!packet->key.source.family || (ethernet.destination[0] & 1))
		return PATH_FOREIGN_PROTOCOL;
	if (READ_IP(context, sizeof(ethernet), packet))
		return PATH_MALFORMED;
	if (packet->ip_bytes > own->mtu_bytes || sizeof(ethernet) + packet->ip_bytes != context->len)
		return PATH_MALFORMED;
	if (packet->key.protocol != PROTOCOL_TCP && packet->key.protocol != PROTOCOL_UDP)
		return PATH_FOREIGN_PROTOCOL;
	if (!map_lookup(&addresses, &packet->key.source))
		return PATH_FOREIGN_ADDRESS;
	if (!packet->has_ports)
		return if_still_there(map_lookup(&fragments_out, &packet->key)) == number ? PATH_OUT : PATH_FOREIGN_FRAGMENT;
	if (owner_of(packet->key.protocol, &packet->key.source, packet->ports[0]) != number)
		return PATH_FOREIGN_PORT;
	if (packet->fragment)
		map_update(&fragments_out, &packet->key, &number, BPF_ANY);
	return PATH_OUT;
}

SECTION("egress") int let_out(struct __sk_buff *context)
{
	const struct path_interface *own = the_interface();
	const uint32_t veth = context->ifindex, *number = map_lookup(&slots, &veth);
	struct path_counts *of_program = number ? counts_of(*number) : 0;
	struct packet packet = { 0 };
	uint32_t verdict;

	if (!own || !number || !of_program)
		return DROP;
	verdict = judge(context, *number, own, &packet);
	if (verdict < PATH_COUNTS)
		of_program->of[verdict]++;
	if (verdict != PATH_OUT || store_skb(context, PATH_MAC_BYTES, own->mac, PATH_MAC_BYTES, 0))
		return DROP;
	of_program->of[PATH_BYTES_OUT] += packet.ip_bytes;
	return (int)redirect(own->index, 0);
}
