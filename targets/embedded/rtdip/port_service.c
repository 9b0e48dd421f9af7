/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service of an interface: it holds the privileged part, and says who has which port. Nothing of what it does is on the way
 * of a frame. A process that ends takes its connection with it, and by that its ports; when the service itself ends, however it
 * does, the kernel takes program, maps and ports away.
 */
#include "service.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "bpf/port_bpf.h"
#include "config/options.h"
#include "events/bwevents.h"
#include "local_socket/port_local_socket.h"
#include "local_socket/port_user_share.h"
#include "port_interface.h"
#include "port_xdp.h"
#include "rtdip.h"

#define TOOL "bw-rtdip serve"

/* By turn of the loop as many ports are taken back as can be given. */
enum { CLIENTS_MAX = 1024, EVENTS_MAX = RTDIP_TAKE_MAX, RUNNING = -1 };

/* What users share. A user's handles leave connections for `show`. */
static struct user_share connection_share = { "connections", CLIENTS_MAX, 64, 256, 0 };
static struct user_share handle_share = { "handles", CLIENTS_MAX, 80, 240, 0 };
static struct user_share port_share = { "ports", RTDIP_PORTS_MAX, 64, 512, 0 };

struct client {
	int connection; /* -1: free */
	struct ucred who;
	bool handle; /* it has said hello */
};

struct owner {
	struct client *client; /* NULL: free */
	uint32_t ring_bytes;
	bool left;             /* free, but the kernel still has the ring of a client that has ended */
};

struct service {
	const char *path;
	struct rtdip_interface interface;
	struct local_listener listener;
	int epoll, signals;
	struct rtdip_kernel kernel;
	struct client clients[CLIENTS_MAX];
	struct owner owners[UINT16_MAX + 1];
	int port_count, left_count;
	uint16_t refused_version; /* the last one that was said */
	char text[RTDIP_SHOW_BYTES];
};

BW_EVENT_POINT(port_given, "service", "port-given", "a program has got a port; tag: the port");
BW_EVENT_POINT(port_taken, "service", "port-taken", "a program gave a port back; tag: the port");
BW_EVENT_POINT(client_left, "service", "client-left", "a program ended, or closed its connection; tag: its process");

static int fail(const struct service *service, const char *what, int err)
{
	fprintf(stderr, TOOL ": %s: %s: %s\n", service->interface.name, what, strerror(-err));
	return EXIT_CAPABILITY;
}

/* What ends the service, and the socket that processes ask. */
static int listen_for_processes(struct service *service, int64_t group)
{
	int err;

	service->signals = local_end_signals();
	err = service->signals < 0 ? service->signals : local_watch(service->epoll, service->signals);
	if (!err)
		err = local_watch(service->epoll, service->interface.changes);
	if (err)
		return err;
	return local_listen(&service->listener, service->epoll, service->path, group);
}

static struct client *client_of(struct service *service, int connection)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (service->clients[i].connection == connection)
			return &service->clients[i];
	}
	return NULL;
}

/* Take back a port of a client that lives: when it is told so nothing comes into the ring any more. */
static void take_port(struct service *service, uint16_t port)
{
	BW_EVENT(port_taken, port);
	rtdip_kernel_take(&service->kernel, &port, 1);
	service->owners[port].client = NULL;
	service->port_count--;
}

/* Take back ports that ended clients have left, from one on: no more than one answer may wait for. */
static void take_left(struct service *service, uint16_t first)
{
	uint16_t ports[RTDIP_TAKE_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i <= UINT16_MAX && count < RTDIP_TAKE_MAX && service->left_count; i++) {
		uint16_t port = (uint16_t)(first + i);

		if (!service->owners[port].left)
			continue;
		service->owners[port].left = false;
		service->left_count--;
		ports[count++] = port;
	}
	rtdip_kernel_take(&service->kernel, ports, count);
}

static void drop_client(struct service *service, struct client *client)
{
	for (int port = 1; port <= UINT16_MAX && service->port_count; port++) {
		if (service->owners[port].client != client)
			continue;
		service->owners[port] = (struct owner){ .left = true };
		service->port_count--;
		service->left_count++;
	}
	BW_EVENT(client_left, client->who.pid);
	close(client->connection);
	client->connection = -1;
}

