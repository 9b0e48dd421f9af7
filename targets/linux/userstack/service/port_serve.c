/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service of an interface: it holds the privileged part, and says who has which port. Nothing of what it does is on the way
 * of a packet.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "config/options.h"
#include "local_socket/port_local_socket.h"
#include "local_socket/port_user_share.h"
#include "service/port_netlink.h"
#include "service/port_service.h"
#include "service/serve.h"

#define TOOL "bw-stackd serve"

enum { EVENTS_MAX = 64, CONFIRM_S = 30, RETRY_S = 1, GIVEN_MAX = 4, RUNNING = -1 };

static int fail(const struct service *service, const char *what, int err)
{
	fprintf(stderr, TOOL ": %s: %s: %s\n", service->name, what, strerror(-err));
	return EXIT_CAPABILITY;
}

static int watch(struct service *service, int descriptor)
{
	return descriptor < 0 ? descriptor : local_watch(service->epoll, descriptor);
}

/* Look after everything in a while, and from then on every CONFIRM_S. */
static int set_timer(const struct service *service, time_t first_s)
{
	const struct itimerspec each = { .it_interval.tv_sec = CONFIRM_S, .it_value.tv_sec = first_s };

	return timerfd_settime(service->timer, 0, &each, NULL) < 0 ? -errno : 0;
}

static int start_timers(struct service *service)
{
	int err;

	service->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (service->timer < 0)
		return -errno;
	err = set_timer(service, CONFIRM_S);
	if (err)
		return err;
	service->report_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (service->report_timer < 0)
		return -errno;
	err = watch(service, service->timer);
	return err ? err : watch(service, service->report_timer);
}

static struct client *client_of(struct service *service, int connection)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (service->clients[i].connection == connection)
			return &service->clients[i];
	}
	return NULL;
}

static void drop_client(struct service *service, struct client *client)
{
	if (client->program)
		program_end(service, client);
	close(client->connection);
	*client = (struct client){ .connection = -1 };
}

/* What users share. A user's programs leave connections for `show`. */
static struct user_share connection_share = { "connections", CLIENTS_MAX, 64, 128, 0 };
static struct user_share program_share = { "programs", PATH_SLOTS, 8, 32, 0 };
static struct user_share port_share = { "ports", 0, 0, 0, 0 };

/* Each port is a descriptor; half of them at least. */
static void share_ports(uint64_t descriptors)
{
	const uint64_t own = 2 * (uint64_t)CLIENTS_MAX, most = PROTOCOLS * (uint64_t)PATH_PORTS;
	const uint64_t left = descriptors > 2 * own ? descriptors - own : descriptors / 2;

	port_share.all = (int)(left < most ? left : most);
	port_share.for_root = port_share.all / 16;
	port_share.of_user = port_share.all / 2;
}

/* How many connections there are, or how many of them are programs'. */
static struct user_use in_use(const struct service *service, uid_t uid, bool of_programs)
{
	struct user_use use = { 0, 0 };

	for (int i = 0; i < CLIENTS_MAX; i++) {
		const struct client *client = &service->clients[i];

		if (client->connection >= 0 && (client->program || !of_programs))
			user_use_add(&use, client->who.uid == uid);
	}
	return use;
}

/* How many ports they have. */
static struct user_use ports_in_use(const struct service *service, uid_t uid)
{
	struct user_use use = { 0, 0 };

	for (int i = 0; i < CLIENTS_MAX; i++) {
		const struct client *client = &service->clients[i];
		int ports = client->program ? client->program->port_count : 0;

		use.all += ports;
		use.of_user += client->who.uid == uid ? ports : 0;
	}
	return use;
}

/* Whoever hears this need not guess why the connection ends. */
static void tell_refusal(int connection, int result)
{
	const struct stackd_answer refusal = { .verb = STACKD_HELLO, .result = result };

	local_answer(connection, &refusal, sizeof(refusal), NULL, 0, NULL, 0);
}

