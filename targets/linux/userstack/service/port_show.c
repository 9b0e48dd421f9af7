/* SPDX-License-Identifier: Apache-2.0 */
/* The text of STACKD_SHOW. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

#include "base/json.h"
#include "service/port_service.h"

enum { TAIL_BYTES = 512, MAC_TEXT_BYTES = 18 }; /* TAIL_BYTES: room for a port, and for what ends the text */

static void write_programs(const struct service *service, struct json *json)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		const struct client *client = &service->clients[i];
		struct traffic traffic;

		if (!client->program)
			continue;
		program_traffic(service, client->program, &traffic);
		json_object_open(json, NULL);
		json_int(json, "pid", client->who.pid);
		json_uint(json, "uid", client->who.uid);
		json_uint(json, "slot", client->program->path.number % PATH_SLOTS);
		traffic_write(json, &traffic);
		json_object_close(json);
	}
}

static int pid_of(const struct service *service, uint32_t number)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		const struct client *client = &service->clients[i];

		if (client->program && client->program->path.number == number)
			return (int)client->who.pid;
	}
	return 0;
}

/* Return how many had no room. */
static int write_ports(struct service *service, struct json *json, uint8_t protocol)
{
	int left_out = 0;

	for (int port = 1; port < PATH_PORTS; port++) {
		uint32_t number = port_of(service, protocol, (uint16_t)port)->owner.number;

		if (!number)
			continue;
		if (ftell(json->out) > (long)sizeof(service->text) - TAIL_BYTES) {
			left_out++;
			continue;
		}
		json_object_open(json, NULL);
		json_string(json, "protocol", protocol == IPPROTO_TCP ? "tcp" : "udp");
		json_int(json, "port", port);
		json_int(json, "pid", pid_of(service, number));
		json_object_close(json);
	}
	return left_out;
}

static struct traffic all_traffic(const struct service *service)
{
	struct traffic sum = service->ended, traffic;

	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (!service->clients[i].program)
			continue;
		program_traffic(service, service->clients[i].program, &traffic);
		traffic_add(&sum, &traffic);
	}
	return sum;
}

int show(struct service *service, size_t *length)
{
	const uint8_t *mac = service->interface.mac;
	const struct traffic sum = all_traffic(service);
	FILE *out = fmemopen(service->text, sizeof(service->text), "w");
	char text[MAC_TEXT_BYTES];
	int left_out, err;
	struct json json;

	if (!out)
		return -errno;
	json_init(&json, out);
	json_object_open(&json, NULL);
	json_string(&json, "interface", service->name);
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	json_string(&json, "mac", text);
	json_bool(&json, "native", service->path.native);
	json_uint(&json, "mtu_bytes", service->interface.mtu_bytes);
	traffic_write(&json, &sum);
	json_array_open(&json, "programs");
	write_programs(service, &json);
	json_array_close(&json);
	json_array_open(&json, "ports");
	left_out = write_ports(service, &json, IPPROTO_TCP);
	left_out += write_ports(service, &json, IPPROTO_UDP);
	json_array_close(&json);
	json_int(&json, "ports_left_out", left_out);
	json_object_close(&json);
	err = json_line_end(&json);
	*length = (size_t)ftell(out);
	fclose(out);
	return err;
}
