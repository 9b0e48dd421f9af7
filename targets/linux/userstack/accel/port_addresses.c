/* SPDX-License-Identifier: Apache-2.0 */
#include "port_addresses.h"

#include <errno.h>
#include <string.h>

enum { IPV4_MAPPED_AT = 12, LOOPBACK_NET = 127, MULTICAST_NET4 = 224, RESERVED_NET4 = 240, MULTICAST_NET6 = 0xff };

int address_from_sockaddr(const struct sockaddr *sockaddr, socklen_t length, struct stack_address *address)
{
	struct sockaddr_in6 six;
	struct sockaddr_in four;
	sa_family_t family;

	*address = (struct stack_address){ 0 };
	if (!sockaddr || length < (socklen_t)sizeof(family))
		return -EINVAL;
	memcpy(&family, sockaddr, sizeof(family));
	if (family == AF_INET && length >= (socklen_t)sizeof(four)) {
		memcpy(&four, sockaddr, sizeof(four));
		address->family = STACK_IPV4;
		address->port = ntohs(four.sin_port);
		memcpy(address->ip, &four.sin_addr, sizeof(four.sin_addr));
		return 0;
	}
	if (family != AF_INET6)
		return family == AF_INET ? -EINVAL : -EAFNOSUPPORT;
	if (length < (socklen_t)sizeof(six))
		return -EINVAL;
	memcpy(&six, sockaddr, sizeof(six));
	address->port = ntohs(six.sin6_port);
	if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
		address->family = STACK_IPV4;
		memcpy(address->ip, six.sin6_addr.s6_addr + IPV4_MAPPED_AT, sizeof(four.sin_addr));
		return 0;
	}
	address->family = STACK_IPV6;
	memcpy(address->ip, &six.sin6_addr, sizeof(six.sin6_addr));
	return 0;
}

struct in6_addr address_as_ipv6(const struct stack_address *address)
{
	struct in6_addr as_ipv6 = { 0 };

	if (address->family == STACK_IPV6) {
		memcpy(&as_ipv6, address->ip, sizeof(as_ipv6));
	} else {
		memset(as_ipv6.s6_addr + IPV4_MAPPED_AT - 2, 0xff, 2);
		memcpy(as_ipv6.s6_addr + IPV4_MAPPED_AT, address->ip, sizeof(struct in_addr));
	}
	return as_ipv6;
}

void address_to_sockaddr(int domain, const struct stack_address *address, struct sockaddr *sockaddr, socklen_t *length)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(address->port), .sin6_addr = address_as_ipv6(address) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(address->port) };
	socklen_t whole = domain == AF_INET6 ? sizeof(six) : sizeof(four);

	if (!sockaddr || !length)
		return;
	memcpy(&four.sin_addr, address->ip, sizeof(four.sin_addr));
	if (*length)
		memcpy(sockaddr, domain == AF_INET6 ? (const void *)&six : (const void *)&four, *length < whole ? *length : whole);
	*length = whole;
}

size_t address_bytes(const struct stack_address *address)
{
	return address->family == STACK_IPV6 ? 16 : 4;
}

bool address_is_any(const struct stack_address *address)
{
	static const uint8_t zero[16];

	return memcmp(address->ip, zero, address_bytes(address)) == 0;
}

bool address_is_loopback(const struct stack_address *address)
{
	static const uint8_t loopback6[16] = { [15] = 1 };

	if (address->family == STACK_IPV4)
		return address->ip[0] == LOOPBACK_NET || address_is_any(address);
	return memcmp(address->ip, loopback6, sizeof(loopback6)) == 0 || address_is_any(address);
}

bool address_is_of_many(const struct stack_address *address)
{
	static const uint8_t broadcast4[] = { 255, 255, 255, 255 };

	if (address->family == STACK_IPV6)
		return address->ip[0] == MULTICAST_NET6;
	return (address->ip[0] >= MULTICAST_NET4 && address->ip[0] < RESERVED_NET4) || memcmp(address->ip, broadcast4, sizeof(broadcast4)) == 0;
}