static void admit(struct service *service)
{
	const int room_bytes = 2 * STACKD_SHOW_BYTES;
	struct client *client = client_of(service, -1);
	struct ucred who;
	int connection = local_accept(&service->listener, &who), refused;

	if (connection < 0) {
		if (connection != -EAGAIN)
			fail(service, "no program can be let in for now", connection);
		return;
	}
	refused = user_share_refuses(&connection_share, TOOL, who.uid, in_use(service, who.uid, false));
	if (refused)
		tell_refusal(connection, refused);
	if (refused || !client ||
	    setsockopt(connection, SOL_SOCKET, SO_SNDBUFFORCE, &room_bytes, sizeof(room_bytes)) < 0 ||
	    watch(service, connection) != 0)
		close(connection);
	else
		*client = (struct client){ .connection = connection, .who = who };
}

static int send_answer(const struct client *client, const struct stackd_answer *about, const int *descriptors, size_t descriptor_count,
		       const char *text, size_t text_bytes)
{
	return local_answer(client->connection, about, sizeof(*about), descriptors, descriptor_count, text, text_bytes);
}

/* A client that is cut off is dropped when its connection says so, and not in the middle of something. */
static void cut_off(const struct client *client)
{
	shutdown(client->connection, SHUT_RDWR);
}

void send_event(const struct client *client, const struct stackd_answer *event)
{
	if (send_answer(client, event, NULL, 0, NULL, 0) < 0)
		cut_off(client);
}

void send_text(const struct client *client, const struct stackd_answer *answer, int text)
{
	if (send_answer(client, answer, &text, text >= 0, NULL, 0) < 0)
		cut_off(client);
}

/* @param page  descriptor of the program's page, or -1. @return whether it is kept */
static bool hello(struct service *service, struct client *client, int page, struct stackd_answer *answer)
{
	int descriptors[2] = { -1, -1 };
	bool refused = client->program || (page >= 0 && !statistics_page_fits(page));

	answer->result = refused ? -EINVAL
				 : user_share_refuses(&program_share, TOOL, client->who.uid, in_use(service, client->who.uid, true));
	if (answer->result == 0)
		answer->result = program_begin(service, client, answer, &descriptors[1]);
	if (answer->result == 0) {
		interface_tell(service, answer);
		descriptors[0] = client->program->socket;
		client->program->page = page;
	}
	if (send_answer(client, answer, descriptors, answer->result == 0 ? 2 : 0, NULL, 0) < 0)
		cut_off(client);
	if (descriptors[1] >= 0)
		close(descriptors[1]);
	if (answer->result == 0)
		statistics_joined(service, client);
	return answer->result == 0;
}

/* A port that the program has already is no further one. */
static int32_t bind_port(struct service *service, const struct client *client, const struct stackd_request *request, int descriptor)
{
	uint32_t owner = port_of(service, request->protocol, request->port)->owner.number;
	int refused = owner == client->program->path.number
			      ? 0
			      : user_share_refuses(&port_share, TOOL, client->who.uid, ports_in_use(service, client->who.uid));

	return refused ? refused : port_bind(service, client->program, request, descriptor);
}

/* Verbs of programs that have said hello. */
static int32_t handle_program(struct service *service, struct client *client, const struct stackd_request *request, int descriptor,
			      struct stackd_answer *answer)
{
	switch (request->verb) {
	case STACKD_BIND: return bind_port(service, client, request, descriptor);
	case STACKD_UNBIND: return port_unbind(service, client->program, request);
	case STACKD_REPORTED: return statistics_reported(service, client);
	case STACKD_RESOLVE:
		if (request->family != AF_INET && request->family != AF_INET6)
			return -EINVAL;
		resolve(service, client, request, answer);
		return answer->result;
	default: return -EINVAL;
	}
}

/* Answer a request. @param descriptor  that came with it, or -1; ours. @return whether it is kept */
static bool handle(struct service *service, struct client *client, const struct stackd_request *request, int descriptor)
{
	struct stackd_answer answer = { .verb = request->verb, .number = request->number };
	size_t text_bytes = 0;

	if (request->version != STACKD_VERSION) {
		answer.result = -EPROTO;
	} else if (request->verb == STACKD_HELLO) {
		return hello(service, client, descriptor, &answer);
	} else if (request->verb == STACKD_STATISTICS) {
		answer.result = statistics_ask(service, client, request->number);
		if (answer.result == 0)
			return false;
	} else if (request->verb == STACKD_SHOW) {
		answer.result = show(service, &text_bytes);
	} else {
		answer.result = client->program ? handle_program(service, client, request, descriptor, &answer) : -EINVAL;
	}
	if (send_answer(client, &answer, NULL, 0, service->text, text_bytes) < 0)
		cut_off(client);
	return request->verb == STACKD_BIND && answer.result == 0;
}

