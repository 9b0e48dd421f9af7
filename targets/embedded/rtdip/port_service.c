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
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bpf/port_bpf.h"
#include "config/options.h"
#include "local_socket/port_local_socket.h"
#include "port_xdp.h"
#include "rtdip.h"

#define TOOL "bw-rtdip serve"

enum { CLIENTS_MAX = 1024, EVENTS_MAX = 64 };

struct client {
	int connection; /* -1: free */
	struct ucred who;
};

struct owner {
	struct client *client; /* NULL: free */
	uint32_t ring_bytes;
};

struct service {
	const char *interface, *path;
	unsigned int interface_index;
	uint8_t mac[RTDIP_MAC_BYTES];
	uint16_t data_max_bytes; /* of a frame */
	struct local_listener listener;
	int epoll, signals;
	struct rtdip_kernel kernel;
	struct client clients[CLIENTS_MAX];
	struct owner owners[UINT16_MAX + 1];
	int port_count;
	uint16_t refused_version; /* the last one that was said */
	char text[RTDIP_SHOW_BYTES];
};

static int fail(const struct service *service, const char *what, int err)
{
	fprintf(stderr, TOOL ": %s: %s: %s\n", service->interface, what, strerror(-err));
	return EXIT_CAPABILITY;
}

static uint16_t data_max_bytes(int mtu_bytes)
{
	if (mtu_bytes < RTDIP_HEADER_BYTES)
		return 0;
	return (uint16_t)((mtu_bytes < RTDIP_PAYLOAD_MAX_BYTES ? mtu_bytes : RTDIP_PAYLOAD_MAX_BYTES) - RTDIP_HEADER_BYTES);
}

static int find_interface(struct service *service)
{
	struct ifreq request = { 0 }, mtu;
	int probe, err = 0;

	service->interface_index = if_nametoindex(service->interface);
	if (!service->interface_index)
		return -errno;
	probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strncpy(request.ifr_name, service->interface, sizeof(request.ifr_name) - 1);
	mtu = request;
	if (probe < 0 || ioctl(probe, SIOCGIFHWADDR, &request) < 0 || ioctl(probe, SIOCGIFMTU, &mtu) < 0)
		err = -errno;
	if (probe >= 0)
		close(probe);
	memcpy(service->mac, request.ifr_hwaddr.sa_data, RTDIP_MAC_BYTES);
	service->data_max_bytes = data_max_bytes(mtu.ifr_mtu);
	return err;
}