/* How many connections there are, or how many of them are handles. */
static struct user_use clients_in_use(const struct service *service, uid_t uid, bool of_handles)
{
	struct user_use use = { 0, 0 };

	for (int i = 0; i < CLIENTS_MAX; i++) {
		const struct client *client = &service->clients[i];

		if (client->connection >= 0 && (client->handle || !of_handles))
			user_use_add(&use, client->who.uid == uid);
	}
	return use;
}

static struct user_use ports_in_use(const struct service *service, uid_t uid)
{
	struct user_use use = { 0, 0 };

	for (int port = 1; port <= UINT16_MAX; port++) {
		if (service->owners[port].client)
			user_use_add(&use, service->owners[port].client->who.uid == uid);
	}
	return use;
}

static void admit(struct service *service)
{
	struct client *client = client_of(service, -1);
	struct ucred who;
	int connection = local_accept(&service->listener, &who);

	if (connection < 0) {
		if (connection != -EAGAIN)
			fail(service, "no program can be let in for now", connection);
		return;
	}
	if (user_share_refuses(&connection_share, TOOL, who.uid, clients_in_use(service, who.uid, false)) || !client ||
	    local_watch(service->epoll, connection) != 0)
		close(connection);
	else
		*client = (struct client){ connection, who, false };
}

/*
 * A socket by which one process sends. It receives nothing, whatever the process does with it: one that is bound anew would take
 * all that leaves the interface, so a filter lets nothing in, and is locked. Return it, or -errno.
 */
