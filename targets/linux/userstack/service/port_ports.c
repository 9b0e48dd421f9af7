/* SPDX-License-Identifier: Apache-2.0 */
/* Who has which port: whoever has a socket of the kernel that is bound to it, first come. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "service/port_service.h"

struct port *port_of(struct service *service, uint8_t protocol, uint16_t port)
{
	return &service->ports[protocol == IPPROTO_TCP ? 0 : 1][port];
}

static int option_of(int descriptor, int level, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	return getsockopt(descriptor, level, name, &value, &size) ? -1 : value;
}

static uint64_t namespace_of(int descriptor)
{
	uint64_t cookie = 0;
	socklen_t size = sizeof(cookie);

	return getsockopt(descriptor, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) ? 0 : cookie;
}

static bool is_any(const struct path_address *address)
{
	static const uint8_t any[PATH_IP_BYTES];

	return !memcmp(address->ip, any, sizeof(any));
}

/* Whether an address is any, or one of the interface's: a port of another interface is none of ours. */
static bool address_fits(const struct service *service, const struct path_address *address)
{
	bool fits = is_any(address);

	for (int i = 0; i < service->address_count && !fits; i++)
		fits = !memcmp(&service->addresses[i], address, sizeof(*address));
	return fits;
}

/* @param only  receives what it is bound to, as struct path_owner has it */
static bool bound_to(const struct service *service, int descriptor, uint16_t port, struct path_address *only)
{
	union {
		struct sockaddr any;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} address = { .any = { .sa_family = AF_UNSPEC } };
	socklen_t size = sizeof(address);

	*only = (struct path_address){ 0 };
	if (getsockname(descriptor, &address.any, &size) < 0)
		return false;
	if (address.any.sa_family == AF_INET) {
		only->family = 4;
		memcpy(only->ip, &address.ipv4.sin_addr, sizeof(address.ipv4.sin_addr));
		return ntohs(address.ipv4.sin_port) == port && address_fits(service, only);
	}
	if (address.any.sa_family != AF_INET6 || ntohs(address.ipv6.sin6_port) != port)
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&address.ipv6.sin6_addr)) {
		only->family = 4;
		memcpy(only->ip, address.ipv6.sin6_addr.s6_addr + 12, 4);
	} else {
		only->family = 6;
		memcpy(only->ip, address.ipv6.sin6_addr.s6_addr, PATH_IP_BYTES);
		if (is_any(only) && !option_of(descriptor, IPPROTO_IPV6, IPV6_V6ONLY))
			only->family = 0;
	}
	return address_fits(service, only);
}

/* What two of them are together: on two addresses of a family it is all of that, on both families all. */
static struct path_address together(const struct path_address *one, const struct path_address *other)
{
	if (!memcmp(one, other, sizeof(*one)))
		return *one;
	return (struct path_address){ .family = one->family == other->family ? one->family : 0 };
}

static bool has_port(const struct service *service, const struct stackd_request *request, int descriptor, struct path_address *only)
{
	return request->port && (request->protocol == IPPROTO_TCP || request->protocol == IPPROTO_UDP) &&
	       option_of(descriptor, SOL_SOCKET, SO_PROTOCOL) == request->protocol &&
	       namespace_of(descriptor) == namespace_of(service->netlink) && bound_to(service, descriptor, request->port, only);
}

/* Close a socket that a program has given, and never wait for what it still has to send. */
static void close_given(int descriptor)
{
	const struct linger off = { 0, 0 };

	setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	close(descriptor);
}

int port_bind(struct service *service, struct program *program, const struct stackd_request *request, int descriptor)
{
	struct port *port = port_of(service, request->protocol, request->port);
	struct path_owner owner = { .number = program->path.number };
	int err;

	if (descriptor < 0 || !has_port(service, request, descriptor, &owner.only))
		return -EINVAL;
	if (port->owner.number && port->owner.number != owner.number)
		return -EADDRINUSE;
	if (port->owner.number)
		owner.only = together(&owner.only, &port->owner.only);
	err = path_give(&service->path, request->protocol, request->port, &owner);
	if (err)
		return err;
	if (port->owner.number)
		close_given(port->descriptor);
	else
		program->port_count++;
	*port = (struct port){ owner, descriptor };
	return 0;
}

static void free_port(struct service *service, uint8_t protocol, uint16_t port)
{
	struct port *entry = port_of(service, protocol, port);
	const struct path_owner nobody = { 0 };

	path_give(&service->path, protocol, port, &nobody);
	close_given(entry->descriptor);
	*entry = (struct port){ nobody, -1 };
}

int port_unbind(struct service *service, struct program *program, const struct stackd_request *request)
{
	if (request->protocol != IPPROTO_TCP && request->protocol != IPPROTO_UDP)
		return -EINVAL;
	if (port_of(service, request->protocol, request->port)->owner.number != program->path.number)
		return -EINVAL;
	free_port(service, request->protocol, request->port);
	program->port_count--;
	return 0;
}

void ports_free(struct service *service, uint32_t number)
{
	for (int port = 1; port < PATH_PORTS; port++) {
		if (port_of(service, IPPROTO_TCP, (uint16_t)port)->owner.number == number)
			free_port(service, IPPROTO_TCP, (uint16_t)port);
		if (port_of(service, IPPROTO_UDP, (uint16_t)port)->owner.number == number)
			free_port(service, IPPROTO_UDP, (uint16_t)port);
	}
}
