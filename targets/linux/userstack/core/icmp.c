/* SPDX-License-Identifier: Apache-2.0 */
/* What did not arrive, of which lwIP does not hear: what ICMP, or the host, says to the connection or the socket that sent it. */
#include <errno.h>
#include <string.h>

#include "stack_internal.h"

#include "lwip/icmp.h"
#include "lwip/inet_chksum.h"
#include "lwip/prot/icmp6.h"
#include "lwip/prot/ip.h"
#include "lwip/prot/ip6.h"

enum {
	IPV4_HEADER_BYTES = 20,
	IPV6_HEADER_BYTES = 40,
	ICMP_HEADER_BYTES = 8,
	QUOTED_BYTES = 8, /* of TCP and UDP: what IPv4 has to quote */
};

/* An error: the packet that it is about, and what it says. */
struct icmp_error {
	uint8_t protocol;
	struct stack_address local, remote;
	uint32_t sequence;
	uint16_t packet_bytes; /* of the packet that did not get through */
	int err;                      /* errno; 0: only the size of packets */
	bool hard;                    /* trying again is of no use */
	uint32_t mtu_bytes;
	bool too_big;
};

static uint16_t read16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static uint32_t read32(const uint8_t *bytes)
{
	return (uint32_t)read16(bytes) << 16 | read16(bytes + 2);
}

/* RFC 1191, 7.1: the next lower size that links have, for a router that does not tell its own. */
static uint32_t plateau_below(uint32_t packet_bytes)
{
	static const uint16_t plateaus[] = { 32000, 17914, 8166, 4352, 2002, 1492, 1006, 508 };
	size_t i = 0;

	while (i + 1 < sizeof(plateaus) / sizeof(plateaus[0]) && plateaus[i] >= packet_bytes)
		i++;
	return plateaus[i];
}

/* What IPv4's types and codes say. Return whether it is an error for a socket. */
static bool read_ipv4_kind(const uint8_t *icmp, struct icmp_error *error)
{
	static const struct {
		int err;
		bool hard;
	} unreachable[] = {
		{ ENETUNREACH, false }, { EHOSTUNREACH, false }, { ENOPROTOOPT, true },   { ECONNREFUSED, true },
		{ EMSGSIZE, false },    { EOPNOTSUPP, false },   { ENETUNREACH, true },   { EHOSTDOWN, true },
		{ ENONET, true },       { ENETUNREACH, true },   { EHOSTUNREACH, true },  { ENETUNREACH, false },
		{ EHOSTUNREACH, false }, { EHOSTUNREACH, true }, { EHOSTUNREACH, true },  { EHOSTUNREACH, true },
	};
	uint8_t type = icmp[0], code = icmp[1];

	if (type == ICMP_TE) {
		error->err = EHOSTUNREACH;
		return true;
	}
	if (type == ICMP_PP) {
		error->err = EPROTO;
		error->hard = true;
		return true;
	}
	if (type != ICMP_DUR || code >= sizeof(unreachable) / sizeof(unreachable[0]))
		return false;
	error->err = unreachable[code].err;
	error->hard = unreachable[code].hard;
	error->too_big = code == ICMP_DUR_FRAG;
	error->mtu_bytes = read16(icmp + 6);
	return true;
}

static bool read_ipv6_kind(const uint8_t *icmp, struct icmp_error *error)
{
	static const struct {
		int err;
		bool hard;
	} unreachable[] = {
		{ ENETUNREACH, false }, { EACCES, true },       { EHOSTUNREACH, false }, { EHOSTUNREACH, false },
		{ ECONNREFUSED, true }, { EACCES, true },       { EACCES, true },
	};
	uint8_t type = icmp[0], code = icmp[1];

	if (type == ICMP6_TYPE_TE) {
		error->err = EHOSTUNREACH;
		return true;
	}
	if (type == ICMP6_TYPE_PP) {
		error->err = EPROTO;
		error->hard = true;
		return true;
	}
	if (type == ICMP6_TYPE_PTB) {
		error->err = EMSGSIZE;
		error->too_big = true;
		error->mtu_bytes = read32(icmp + 4);
		return true;
	}
	if (type != ICMP6_TYPE_DUR || code >= sizeof(unreachable) / sizeof(unreachable[0]))
		return false;
	error->err = unreachable[code].err;
	error->hard = unreachable[code].hard;
	return true;
}

/* Take the ports and, of TCP, the sequence number from what is behind the IP header. */
static void read_transport(const uint8_t *transport, struct icmp_error *error)
{
	error->local.port = read16(transport);
	error->remote.port = read16(transport + 2);
	error->sequence = read32(transport + 4);
}