/* What ends the service, and the socket that processes ask. */
static int listen_for_processes(struct service *service, int64_t group)
{
	int err;

	service->signals = local_end_signals();
	err = service->signals < 0 ? service->signals : local_watch(service->epoll, service->signals);
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

static void take_port(struct service *service, uint16_t port)
{
	rtdip_kernel_take(&service->kernel, port);
	service->owners[port].client = NULL;
	service->port_count--;
}

static void drop_client(struct service *service, struct client *client)
{
	for (int port = 1; port <= UINT16_MAX && service->port_count; port++) {
		if (service->owners[port].client == client)
			take_port(service, (uint16_t)port);
	}
	close(client->connection);
	client->connection = -1;
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
	if (!client || local_watch(service->epoll, connection) != 0)
		close(connection);
	else
		*client = (struct client){ connection, who };
}

/*
 * A socket by which one process sends. It receives nothing, whatever the process does with it: one that is bound anew would take
 * all that leaves the interface, so a filter lets nothing in, and is locked. Return it, or -errno.
 */
static int open_sending(const struct service *service)
{
	const struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_ifindex = (int)service->interface_index,
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
	if (service->port_count == RTDIP_PORTS_MAX)
		return -ENOSPC;
	if (!has_room(service, client->who.uid, bytes))
		return -ENOBUFS;
	*ring = rtdip_kernel_ring(bytes);
	if (*ring < 0)
		return *ring;
	err = rtdip_kernel_give(&service->kernel, port, *ring);
	if (err)
		return err;
	service->owners[port] = (struct owner){ client, bytes };
	service->port_count++;
	return port;
}

enum { SHOW_HEAD_BYTES = 1024, SHOW_PORT_BYTES = 180 }; /* at most */

_Static_assert(SHOW_HEAD_BYTES + RTDIP_PORTS_MAX * SHOW_PORT_BYTES <= RTDIP_SHOW_BYTES, "all ports have room");

/* Add to the text of `show`, which has room for it. */
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

/* Write what the service knows as a JSON object. Return its length. */
static size_t show(struct service *service)
{
	uint64_t counts[RTDIP_COUNTS];
	size_t used = add(service, 0, "{\"interface\":\"%s\",\"mac\":\"%02x:%02x:%02x:%02x:%02x:%02x\",\"native\":%s,\"data_max_bytes\":%u,\"frames\":{",
			  service->interface, service->mac[0], service->mac[1], service->mac[2], service->mac[3],
			  service->mac[4], service->mac[5], service->kernel.native ? "true" : "false",
			  (unsigned int)service->data_max_bytes);
	const char *between = "";

	rtdip_kernel_counts(&service->kernel, counts);
	for (int i = 0; i < RTDIP_COUNTS; i++)
		used = add(service, used, "%s\"%s\":%llu", i ? "," : "", rtdip_count_name((enum rtdip_count)i),
			   (unsigned long long)counts[i]);
	used = add(service, used, "},\"ports\":[");
	for (int port = 1; port <= UINT16_MAX; port++) {
		const struct owner *owner = &service->owners[port];
		struct rtdip_port_counts of_port = { 0 };

		if (!owner->client)
			continue;
		rtdip_kernel_port_counts(&service->kernel, (uint16_t)port, &of_port);
		used = add(service, used,
			   "%s{\"port\":%d,\"pid\":%d,\"uid\":%u,\"ring_bytes\":%u,\"frames\":%llu,\"bytes\":%llu,\"full\":%llu}",
			   between, port, (int)owner->client->who.pid, (unsigned int)owner->client->who.uid,
			   owner->ring_bytes, (unsigned long long)of_port.frames, (unsigned long long)of_port.bytes,
			   (unsigned long long)of_port.full);
		between = ",";
	}
	return add(service, used, "]}\n");
}

static void handle(struct service *service, struct client *client, const struct rtdip_request *request)
{
	struct rtdip_answer about = { .ring_bytes = request->ring_bytes, .data_max_bytes = service->data_max_bytes,
				      .version = RTDIP_SERVICE_VERSION };
	size_t text_bytes = 0;
	int descriptor = -1;

	memcpy(about.mac, service->mac, RTDIP_MAC_BYTES);
	switch (request->verb) {
	case RTDIP_HELLO:
		descriptor = open_sending(service);
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
		text_bytes = show(service);
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
			service->interface, (int)client->who.pid, (unsigned int)version, RTDIP_SERVICE_VERSION);
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

static void run(struct service *service)
{
	struct epoll_event events[EVENTS_MAX];

	for (;;) {
		int count = epoll_wait(service->epoll, events, EVENTS_MAX, -1);

		for (int i = 0; i < count; i++) {
			int descriptor = events[i].data.fd;
			struct client *client;

			if (descriptor == service->signals)
				return;
			if (descriptor == service->listener.socket)
				admit(service);
			else if ((client = client_of(service, descriptor)) != NULL)
				serve_client(service, client);
		}
	}
}

int rtdip_serve(const char *interface, const char *socket_path, int64_t group, int generic)
{
	static struct service service;
	static char log[BPF_LOG_BYTES];
	int err, code = EXIT_DONE;

	service = (struct service){ .interface = interface, .path = socket_path, .signals = -1,
				    .refused_version = RTDIP_SERVICE_VERSION };
	for (int i = 0; i < CLIENTS_MAX; i++)
		service.clients[i].connection = -1;
	local_allow_descriptors();
	service.epoll = epoll_create1(EPOLL_CLOEXEC);
	err = service.epoll < 0 ? -errno : find_interface(&service);
	if (err)
		return fail(&service, "no such interface", err);
	err = rtdip_kernel_open(&service.kernel, (int)service.interface_index, service.mac, generic, log);
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
		run(&service);
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