static int open_sending(const struct service *service)
{
	const struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_ifindex = (int)service->interface.index,
	};
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = { 1, &nothing };
	const int locked = 1;
	int sending = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (sending < 0)
		return -errno;
	if (setsockopt(sending, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0 ||
	    setsockopt(sending, SOL_SOCKET, SO_LOCK_FILTER, &locked, sizeof(locked)) < 0 ||
	    bind(sending, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		int err = -errno;

		close(sending);
		return err;
	}
	return sending;
}

/* Let a client send. Return a descriptor, or -errno. */
static int give_handle(const struct service *service, struct client *client)
{
	int err = client->handle ? 0 : user_share_refuses(&handle_share, TOOL, client->who.uid, clients_in_use(service, client->who.uid, true));
	int sending = err ? err : open_sending(service);

	client->handle = client->handle || sending >= 0;
	return sending;
}

/* A port that is free, from above; 0: none. */
static uint16_t free_port(const struct service *service)
{
	for (int port = RTDIP_EPHEMERAL_MIN; port <= UINT16_MAX; port++) {
		if (!service->owners[port].client)
			return (uint16_t)port;
	}
	return 0;
}

/* The rings are the service's memory: no user but root may take all of it. */
static bool has_room(const struct service *service, uid_t uid, uint32_t bytes)
{
	uint64_t used_bytes = bytes;

	if (uid == 0)
		return true;
	for (int port = 1; port <= UINT16_MAX; port++) {
		const struct owner *owner = &service->owners[port];

		if (owner->client && owner->client->who.uid == uid)
			used_bytes += owner->ring_bytes;
	}
	return used_bytes <= RTDIP_USER_RINGS_BYTES;
}

/* Give a port to a client. Return the port, *ring a descriptor of its ring; or -errno. */
static int give_port(struct service *service, struct client *client, const struct rtdip_request *request, int *ring)
{
	uint16_t port = request->port ? request->port : free_port(service);
	uint32_t bytes = request->ring_bytes;
	int err;

	if (!rtdip_is_ring_size(bytes))
		return -EINVAL;
	if (!port || service->owners[port].client)
		return -EADDRINUSE;
	if (port <= RTDIP_PRIVILEGED_MAX && client->who.uid != 0)
		return -EACCES;
	err = user_share_refuses(&port_share, TOOL, client->who.uid, ports_in_use(service, client->who.uid));
	if (err)
		return err;
	if (!has_room(service, client->who.uid, bytes))
		return -ENOBUFS;
	if (service->owners[port].left || service->port_count + service->left_count == RTDIP_PORTS_MAX)
		take_left(service, port);
	*ring = rtdip_kernel_ring(bytes);
	if (*ring < 0)
		return *ring;
	err = rtdip_kernel_give(&service->kernel, port, *ring);
	if (err)
		return err;
	service->owners[port] = (struct owner){ .client = client, .ring_bytes = bytes };
	service->port_count++;
	BW_EVENT(port_given, port);
	return port;
}

enum { SHOW_HEAD_BYTES = 1024, SHOW_PORT_BYTES = 180, MAC_TEXT_BYTES = 18 }; /* the first two at most */

_Static_assert(SHOW_HEAD_BYTES + RTDIP_PORTS_MAX * SHOW_PORT_BYTES <= RTDIP_SHOW_BYTES, "all ports have room");

static void show_port(const struct service *service, struct json *json, uint16_t port)
{
	const struct owner *owner = &service->owners[port];
	struct rtdip_port_counts counts = { 0 };

	rtdip_kernel_port_counts(&service->kernel, port, &counts);
	json_object_open(json, NULL);
	json_int(json, "port", port);
	json_int(json, "pid", owner->client->who.pid);
	json_uint(json, "uid", owner->client->who.uid);
	json_uint(json, "ring_bytes", owner->ring_bytes);
	json_uint(json, "frames", counts.frames);
	json_uint(json, "bytes", counts.bytes);
	json_uint(json, "full", counts.full);
	json_object_close(json);
}

/* Write what the service knows as a JSON object. Return 0 or -errno, *length its bytes. */
static int show(struct service *service, size_t *length)
{
	const uint8_t *mac = service->interface.mac;
	FILE *out = fmemopen(service->text, sizeof(service->text), "w");
	uint64_t counts[RTDIP_COUNTS];
	char text[MAC_TEXT_BYTES];
	struct json json;
	int err;

	if (!out)
		return -errno;
	json_init(&json, out);
	json_object_open(&json, NULL);
	json_string(&json, "interface", service->interface.name);
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	json_string(&json, "mac", text);
	json_bool(&json, "native", service->kernel.native);
	json_uint(&json, "data_max_bytes", service->interface.data_max_bytes);
	json_object_open(&json, "frames");
	rtdip_kernel_counts(&service->kernel, counts);
	for (int i = 0; i < RTDIP_COUNTS; i++)
		json_uint(&json, rtdip_count_name((enum rtdip_count)i), counts[i]);
	json_object_close(&json);
	json_array_open(&json, "ports");
	for (int port = 1; port <= UINT16_MAX; port++) {
		if (service->owners[port].client)
			show_port(service, &json, (uint16_t)port);
	}
	json_array_close(&json);
	json_object_close(&json);
	err = json_line_end(&json);
	*length = (size_t)ftell(out);
	fclose(out);
	return err;
}

static void handle(struct service *service, struct client *client, const struct rtdip_request *request)
{
	struct rtdip_answer about = { .ring_bytes = request->ring_bytes, .data_max_bytes = service->interface.data_max_bytes,
				      .version = RTDIP_SERVICE_VERSION };
	size_t text_bytes = 0;
	int descriptor = -1;

	memcpy(about.mac, service->interface.mac, RTDIP_MAC_BYTES);
	switch (request->verb) {
	case RTDIP_HELLO:
		descriptor = give_handle(service, client);
		about.result = descriptor < 0 ? descriptor : 0;
		break;
	case RTDIP_BIND:
		about.result = give_port(service, client, request, &descriptor);
		break;
	case RTDIP_UNBIND:
		if (request->port && service->owners[request->port].client == client)
			take_port(service, request->port);
		else
			about.result = -EINVAL;
		break;
	case RTDIP_SHOW:
		about.result = show(service, &text_bytes);
		break;
	default:
		about.result = -EINVAL;
		break;
	}
	if (local_answer(client->connection, &about, sizeof(about), &descriptor, descriptor >= 0, service->text, text_bytes))
		drop_client(service, client); /* it is gone, or reads nothing: one that missed an answer would wait for it for good */
	if (descriptor >= 0)
		close(descriptor);
}

/* What else it says may mean something else. */
static void refuse_version(struct service *service, struct client *client, uint16_t version)
{
	const struct rtdip_answer about = { .result = -EPROTO, .version = RTDIP_SERVICE_VERSION };

	if (version != service->refused_version)
		fprintf(stderr, TOOL ": %s: process %d speaks version %u of the local protocol, this service version %d\n",
			service->interface.name, (int)client->who.pid, (unsigned int)version, RTDIP_SERVICE_VERSION);
	service->refused_version = version;
	if (version) /* `show` of builds before there were versions prints any answer */
		local_answer(client->connection, &about, sizeof(about), NULL, 0, NULL, 0);
	drop_client(service, client);
}

static void serve_client(struct service *service, struct client *client)
{
	struct rtdip_request request = { 0 };
	ssize_t length = recv(client->connection, &request, sizeof(request), MSG_TRUNC);

	if (length == (ssize_t)sizeof(request) && request.version == RTDIP_SERVICE_VERSION)
		handle(service, client, &request);
	else if (length > 0)
		refuse_version(service, client, request.version);
	else if (length == 0 || (errno != EAGAIN && errno != EINTR))
		drop_client(service, client); /* it has ended */
}

/* Handle what has happened at a descriptor. Return RUNNING, or an exit code. */
static int happen(struct service *service, int descriptor)
{
	struct client *client;
	const char *over;

	if (descriptor == service->signals)
		return EXIT_DONE;
	if (descriptor == service->interface.changes) {
		over = rtdip_interface_look(&service->interface);
		if (over)
			fprintf(stderr, TOOL ": %s: %s\n", service->interface.name, over);
		return over ? EXIT_FAULT : RUNNING;
	}
	if (descriptor == service->listener.socket)
		admit(service);
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
		if (service->left_count)
			take_left(service, 0);
	}
	return code;
}

