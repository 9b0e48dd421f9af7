/* SPDX-License-Identifier: Apache-2.0 */
/* The stack as a whole: its host, its interface, its time, its counters. */
#include "stack_internal.h"
#include "congestion.h"
#include "recovery.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lwip/inet_chksum.h"
#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/prot/ip.h"
#include "lwip/stats.h"
#include "lwip/sys.h"
#include "lwip/timeouts.h"
#include "lwip/udp.h"

enum { MTU_MIN_BYTES = 68, MTU_MAX_BYTES = 65535, IPV4_ADDRESSES = 16 };

static_assert(sizeof(STAT_COUNTER) == sizeof(uint64_t), "counters never fall");

struct stack_host stack_host_calls;
void *stack_host_argument;

static struct netif interface;
static ip4_addr_t ipv4_addresses[IPV4_ADDRESSES]; /* the first one is that of lwIP's interface, too */
static size_t ipv4_count;
static uint64_t now_us, arrived_realtime_ns, packets_in, packets_out, udp_full;
static uint8_t output_packet[MTU_MAX_BYTES];

uint64_t stack_now_us(void)
{
	return now_us;
}

uint64_t stack_arrived_realtime_ns(void)
{
	return arrived_realtime_ns;
}

void stack_set_arrival(uint64_t realtime_ns)
{
	arrived_realtime_ns = realtime_ns;
}

/* lwIP's clock. */
u32_t sys_now(void)
{
	return (u32_t)(now_us / US_PER_MS);
}

uint32_t stack_random(void)
{
	uint32_t value = 0;

	stack_host_calls.random(stack_host_argument, &value, sizeof(value));
	return value;
}

/* Let no router break up a segment over IPv4: it says that it is too large instead (RFC 1191), unless it is small. */
static void forbid_fragments(uint8_t *packet, size_t length)
{
	enum { PROTOCOL_AT = 9, FLAGS_AT = 6, SUM_AT = 10, DO_NOT_FRAGMENT = 0x40 };
	uint16_t sum = 0;

	if (packet[PROTOCOL_AT] != IP_PROTO_TCP || length <= STACK_FRAGMENT_BYTES)
		return;
	packet[FLAGS_AT] = DO_NOT_FRAGMENT;
	memcpy(packet + SUM_AT, &sum, sizeof(sum));
	sum = inet_chksum(packet, (u16_t)((packet[0] & 15) * 4));
	memcpy(packet + SUM_AT, &sum, sizeof(sum));
}

static err_t send_packet(struct pbuf *packet)
{
	u16_t length = pbuf_copy_partial(packet, output_packet, sizeof(output_packet), 0);

	if (length != packet->tot_len)
		return ERR_BUF;
	if (output_packet[0] >> 4 == 4)
		forbid_fragments(output_packet, length);
	packets_out++;
	stack_host_calls.output(stack_host_argument, output_packet, length);
	return ERR_OK;
}

static err_t send_ipv4(struct netif *netif, struct pbuf *packet, const ip4_addr_t *next_hop)
{
	LWIP_UNUSED_ARG(netif);
	LWIP_UNUSED_ARG(next_hop);
	return send_packet(packet);
}

static err_t send_ipv6(struct netif *netif, struct pbuf *packet, const ip6_addr_t *next_hop)
{
	LWIP_UNUSED_ARG(netif);
	LWIP_UNUSED_ARG(next_hop);
	return send_packet(packet);
}

static err_t begin_interface(struct netif *netif)
{
	netif->name[0] = 'u';
	netif->name[1] = 's';
	netif->mtu = 1500;
	netif->output = send_ipv4;
	netif->output_ip6 = send_ipv6;
	return ERR_OK;
}

/* Forget what was before: in a process that was forked that is the parent's. Its memory is let be. */
static void forget(void)
{
	memset(&interface, 0, sizeof(interface));
	netif_list = netif_default = NULL;
	ipv4_count = 0;
	tcp_listen_pcbs.listen_pcbs = NULL;
	tcp_bound_pcbs = tcp_active_pcbs = tcp_tw_pcbs = NULL;
	udp_pcbs = NULL;
	memset(&lwip_stats, 0, sizeof(lwip_stats));
	memset(&recovery_total, 0, sizeof(recovery_total));
	arrived_realtime_ns = packets_in = packets_out = udp_full = 0;
}

int stack_init(const struct stack_host *host, void *argument, uint64_t at_us)
{
	if (!host->output || !host->random)
		return -EINVAL;
	forget();
	stack_host_calls = *host;
	stack_host_argument = argument;
	now_us = at_us;
	lwip_init();
	if (!netif_add_noaddr(&interface, NULL, begin_interface, ip_input))
		return -ENOMEM;
	netif_set_default(&interface);
	netif_set_link_up(&interface);
	netif_set_up(&interface);
	return 0;
}

