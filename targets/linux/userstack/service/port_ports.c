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

static int option_of(int descriptor, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) ? -1 : value;
}

static uint64_t namespace_of(int descriptor)
{
	uint64_t cookie = 0;
	socklen_t size = sizeof(cookie);

	return getsockopt(descriptor, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) ? 0 : cookie;
}

/*
 * Whether an address is any, or one of the interface's: a port of another interface is none of ours. *only: which of them it is; of
 * any its family is 0.
 */
static bool address_fits(const struct service *service, uint32_t family, const uint8_t *ip, size_t bytes, struct path_address *only)
{
	static const uint8_t any[PATH_IP_BYTES];

	*only = (struct path_address){ 0 };
	if (!memcmp(ip, any, bytes))
		return true;
	for (int i = 0; i < service->address_count; i++) {
		if (service->addresses[i].family == family && !memcmp(service->addresses[i].ip, ip, bytes)) {
			*only = service->addresses[i];
			return true;
		}
	}
	return false;
}

static bool bound_to(const struct service *service, int descriptor, uint16_t port, struct path_address *only)
{
	union {
		struct sockaddr any;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} address = { .any = { .sa_family = AF_UNSPEC } };
	socklen_t size = sizeof(address);

	if (getsockname(descriptor, &address.any, &size) < 0)
		return false;
	if (address.any.sa_family == AF_INET)
		return ntohs(address.ipv4.sin_port) == port &&
		       address_fits(service, 4, (const uint8_t *)&address.ipv4.sin_addr, 4, only);
	if (address.any.sa_family != AF_INET6 || ntohs(address.ipv6.sin6_port) != port)
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&address.ipv6.sin6_addr))
		return address_fits(service, 4, address.ipv6.sin6_addr.s6_addr + 12, 4, only);
	return address_fits(service, 6, address.ipv6.sin6_addr.s6_addr, PATH_IP_BYTES, only);
}

static bool has_port(const struct service *service, const struct stackd_request *request, int descriptor, struct path_address *only)
{
	return request->port && (request->protocol == IPPROTO_TCP || request->protocol == IPPROTO_UDP) &&
	       option_of(descriptor, SO_PROTOCOL) == request->protocol &&
	       namespace_of(descriptor) == namespace_of(service->netlink) && bound_to(service, descriptor, request->port, only);
}

/* Close a socket that a program has given, and never wait for what it still has to send. */
static void close_given(int descriptor)
{
	const struct linger off = { 0, 0 };

	setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	close(descriptor);
}

int port_bind(struct service *service, const struct program *program, const struct stackd_request *request, int descriptor)
{
	struct port *port = port_of(service, request->protocol, request->port);
	struct path_owner owner = { .number = program->path.number };
	int err;

	if (descriptor < 0 || !has_port(service, request, descriptor, &owner.only))
		return -EINVAL;
	if (port->owner.number && port->owner.number != owner.number)
		return -EADDRINUSE;
	/* What a program has on two addresses, it has on all. */
	if (port->owner.number && memcmp(&port->owner.only, &owner.only, sizeof(owner.only)) != 0)
		owner.only = (struct path_address){ 0 };
	err = path_give(&service->path, request->protocol, request->port, &owner);
	if (err)
		return err;
	if (port->owner.number)
		close_given(port->descriptor);
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

int port_unbind(struct service *service, const struct program *program, const struct stackd_request *request)
{
	if (request->protocol != IPPROTO_TCP && request->protocol != IPPROTO_UDP)
		return -EINVAL;
	if (port_of(service, request->protocol, request->port)->owner.number != program->path.number)
		return -EINVAL;
	free_port(service, request->protocol, request->port);
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
