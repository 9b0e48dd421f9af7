/* SPDX-License-Identifier: Apache-2.0 */
#include "port_ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "port_addresses.h"
#include "port_engine.h"
#include "port_frames.h"
#include "port_say.h"
#include "service/stackd.h"

enum { LOOKED_US = 1000000 }; /* how often ports of closed sockets are looked at */

struct port {
	struct port *next;
	int protocol;
	uint16_t port;
	struct stack_address only; /* the lone address that it was given for; its family is 0 where there are more */
	unsigned int sockets; /* 0: only connections whose sockets are closed */
};

static struct port *ports;
static uint64_t looked_us;

static struct port *find_port(int protocol, uint16_t port)
{
	struct port *each = ports;

	while (each && (each->protocol != protocol || each->port != port))
		each = each->next;
	return each;
}

static int ask_for_port(int protocol, uint16_t port, int fd)
{
	struct stackd_request request = { .verb = STACKD_BIND, .protocol = (uint8_t)protocol, .port = port };
	struct stackd_answer answer;
	static bool said;
	int err = engine_ask(&request, fd, &answer);

	if (err || (answer.result != -EDQUOT && answer.result != -ENOSPC))
		return err ? err : answer.result;
	if (!said)
		say("no port of the service: %s", stackd_error(answer.result));
	said = true;
	return -EADDRNOTAVAIL; /* as where the kernel has none */
}

/* The lone address that a port is taken for. Any address may be of one family or of both, which the service makes out. */
static struct stack_address lone(const struct stack_address *local)
{
	return address_is_any(local) ? (struct stack_address){ 0 } : *local;
}

/* A port that the program has already, for another socket; unless for the same lone address it has to be asked for once more. */
static int take_again(struct port *own, const struct stack_address *local, int fd)
{
	if (own->only.family != local->family || memcmp(own->only.ip, local->ip, sizeof(local->ip)) != 0) {
		int err = ask_for_port(own->protocol, own->port, fd);

		if (err)
			return err;
		own->only = (struct stack_address){ 0 };
	}
	own->sockets++;
	return 0;
}

int ports_take(int protocol, const struct stack_address *local, int fd)
{
	struct port *own = find_port(protocol, local->port);
	int err;

	if (own)
		return take_again(own, local, fd);
	own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	err = ask_for_port(protocol, local->port, fd);
	if (err) {
		free(own);
		return err;
	}
	*own = (struct port){ .next = ports, .protocol = protocol, .port = local->port, .only = lone(local), .sockets = 1 };
	ports = own;
	return 0;
}

/* Whether a socket, or a connection whose socket is closed, has a port. */
static bool is_in_use(const struct port *port)
{
	return port->sockets || stack_port_in_use(port->protocol == IPPROTO_TCP ? STACK_TCP : STACK_UDP, port->port);
}

/* Forget a port. @return what the service is to hear */
static struct stackd_request unlink_port(struct port **place)
{
	struct port *port = *place;
	struct stackd_request request = { .verb = STACKD_UNBIND, .protocol = (uint8_t)port->protocol, .port = port->port };

	*place = port->next;
	free(port);
	return request;
}

void ports_drop(int protocol, uint16_t port)
{
	struct port **place = &ports, *own = find_port(protocol, port);
	struct stackd_request request;
	struct stackd_answer answer;

	if (!own || !own->sockets || --own->sockets || protocol != IPPROTO_TCP || is_in_use(own))
		return; /* datagrams may still be on their way */
	engine_flush(); /* connections that nobody has accepted are reset, from the port */
	if (frames_again_us() != UINT64_MAX)
		return;
	while (*place != own)
		place = &(*place)->next;
	request = unlink_port(place);
	engine_ask(&request, -1, &answer); /* who waits for the answer can bind it again */
}

void ports_give_back(uint64_t now_us)
{
	if (now_us - looked_us < LOOKED_US)
		return;
	looked_us = now_us;
	for (struct port **each = &ports; *each;) {
		struct stackd_request request;

		if (is_in_use(*each)) {
			each = &(*each)->next;
			continue;
		}
		request = unlink_port(each);
		engine_tell(&request);
	}
}

void ports_forget(void)
{
	struct port *next;

	for (; ports; ports = next) {
		next = ports->next;
		free(ports);
	}
}
