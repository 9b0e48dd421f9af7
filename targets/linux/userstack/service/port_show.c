/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>

#include "service/port_service.h"

enum { TAIL_BYTES = 512 }; /* room for what ends the text */

/* Add to the text; what has no room is cut off. */
__attribute__((format(printf, 3, 4))) static size_t add(struct service *service, size_t used, const char *format, ...)
{
	size_t room = sizeof(service->text) - used;
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(service->text + used, room, format, values);
	va_end(values);
	return used + ((size_t)length < room ? (size_t)length : room - 1);
}

static size_t add_traffic(struct service *service, size_t used, const struct traffic *traffic)
{
	const struct { const char *name; uint64_t count; } all[] = {
		{ "\"in\"", traffic->path[PATH_IN] }, { "\"out\"", traffic->path[PATH_OUT] },
		{ "\"bytes_in\"", traffic->path[PATH_BYTES_IN] }, { "\"bytes_out\"", traffic->path[PATH_BYTES_OUT] },
		{ "\"drops\":{\"ring_full\"", traffic->ring_full }, { "\"fill_ring_empty\"", traffic->fill_ring_empty },
		{ "\"bad_descriptor\"", traffic->bad_descriptor }, { "\"malformed\"", traffic->path[PATH_MALFORMED] },
		{ "\"foreign_protocol\"", traffic->path[PATH_FOREIGN_PROTOCOL] },
		{ "\"foreign_address\"", traffic->path[PATH_FOREIGN_ADDRESS] },
		{ "\"foreign_port\"", traffic->path[PATH_FOREIGN_PORT] },
		{ "\"foreign_fragment\"", traffic->path[PATH_FOREIGN_FRAGMENT] },
	};

	used = add(service, used, "\"frames\":{");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		used = add(service, used, "%s%s:%llu", i ? "," : "", all[i].name, (unsigned long long)all[i].count);
	return add(service, used, "}}");
}

static size_t add_programs(struct service *service, size_t used)
{
	const char *between = "";

	for (int i = 0; i < CLIENTS_MAX; i++) {
		const struct client *client = &service->clients[i];
		struct traffic traffic;

		if (client->connection < 0 || !client->program)
			continue;
		program_traffic(service, client->program, &traffic);
		used = add(service, used, "%s{\"pid\":%d,\"uid\":%u,\"slot\":%u,", between, (int)client->who.pid,
			   (unsigned int)client->who.uid, (unsigned int)(client->program->path.number % PATH_SLOTS));
		used = add_traffic(service, used, &traffic);
		used = add(service, used, "}");
		between = ",";
	}
	return used;
}

static int pid_of(const struct service *service, uint32_t number)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		const struct client *client = &service->clients[i];

		if (client->connection >= 0 && client->program && client->program->path.number == number)
			return (int)client->who.pid;
	}
	return 0;
}

/* Add all ports; *left_out is how many had no room. */
static size_t add_ports(struct service *service, size_t used, uint8_t protocol, const char **between, int *left_out)
{
	for (int port = 1; port < PATH_PORTS; port++) {
		uint32_t number = port_of(service, protocol, (uint16_t)port)->owner.number;

		if (!number)
			continue;
		if (used > sizeof(service->text) - TAIL_BYTES) {
			(*left_out)++;
			continue;
		}
		used = add(service, used, "%s{\"protocol\":\"%s\",\"port\":%d,\"pid\":%d}", *between,
			   protocol == IPPROTO_TCP ? "tcp" : "udp", port, pid_of(service, number));
		*between = ",";
	}
	return used;
}

size_t show(struct service *service)
{
	const uint8_t *mac = service->interface.mac;
	struct traffic sum = service->ended;
	const char *between = "";
	int left_out = 0;
	size_t used;

	for (int i = 0; i < CLIENTS_MAX; i++) {
		struct traffic traffic;

		if (service->clients[i].connection < 0 || !service->clients[i].program)
			continue;
		program_traffic(service, service->clients[i].program, &traffic);
		traffic_add(&sum, &traffic);
	}
	used = add(service, 0, "{\"interface\":\"%s\",\"mac\":\"%02x:%02x:%02x:%02x:%02x:%02x\",\"native\":%s,\"mtu_bytes\":%u,",
		   service->name, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], service->path.native ? "true" : "false",
		   (unsigned int)service->interface.mtu_bytes);
	used = add_traffic(service, used, &sum);
	used = add(service, used, ",\"programs\":[");
	used = add_programs(service, used);
	used = add(service, used, "],\"ports\":[");
	used = add_ports(service, used, IPPROTO_TCP, &between, &left_out);
	used = add_ports(service, used, IPPROTO_UDP, &between, &left_out);
	return add(service, used, "],\"ports_left_out\":%d}\n", left_out);
}