/* Take the descriptor that came with a message. Return it, or -1: none came, or several, which nothing asks for, and they are closed. */
static int take_given(struct msghdr *message)
{
	int given[GIVEN_MAX] = { -1 }, count = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		count = (int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(given, CMSG_DATA(part), (size_t)count * sizeof(int));
	}
	if (count <= 1)
		return given[0];
	for (int i = 0; i < count; i++)
		close(given[i]);
	return -1;
}

static void serve_client(struct service *service, struct client *client)
{
	struct stackd_request request;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(GIVEN_MAX * sizeof(int))];
	} control;
	struct iovec part = { &request, sizeof(request) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t length = recvmsg(client->connection, &message, MSG_CMSG_CLOEXEC);
	int given;
	bool kept = false;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	given = length < 0 ? -1 : take_given(&message);
	if (length == (ssize_t)sizeof(request) && !(message.msg_flags & MSG_TRUNC))
		kept = handle(service, client, &request, given);
	else
		drop_client(service, client); /* it has ended, or speaks something else */
	if (given >= 0 && !kept)
		close(given);
}

/* Take over what has changed of the interface. Return RUNNING, or an exit code. */
static int take_interface(struct service *service)
{
	int err = interface_take(service);

	if (err == -ENODEV) {
		fprintf(stderr, TOOL ": %s: the interface has gone\n", service->name);
		return EXIT_FAULT;
	}
	if (err)
		set_timer(service, RETRY_S);
	return RUNNING;
}

static int take_changes(struct service *service)
{
	struct netlink_changes changes;
	int code = RUNNING;

	netlink_changes(service->events, service->interface.index, &changes);
	if (changes.interface)
		code = take_interface(service);
	if (code == RUNNING)
		resolve_again(service, &changes);
	return code;
}

/* Return RUNNING, or an exit code. */
static int look_after(struct service *service)
{
	confirm_neighbours(service);
	return take_interface(service);
}

/* Handle what has happened at a descriptor. Return RUNNING, or an exit code. */
static int happen(struct service *service, int descriptor)
{
	struct client *client;
	uint64_t times;

	if (descriptor == service->signals)
		return EXIT_DONE;
	if (descriptor == service->events)
		return take_changes(service);
	if (descriptor == service->listener.socket)
		admit(service);
	else if (descriptor == service->timer && read(service->timer, &times, sizeof(times)) > 0)
		return look_after(service);
	else if (descriptor == service->report_timer)
		statistics_time_is_up(service);
	else if ((client = client_of(service, descriptor)) != NULL)
		serve_client(service, client);
	return RUNNING;
}

static int run(struct service *service)
{
	struct epoll_event events[EVENTS_MAX];
	int code = RUNNING;

	while (code == RUNNING) {
		int count = epoll_wait(service->epoll, events, EVENTS_MAX, service->left_count ? 0 : -1);

		for (int i = 0; i < count && code == RUNNING; i++)
			code = happen(service, events[i].data.fd);
		statistics_look(service);
		programs_remove_one(service); /* one by turn: others are answered in between, and the ports of all come first */
	}
	return code;
}

static int find_interface(struct service *service)
{
	int err;

	service->interface.index = if_nametoindex(service->name);
	if (!service->interface.index)
		return -errno;
	service->netlink = netlink_open(false);
	if (service->netlink < 0)
		return service->netlink;
	service->events = netlink_open(true); /* before the first look: no change is missed */
	if (service->events < 0)
		return service->events;
	err = netlink_interface(service->netlink, &service->interface);
	return err ? err : watch(service, service->events);
}

/* The namespace for programs' ends. Return 0, or -EINVAL where this Linux has no tcx. */
static int make_namespace(struct service *service)
{
	const int loopback = 1;
	int err = namespaces_open(&service->namespaces), back, link;

	if (!err)
		err = namespaces_enter(service->namespaces.own);
	if (err)
		return err;
	service->own_netlink = netlink_open(false);
	link = bpf_attach(service->path.egress, loopback, BPF_ATTACH_TCX_INGRESS, 0);
	back = namespaces_enter(service->namespaces.home);
	if (link >= 0)
		close(link);
	if (service->own_netlink < 0 || back)
		return back ? back : service->own_netlink;
	return link < 0 ? link : 0;
}