void stack_set_congestion(enum stack_congestion control)
{
	congestion_wanted = control == STACK_BBR ? &congestion_model : &congestion_window;
}

void stack_address_to_lwip(const struct stack_address *address, ip_addr_t *ip)
{
	uint32_t words[4];

	memcpy(words, address->ip, sizeof(words));
	if (address->family == STACK_IPV4) {
		ip_addr_set_ip4_u32_val(*ip, words[0]);
		return;
	}
	ip_addr_set_zero_ip6(ip);
	memcpy(ip_2_ip6(ip)->addr, words, sizeof(words));
}

void stack_address_from_lwip(const ip_addr_t *ip, uint16_t port, struct stack_address *address)
{
	memset(address, 0, sizeof(*address));
	address->port = port;
	if (IP_IS_V4(ip)) {
		address->family = STACK_IPV4;
		memcpy(address->ip, &ip_2_ip4(ip)->addr, sizeof(ip_2_ip4(ip)->addr));
	} else {
		address->family = STACK_IPV6;
		memcpy(address->ip, ip_2_ip6(ip)->addr, sizeof(address->ip));
	}
}

/* Find an IPv6 address of the interface. Return its index or -1. */
static int find_ipv6(const ip_addr_t *ip)
{
	for (int i = 0; i < LWIP_IPV6_NUM_ADDRESSES; i++) {
		if (ip6_addr_isvalid(netif_ip6_addr_state(&interface, i)) &&
		    ip6_addr_cmp_zoneless(netif_ip6_addr(&interface, i), ip_2_ip6(ip)))
			return i;
	}
	return -1;
}

/* Find an IPv4 address of the interface. Return its index, or how many there are. */
static size_t find_ipv4(const ip4_addr_t *ip)
{
	size_t i = 0;

	while (i < ipv4_count && !ip4_addr_cmp(&ipv4_addresses[i], ip))
		i++;
	return i;
}

int stack_has_ipv4(const ip4_addr_t *ip)
{
	return find_ipv4(ip) < ipv4_count;
}

bool stack_address_is_local(const struct stack_address *address)
{
	ip_addr_t ip;

	stack_address_to_lwip(address, &ip);
	if (ip_addr_isany(&ip))
		return true;
	if (IP_IS_V4_VAL(ip))
		return stack_has_ipv4(ip_2_ip4(&ip));
	return find_ipv6(&ip) >= 0;
}

/* lwIP's interface has the first one. Whoever is on the link, and which is the way to others, is the host's to know. */
static void set_first_ipv4(const ip4_addr_t *ip)
{
	netif_set_addr(&interface, ip, IP4_ADDR_ANY4, IP4_ADDR_ANY4);
}

static int add_ipv4(const ip4_addr_t *ip)
{
	if (ipv4_count == IPV4_ADDRESSES)
		return -ENOSPC;
	ipv4_addresses[ipv4_count++] = *ip;
	if (ipv4_count == 1)
		set_first_ipv4(ip);
	return 0;
}

/* Connections from it are reset; one that lwIP is told takes its place would get the sockets that are bound to it. */
static void remove_ipv4(const ip_addr_t *ip)
{
	size_t place = find_ipv4(ip_2_ip4(ip));

	if (place)
		tcp_netif_ip_addr_changed(ip, IP4_ADDR_ANY);
	else
		set_first_ipv4(IP4_ADDR_ANY4);
	ipv4_count--;
	memmove(ipv4_addresses + place, ipv4_addresses + place + 1, (ipv4_count - place) * sizeof(*ipv4_addresses));
	if (!place && ipv4_count)
		set_first_ipv4(ipv4_addresses);
}

/* lwIP itself would keep the first place for an address of a link. */
static int add_ipv6(const ip6_addr_t *ip)
{
	for (s8_t place = 0; place < LWIP_IPV6_NUM_ADDRESSES; place++) {
		if (ip6_addr_isvalid(netif_ip6_addr_state(&interface, place)))
			continue;
		netif_ip6_addr_set(&interface, place, ip);
		netif_ip6_addr_set_state(&interface, place, IP6_ADDR_PREFERRED);
		return 0;
	}
	return -ENOSPC;
}

int stack_add_address(const struct stack_address *address)
{
	ip_addr_t ip;

	stack_address_to_lwip(address, &ip);
	if (ip_addr_isany(&ip))
		return -EINVAL;
	if (stack_address_is_local(address))
		return 0;
	if (IP_IS_V4_VAL(ip))
		return add_ipv4(ip_2_ip4(&ip));
	return add_ipv6(ip_2_ip6(&ip));
}