int rtdip_serve(const char *interface, const char *socket_path, int64_t group, bool generic)
{
	static struct service service;
	static char log[BPF_LOG_BYTES];
	int err, code = EXIT_DONE;

	service = (struct service){ .path = socket_path, .signals = -1,
				    .refused_version = RTDIP_SERVICE_VERSION };
	for (int i = 0; i < CLIENTS_MAX; i++)
		service.clients[i].connection = -1;
	local_allow_descriptors();
	service.epoll = epoll_create1(EPOLL_CLOEXEC);
	err = service.epoll < 0 ? -errno : rtdip_interface_open(interface, &service.interface);
	if (err)
		return fail(&service, "no such interface", err);
	err = rtdip_kernel_open(&service.kernel, (int)service.interface.index, service.interface.mac, generic, log);
	if (err) {
		fputs(log, stderr);
		return fail(&service, err == -EBUSY ? "another XDP program is there" : "the XDP program cannot be attached", err);
	}
	err = listen_for_processes(&service, group);
	if (err) {
		code = fail(&service, socket_path, err);
	} else {
		printf("{\"type\":\"ready\",\"tool\":\"" TOOL "\",\"interface\":\"%s\",\"native\":%s}\n", interface,
		       service.kernel.native ? "true" : "false");
		fflush(stdout);
		code = run(&service);
		unlink(socket_path);
	}
	rtdip_kernel_close(&service.kernel);
	return code;
}

int rtdip_show(const char *socket_path)
{
	static struct {
		struct rtdip_answer about;
		char text[RTDIP_SHOW_BYTES];
	} reply;
	const struct rtdip_request request = { .verb = RTDIP_SHOW, .version = RTDIP_SERVICE_VERSION };
	int service = rtdip_connect(socket_path);
	ssize_t length = -1;

	if (service < 0) {
		fprintf(stderr, "bw-rtdip show: %s: %s\n", socket_path, strerror(-service));
		return service == -ENAMETOOLONG ? EXIT_BAD_INPUT : EXIT_CAPABILITY;
	}
	if (send(service, &request, sizeof(request), MSG_NOSIGNAL) > 0)
		length = recv(service, &reply, sizeof(reply), 0);
	if (length <= 0)
		fprintf(stderr, "bw-rtdip show: %s: %s\n", socket_path, length < 0 ? strerror(errno) : "no answer");
	else if (reply.about.version != RTDIP_SERVICE_VERSION)
		fprintf(stderr, "bw-rtdip show: %s: the service speaks version %u of the local protocol, this program version %d\n",
			socket_path, reply.about.version > UINT16_MAX ? 0 : (unsigned int)reply.about.version, RTDIP_SERVICE_VERSION);
	close(service);
	if (length < (ssize_t)sizeof(reply.about) || reply.about.version != RTDIP_SERVICE_VERSION)
		return EXIT_CAPABILITY;
	fwrite(reply.text, 1, (size_t)length - sizeof(reply.about), stdout);
	return EXIT_DONE;
}
