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

/* Whether an address is any, or one of the interface's: a port of another interface is none of ours. */
static bool address_fits(const struct service *service, uint32_t family, const uint8_t *ip, size_t bytes)
{
	static const uint8_t any[PATH_IP_BYTES];

	if (!memcmp(ip, any, bytes))
		return true;
	for (int i = 0; i < service->address_count; i++) {
		if (service->addresses[i].family == family && !memcmp(service->addresses[i].ip, ip, bytes))
			return true;
	}
	return false;
}

static bool bound_to(const struct service *service, int descriptor, uint16_t port)
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
		       address_fits(service, 4, (const uint8_t *)&address.ipv4.sin_addr, 4);
	if (address.any.sa_family != AF_INET6 || ntohs(address.ipv6.sin6_port) != port)
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&address.ipv6.sin6_addr))
		return address_fits(service, 4, address.ipv6.sin6_addr.s6_addr + 12, 4);
	return address_fits(service, 6, address.ipv6.sin6_addr.s6_addr, PATH_IP_BYTES);
}

static bool has_port(const struct service *service, const struct stackd_request *request, int descriptor)
{
	return request->port && (request->protocol == IPPROTO_TCP || request->protocol == IPPROTO_UDP) &&
	       option_of(descriptor, SO_PROTOCOL) == request->protocol &&
	       namespace_of(descriptor) == namespace_of(service->netlink) && bound_to(service, descriptor, request->port);
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
	int err;

	if (descriptor < 0 || !has_port(service, request, descriptor))
		return -EINVAL;
	if (port->number && port->number != program->path.number)
		return -EADDRINUSE;
	err = path_give(&service->path, request->protocol, request->port, program->path.number);
	if (err)
		return err;
	if (port->number)
		close_given(port->descriptor);
	*port = (struct port){ program->path.number, descriptor };
	return 0;
}

static void free_port(struct service *service, uint8_t protocol, uint16_t port)
{
	struct port *entry = port_of(service, protocol, port);

	path_give(&service->path, protocol, port, 0);
	close_given(entry->descriptor);
	*entry = (struct port){ 0, -1 };
}

int port_unbind(struct service *service, const struct program *program, const struct stackd_request *request)
{
	if (request->protocol != IPPROTO_TCP && request->protocol != IPPROTO_UDP)
		return -EINVAL;
	if (port_of(service, request->protocol, request->port)->number != program->path.number)
		return -EINVAL;
	free_port(service, request->protocol, request->port);
	return 0;
}

void ports_free(struct service *service, uint32_t number)
{
	for (int port = 1; port < PATH_PORTS; port++) {
		if (port_of(service, IPPROTO_TCP, (uint16_t)port)->number == number)
			free_port(service, IPPROTO_TCP, (uint16_t)port);
		if (port_of(service, IPPROTO_UDP, (uint16_t)port)->number == number)
			free_port(service, IPPROTO_UDP, (uint16_t)port);
	}
}