/* Read the packet that an error is about, or what is quoted of it. Return whether it is of this family, and enough of it. */
static bool read_lost(const uint8_t *packet, size_t size_bytes, enum stack_family family, struct icmp_error *error)
{
	const bool ipv4 = family == STACK_IPV4;
	const size_t header_bytes = ipv4 ? (size_t)(packet[0] & 15) * 4 : IPV6_HEADER_BYTES, ip_bytes = ipv4 ? 4 : 16;
	const uint8_t *ips = packet + (ipv4 ? 12 : 8);

	if (packet[0] >> 4 != (int)family || header_bytes < IPV4_HEADER_BYTES || header_bytes + QUOTED_BYTES > size_bytes)
		return false;
	if (ipv4 && read16(packet + 6) & 0x1fff) /* a later fragment */
		return false;
	error->protocol = packet[ipv4 ? 9 : 6];
	error->packet_bytes = ipv4 ? read16(packet + 2) : (uint16_t)(read16(packet + 4) + IPV6_HEADER_BYTES);
	error->local.family = error->remote.family = family;
	memcpy(error->local.ip, ips, ip_bytes);
	memcpy(error->remote.ip, ips + ip_bytes, ip_bytes);
	read_transport(packet + header_bytes, error);
	return true;
}

/* Read an error over IPv4. Return whether it is one, sound and about a packet that this stack may have sent. */
static bool read_ipv4(const uint8_t *packet, size_t size_bytes, struct icmp_error *error)
{
	size_t header_bytes = (size_t)(packet[0] & 15) * 4, length;
	const uint8_t *icmp = packet + header_bytes, *quoted = icmp + ICMP_HEADER_BYTES;

	if (size_bytes < IPV4_HEADER_BYTES || header_bytes < IPV4_HEADER_BYTES || packet[9] != IP_PROTO_ICMP || read16(packet + 6) & 0x3fff)
		return false;
	length = read16(packet + 2);
	if (length > size_bytes || length < header_bytes + ICMP_HEADER_BYTES + IPV4_HEADER_BYTES + QUOTED_BYTES)
		return false;
	if (!read_ipv4_kind(icmp, error) || inet_chksum(packet, (u16_t)header_bytes) || inet_chksum(icmp, (u16_t)(length - header_bytes)))
		return false;
	return memcmp(quoted + 12, packet + 16, 4) == 0 && read_lost(quoted, length - (size_t)(quoted - packet), STACK_IPV4, error);
}

/* The checksum of ICMPv6, pseudo header and all: 0 if it is right. */
static uint16_t ipv6_sum(const uint8_t *packet, size_t length)
{
	uint32_t sum = (uint32_t)length + IP6_NEXTH_ICMP6;
	const uint8_t *each = packet + 8, *end = packet + IPV6_HEADER_BYTES + length;

	for (; each + 1 < end; each += 2)
		sum += read16(each);
	if (each < end)
		sum += (uint32_t)*each << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static bool read_ipv6(const uint8_t *packet, size_t size_bytes, struct icmp_error *error)
{
	const uint8_t *icmp = packet + IPV6_HEADER_BYTES, *quoted = icmp + ICMP_HEADER_BYTES;
	size_t length;

	if (size_bytes < IPV6_HEADER_BYTES || packet[6] != IP6_NEXTH_ICMP6)
		return false;
	length = read16(packet + 4);
	if (length + IPV6_HEADER_BYTES > size_bytes || length < ICMP_HEADER_BYTES + IPV6_HEADER_BYTES + QUOTED_BYTES)
		return false;
	if (!read_ipv6_kind(icmp, error) || ipv6_sum(packet, length))
		return false;
	return memcmp(quoted + 8, packet + 24, 16) == 0 && read_lost(quoted, length - ICMP_HEADER_BYTES, STACK_IPV6, error);
}

static void tell(struct icmp_error *error)
{
	if (error->too_big && !error->mtu_bytes)
		error->mtu_bytes = plateau_below(error->packet_bytes);
	if (error->protocol == IP_PROTO_TCP) {
		if (error->too_big)
			stack_tcp_too_big(&error->local, &error->remote, error->sequence, error->mtu_bytes);
		else
			stack_tcp_unreachable(&error->local, &error->remote, error->sequence, error->err);
	} else if (error->protocol == IP_PROTO_UDP && (error->hard || error->too_big)) {
		stack_udp_unreachable(&error->local, &error->remote, error->err);
	}
}

bool stack_icmp_input(const uint8_t *packet, size_t size_bytes)
{
	struct icmp_error error = { 0 };

	if (!size_bytes || !(packet[0] >> 4 == 4 ? read_ipv4(packet, size_bytes, &error) :
			     packet[0] >> 4 == 6 ? read_ipv6(packet, size_bytes, &error) : false))
		return false;
	if (stack_address_is_local(&error.local))
		tell(&error);
	return true;
}

void stack_unreachable(const uint8_t *packet, size_t size_bytes, int err)
{
	struct icmp_error error = { .err = err };

	if (size_bytes && read_lost(packet, size_bytes, packet[0] >> 4 == 4 ? STACK_IPV4 : STACK_IPV6, &error))
		tell(&error);
}
