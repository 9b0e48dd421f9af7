/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to addresses, as the kernel knows them: its routes, and its neighbours, which it asks and watches. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "service/port_netlink.h"
#include "service/port_service.h"

static bool is_same(const struct path_address *one, const struct path_address *other)
{
	return !memcmp(one, other, sizeof(*one));
}

/* What is known of a neighbour when something has changed, and was known before. */
static int32_t later_result(const struct service *service, const struct path_address *next, int32_t before, int found)
{
	if (found != -ENOENT && found != -EINPROGRESS)
		return found;
	if (before == 0 || before == -EHOSTUNREACH || found == -EINPROGRESS) {
		if (before == 0 && found == -ENOENT) /* it was forgotten; its MAC holds until more is known */
			netlink_ask_neighbour(service->netlink, service->interface.index, next);
		return before == 0 || before == -EHOSTUNREACH ? before : -EINPROGRESS;
	}
	if (before == -EINPROGRESS)
		return -EHOSTUNREACH;
	netlink_ask_neighbour(service->netlink, service->interface.index, next);
	return -EINPROGRESS;
}

/* The same when a program asks: what has failed is tried again. */
static int32_t first_result(const struct service *service, const struct path_address *next, int found)
{
	if (found != -ENOENT && found != -EHOSTUNREACH)
		return found;
	if (netlink_ask_neighbour(service->netlink, service->interface.index, next) < 0)
		return -EHOSTUNREACH;
	return -EINPROGRESS;
}

/* Whether a route says so itself: it is unreachable, prohibit or blackhole. */
static bool is_barred(int err)
{
	return err == -EHOSTUNREACH || err == -EACCES || err == -EINVAL;
}

/* Look up the way to an address. @param first  whether a program asks */
static void look_up(const struct service *service, struct asked *asked, bool first)
{
	const struct path_address before = asked->next;
	struct netlink_route route;
	int found;

	found = netlink_route(service->netlink, &asked->to, service->interface.index, &route);
	if (found < 0) {
		asked->next = (struct path_address){ 0 };
		asked->result = is_barred(found) ? found : -ENETUNREACH;
		return;
	}
	asked->next = route.next;
	asked->source = route.source;
	if (route.interface_index != service->interface.index || !route.unicast) {
		asked->result = -EREMOTE;
		return;
	}
	found = netlink_neighbour(service->netlink, service->interface.index, &route.next, asked->mac);
	if (asked->result && !is_same(&before, &route.next)) /* what another neighbour did not answer says nothing of this one */
		asked->result = -ENETUNREACH;
	asked->result = first ? first_result(service, &route.next, found) : later_result(service, &route.next, asked->result, found);
}

static void fill_in(struct stackd_answer *answer, const struct asked *asked)
{
	answer->result = asked->result;
	answer->family = asked->to.family == 4 ? AF_INET : AF_INET6;
	memcpy(answer->mac, asked->mac, sizeof(answer->mac));
	memcpy(answer->ip, asked->to.ip, sizeof(answer->ip));
	memcpy(answer->source, asked->source.ip, sizeof(answer->source));
}

/*
 * The entry that makes room: the first one asked for of those without a way, as a flood from made-up addresses leaves them, else of
 * all. The program hears of it, or it would wait for an event that never comes.
 */
static struct asked *make_room(const struct client *client)
{
	struct stackd_answer event = { .verb = STACKD_NEIGHBOUR };
	struct program *program = client->program;
	int place = program->asked_next;

	for (int i = 0; i < ASKED_MAX && program->asked[place].result == 0; i++)
		place = (place + 1) % ASKED_MAX;
	program->asked_next = (place + 1) % ASKED_MAX;
	program->asked[place].result = -ENOENT;
	fill_in(&event, &program->asked[place]);
	send_event(client, &event);
	return &program->asked[place];
}

/* The entry of an address, a new one if there is none. */
static struct asked *entry_of(const struct client *client, const struct path_address *to)
{
	struct program *program = client->program;
	struct asked *entry;

	for (int i = 0; i < program->asked_count; i++) {
		if (is_same(&program->asked[i].to, to))
			return &program->asked[i];
	}
	entry = program->asked_count < ASKED_MAX ? &program->asked[program->asked_count++] : make_room(client);
	*entry = (struct asked){ .to = *to };
	return entry;
}

void resolve(struct service *service, struct client *client, const struct stackd_request *request, struct stackd_answer *answer)
{
	struct path_address to = { .family = request->family == AF_INET ? 4 : 6 };
	struct asked *asked;

	memcpy(to.ip, request->ip, to.family == 4 ? 4 : PATH_IP_BYTES);
	asked = entry_of(client, &to);
	look_up(service, asked, true);
	fill_in(answer, asked);
}

/*
 * Whether changes may have made the way another one: neighbours change one after the other, and all ways for each of them would be
 * work by the square. Of several routers the kernel takes one that answers, and any neighbour may be one.
 */
static bool is_concerned(const struct asked *asked, const struct netlink_changes *changes)
{
	bool concerned = changes->ways || (changes->neighbour_count && asked->next.family && !is_same(&asked->next, &asked->to));

	for (int i = 0; i < changes->neighbour_count && !concerned; i++)
		concerned = is_same(&asked->next, &changes->neighbours[i]);
	return concerned;
}

static void look_again(const struct service *service, const struct client *client, const struct netlink_changes *changes)
{
	for (int i = 0; i < client->program->asked_count; i++) {
		struct asked *asked = &client->program->asked[i];
		struct stackd_answer event = { .verb = STACKD_NEIGHBOUR };
		const struct asked before = *asked;

		if (!is_concerned(asked, changes))
			continue;
		look_up(service, asked, false);
		if (asked->result == before.result && !memcmp(asked->mac, before.mac, sizeof(before.mac)) &&
		    is_same(&asked->source, &before.source))
			continue;
		fill_in(&event, asked);
		send_event(client, &event);
	}
}

void resolve_again(struct service *service, const struct netlink_changes *changes)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (service->clients[i].program)
			look_again(service, &service->clients[i], changes);
	}
}

static void confirm(const struct service *service, const struct asked *asked)
{
	struct netlink_route route;

	if (asked->result == 0 && netlink_route(service->netlink, &asked->to, service->interface.index, &route) == 0 &&
	    route.interface_index == service->interface.index &&
	    !netlink_neighbour_is_fixed(service->netlink, service->interface.index, &route.next))
		netlink_ask_neighbour(service->netlink, service->interface.index, &route.next);
}

void confirm_neighbours(struct service *service)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		const struct program *program = service->clients[i].program;

		for (int entry = 0; program && entry < program->asked_count; entry++)
			confirm(service, &program->asked[entry]);
	}
}