int stack_remove_address(const struct stack_address *address)
{
	ip_addr_t ip;

	stack_address_to_lwip(address, &ip);
	if (ip_addr_isany(&ip) || !stack_address_is_local(address))
		return -EADDRNOTAVAIL;
	if (IP_IS_V4_VAL(ip))
		remove_ipv4(&ip);
	else
		netif_ip6_addr_set_state(&interface, (s8_t)find_ipv6(&ip), IP6_ADDR_INVALID);
	return 0;
}

int stack_set_mtu(size_t mtu_bytes)
{
	if (mtu_bytes < MTU_MIN_BYTES || mtu_bytes > MTU_MAX_BYTES)
		return -EINVAL;
	interface.mtu = (u16_t)mtu_bytes;
	stack_tcp_mtu_changed((u16_t)mtu_bytes);
	return 0;
}

void stack_advance_us(uint64_t at_us)
{
	if (at_us > now_us)
		now_us = at_us;
	recovery_advance_us(now_us);
	sys_check_timeouts();
}

uint64_t stack_next_us(void)
{
	u32_t left_ms = sys_timeouts_sleeptime();
	uint64_t recovery_us = recovery_next_us(), timeout_us = UINT64_MAX;

	if (left_ms != SYS_TIMEOUTS_SLEEPTIME_INFINITE)
		timeout_us = now_us + (uint64_t)left_ms * US_PER_MS;
	return recovery_us < timeout_us ? recovery_us : timeout_us;
}

void stack_input(const uint8_t *packet, size_t size_bytes)
{
	struct pbuf *copy;

	packets_in++;
	if (stack_icmp_input(packet, size_bytes))
		return;
	copy = size_bytes && size_bytes <= MTU_MAX_BYTES ? pbuf_alloc(PBUF_RAW, (u16_t)size_bytes, PBUF_RAM) : NULL;
	if (!copy) {
		IP_STATS_INC(ip.lenerr);
		return;
	}
	pbuf_take(copy, packet, (u16_t)size_bytes);
	if (interface.input(copy, &interface) != ERR_OK)
		pbuf_free(copy);
}

void stack_input_begin(void)
{
	recovery_together = true;
}

void stack_input_end(void)
{
	recovery_together = false;
	if (recovery_held_back)
		recovery_advance_us(now_us);
	recovery_held_back = false;
}

void stack_count_udp_full(void)
{
	udp_full++;
}

void stack_counts(struct stack_counts *counts)
{
	const struct stats_proto *ip = &lwip_stats.ip, *ip6 = &lwip_stats.ip6, *tcp = &lwip_stats.tcp, *udp = &lwip_stats.udp;

	*counts = (struct stack_counts){
		.packets_in = packets_in,
		.packets_out = packets_out,
		.ip_malformed = (uint64_t)ip->lenerr + ip->err + ip->proterr + ip->opterr + ip6->lenerr + ip6->err + ip6->proterr,
		.ip_checksum = ip->chkerr,
		.tcp_in = tcp->recv,
		.tcp_out = tcp->xmit,
		.tcp_malformed = (uint64_t)tcp->lenerr + tcp->proterr,
		.tcp_checksum = tcp->chkerr,
		.tcp_no_memory = tcp->memerr,
		.udp_in = udp->recv,
		.udp_out = udp->xmit,
		.udp_malformed = udp->lenerr,
		.udp_checksum = udp->chkerr,
		.udp_no_port = udp->proterr,
		.udp_full = udp_full,
		.retransmitted = recovery_total.retransmitted_segments,
		.retransmitted_by_rack = recovery_total.by_rack,
		.retransmitted_by_probe = recovery_total.by_probe,
		.retransmitted_by_timeout = recovery_total.by_timeout,
		.duplicates = recovery_total.duplicate_segments,
	};
}

int stack_errno(err_t err)
{
	switch (err) {
	case ERR_OK: return 0;
	case ERR_MEM: return -ENOMEM;
	case ERR_BUF: return -ENOBUFS;
	case ERR_TIMEOUT: return -ETIMEDOUT;
	case ERR_RTE: return -ENETUNREACH;
	case ERR_INPROGRESS: return -EINPROGRESS;
	case ERR_VAL: return -EINVAL;
	case ERR_WOULDBLOCK: return -EAGAIN;
	case ERR_USE: return -EADDRINUSE;
	case ERR_ALREADY: return -EALREADY;
	case ERR_ISCONN: return -EISCONN;
	case ERR_CONN: return -ENOTCONN;
	case ERR_IF: return -EIO;
	case ERR_ABRT: return -ECONNABORTED;
	case ERR_RST: return -ECONNRESET;
	case ERR_CLSD: return -EPIPE;
	default: return -EINVAL;
	}
}