/* A service of this interface that was killed along with its guard has left them. */
static void remove_leftovers(const struct service *service)
{
	for (unsigned int slot = 0; slot < PATH_SLOTS; slot++) {
		char name[IF_NAMESIZE];
		int index;

		snprintf(name, sizeof(name), VETH_NAME, service->interface.index, slot);
		index = (int)if_nametoindex(name);
		if (index)
			netlink_delete_interface(service->netlink, index);
	}
}

static int open_all(struct service *service, int64_t group, bool generic)
{
	int err = find_interface(service);

	if (err)
		return fail(service, "no such interface", err);
	err = path_open(&service->path, &service->interface, generic, service->log);
	if (err) {
		fputs(service->log, stderr);
		return fail(service, err == -EBUSY ? "another XDP program is there" : "the packet path cannot be attached", err);
	}
	err = make_namespace(service);
	if (err)
		return fail(service, err == -EINVAL ? "tcx is missing: Linux 6.6 is needed" : "no namespace of its own", err);
	remove_leftovers(service);
	service->signals = local_end_signals();
	err = watch(service, service->signals);
	if (!err)
		err = start_timers(service);
	if (!err)
		take_interface(service);
	if (!err)
		err = local_listen(&service->listener, service->epoll, service->socket_path, group);
	return err ? fail(service, service->socket_path, err) : RUNNING;
}

int stackd_serve(const char *interface, const char *socket_path, int64_t group, bool generic)
{
	static struct service service;
	int code;

	service = (struct service){ .name = interface, .socket_path = socket_path, .signals = -1, .timer = -1, .report_timer = -1 };
	for (int i = 0; i < CLIENTS_MAX; i++)
		service.clients[i].connection = -1;
	service.guard = guard_begin();
	if (service.guard < 0)
		return fail(&service, "fork", service.guard);
	share_ports(local_allow_descriptors());
	service.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (service.epoll < 0)
		return fail(&service, "epoll", -errno);
	code = open_all(&service, group, generic);
	if (code != RUNNING)
		return code;
	printf("{\"type\":\"ready\",\"tool\":\"" TOOL "\",\"interface\":\"%s\",\"native\":%s}\n", interface,
	       service.path.native ? "true" : "false");
	fflush(stdout);
	code = run(&service);
	unlink(socket_path);
	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (service.clients[i].connection >= 0)
			drop_client(&service, &service.clients[i]);
	}
	while (programs_remove_one(&service)) {
	}
	path_close(&service.path);
	guard_end(service.guard);
	return code;
}

int stackd_show(const char *socket_path)
{
	static struct {
		struct stackd_answer about;
		char text[STACKD_SHOW_BYTES];
	} reply;
	const struct stackd_request request = { .version = STACKD_VERSION, .verb = STACKD_SHOW };
	int service = local_connect(socket_path);
	ssize_t length = -1;

	if (service < 0) {
		fprintf(stderr, "bw-stackd show: %s: %s\n", socket_path, strerror(-service));
		return service == -ENAMETOOLONG ? EXIT_BAD_INPUT : EXIT_CAPABILITY;
	}
	if (send(service, &request, sizeof(request), MSG_NOSIGNAL) > 0 || errno == EPIPE) /* who has closed it may have said why */
		do
			length = recv(service, &reply, sizeof(reply), 0);
		while (length < 0 && errno == ECONNRESET); /* said once: what was sent before it is behind it */
	close(service);
	if (length < (ssize_t)sizeof(reply.about) || reply.about.result != 0) {
		int err = length < 0 ? -errno : length < (ssize_t)sizeof(reply.about) ? -EPROTO : reply.about.result;

		fprintf(stderr, "bw-stackd show: %s: %s\n", socket_path, stackd_error(err));
		return EXIT_CAPABILITY;
	}
	fwrite(reply.text, 1, (size_t)length - sizeof(reply.about), stdout);
	return EXIT_DONE;
}
