/* SPDX-License-Identifier: Apache-2.0 */
#include "port_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "neighbours.h"
#include "port_children.h"
#include "port_libc.h"
#include "port_page.h"
#include "port_rings.h"
#include "port_stackd.h"
#include "port_wait.h"

#define US_PER_S UINT64_C(1000000)
#define NS_PER_US 1000
#define NS_PER_S UINT64_C(1000000000)

enum {
	TURN_FRAMES = 16, TURN_US = 100, KICK_AGAIN_US = 500, KICK_PAUSE_MAX_US = 100000, ETHERNET_BYTES = 14, TYPE_AT = 12, TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86DD,
	PORTS_LOOKED_US = 1000000, /* how often ports of closed sockets are looked at */
	FINISH_US = 5000000, FINISH_LOOKS_MS = 1,
	HALF_CLOSED_US = 100000,   /* so long the end of the program waits for peers that have everything, but have not closed */
	PRIVATE_FDS = 256,         /* this library's descriptors are the last ones below the limit */
	BUSY_POLL_MAX_US = 1000000,
};

struct port {
	struct port *next;
	int protocol;
	uint16_t port;
	struct stack_address only; /* the address that it was given for; its family is 0 once there are several */
	unsigned int sockets; /* 0: only connections whose sockets are closed */
};

static struct {
	enum { BEFORE, RUNNING, GONE } state;
	int service;
	struct rings rings;
	uint8_t mac[STACKD_MAC_BYTES];
	struct stackd_address addresses[STACKD_ADDRESSES_MAX];
	uint32_t address_count, interface_index;
	uint64_t busy_poll_us, ports_looked_us;
	uint64_t unsent_since_us; /* the kernel does not take what was made; 0: it does */
	bool stamps; /* a socket has asked for them: from then on as long as the program runs */
	struct port *ports;
} engine = { .service = -1, .rings = { .fd = -1 } };

void (*engine_socket_changed)(struct stack_socket *sock);

void engine_say(const char *format, ...)
{
	char line[256];
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(line, sizeof(line) - 1, format, values);
	va_end(values);
	if (length > (int)sizeof(line) - 2)
		length = (int)sizeof(line) - 2;
	line[length] = '\n';
	dprintf(STDERR_FILENO, "bw-accel: %s: %.*s", program_invocation_short_name, length + 1, line);
}

uint64_t engine_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
}

uint64_t engine_realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void engine_stamp_frames(void)
{
	engine.stamps = true;
}

bool engine_is_gone(void)
{
	return engine.state == GONE;
}

bool engine_runs(void)
{
	return engine.state == RUNNING;
}

/* What the stack asks of what it runs in. */

static void send_packet(void *argument, const uint8_t *packet, size_t size_bytes)
{
	(void)argument;
	neighbours_send(packet, size_bytes);
}

static void send_frame(const uint8_t mac[NEIGHBOUR_MAC_BYTES], const uint8_t *packet, size_t packet_bytes)
{
	uint8_t header[ETHERNET_BYTES];
	uint16_t type = packet[0] >> 4 == 6 ? TYPE_IPV6 : TYPE_IPV4;

	memcpy(header, mac, NEIGHBOUR_MAC_BYTES);
	memcpy(header + NEIGHBOUR_MAC_BYTES, engine.mac, STACKD_MAC_BYTES);
	header[TYPE_AT] = (uint8_t)(type >> 8);
	header[TYPE_AT + 1] = (uint8_t)type;
	rings_send(&engine.rings, header, sizeof(header), packet, packet_bytes);
}

static void socket_changed(void *argument, struct stack_socket *sock)
{
	(void)argument;
	wait_changed();
	if (engine_socket_changed)
		engine_socket_changed(sock);
}

static void fill_random(void *argument, void *bytes, size_t size_bytes)
{
	uint8_t *to = bytes;

	(void)argument;
	while (size_bytes) {
		ssize_t length = getrandom(to, size_bytes, 0);

		if (length < 0 && errno != EINTR)
			abort(); /* sequence numbers that can be guessed are worse */
		if (length > 0) {
			to += length;
			size_bytes -= (size_t)length;
		}
	}
}

static void ask_for(bool ipv6, const uint8_t *ip)
{
	struct stackd_request request = { .verb = STACKD_RESOLVE, .family = ipv6 ? AF_INET6 : AF_INET };

	memcpy(request.ip, ip, ipv6 ? 16 : 4);
	if (engine.state == RUNNING && stackd_tell(engine.service, &request, -1))
		neighbours_learn(ipv6, ip, NULL);
}

/* What the service says. */

static struct stack_address to_stack(const struct stackd_address *address)
{
	struct stack_address own = { .family = address->family == AF_INET6 ? STACK_IPV6 : STACK_IPV4 };

	memcpy(own.ip, address->ip, sizeof(own.ip));
	return own;
}

static bool same_address(const struct stackd_address *one, const struct stackd_address *other)
{
	return one->family == other->family && memcmp(one->ip, other->ip, one->family == AF_INET6 ? 16 : 4) == 0;
}

static bool is_among(const struct stackd_address *address, const struct stackd_address *all, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (same_address(address, &all[i]))
			return true;
	}
	return false;
}

/* The stack has the interface's addresses: what is no more there goes first, as its room is small. */
static void follow_addresses(const struct stackd_answer *said)
{
	uint32_t count = said->addresses < STACKD_ADDRESSES_MAX ? said->addresses : STACKD_ADDRESSES_MAX;

	for (uint32_t i = 0; i < engine.address_count; i++) {
		struct stack_address old = to_stack(&engine.addresses[i]);

		if (!is_among(&engine.addresses[i], said->address, count))
			stack_remove_address(&old);
	}
	engine.address_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct stack_address each = to_stack(&said->address[i]);

		if (stack_add_address(&each) == 0)
			engine.addresses[engine.address_count++] = said->address[i];
	}
	stack_set_mtu(said->mtu_bytes);
}

/* The service asks what the stack is doing. */
static void report(void)
{
	struct stackd_request request = { .verb = STACKD_REPORTED };

	page_fill(&engine.rings);
	stackd_tell(engine.service, &request, -1); /* if the service is gone, the next one who asks it finds out */
}

static void hear(const struct stackd_answer *event)
{
	bool ipv6 = event->family == AF_INET6;

	if (event->verb == STACKD_ADDRESSES)
		follow_addresses(event);
	else if (event->verb == STACKD_REPORT)
		report();
	else if ((event->verb == STACKD_RESOLVE || event->verb == STACKD_NEIGHBOUR) && event->result != -EINPROGRESS)
		neighbours_learn(ipv6, event->ip, event->result ? NULL : event->mac);
}

static void service_is_gone(void)
{
	if (engine.state != RUNNING)
		return;
	engine.state = GONE;
	wait_changed();
	engine_say("the service of the interface is gone: what the stack had is lost");
}

static int ask(struct stackd_request *request, int descriptor, struct stackd_answer *answer, int descriptors[2])
{
	int err = stackd_ask(engine.service, request, descriptor, answer, descriptors, hear);

	if (err) {
		service_is_gone();
		return -ENETDOWN;
	}
	return 0;
}

static void take_frame(const uint8_t *frame, size_t size_bytes)
{
	/* Nothing but IP comes: the service's program sees to it. */
	if (size_bytes <= ETHERNET_BYTES)
		return;
	if (engine.stamps) /* each frame: one that was handled meanwhile takes its time */
		stack_set_arrival(engine_realtime_ns());
	stack_input(frame + ETHERNET_BYTES, size_bytes - ETHERNET_BYTES);
}

static unsigned int take_frames(void)
{
	unsigned int count;

	stack_input_begin();
	count = rings_receive(&engine.rings, take_frame, TURN_FRAMES);
	stack_input_end();
	return count;
}

static void give_back_ports(uint64_t now_us)
{
	if (now_us - engine.ports_looked_us < PORTS_LOOKED_US)
		return;
	engine.ports_looked_us = now_us;
	for (struct port **each = &engine.ports; *each;) {
		struct port *port = *each;
		struct stackd_request request = { .verb = STACKD_UNBIND, .protocol = (uint8_t)port->protocol, .port = port->port };

		if (port->sockets || stack_port_in_use(port->protocol == IPPROTO_TCP ? STACK_TCP : STACK_UDP, port->port)) {
			each = &port->next;
			continue;
		}
		*each = port->next;
		free(port);
		if (stackd_tell(engine.service, &request, -1))
			service_is_gone();
	}
}

void engine_advance(void)
{
	if (engine.state == RUNNING)
		stack_advance_us(engine_now_us());
}

bool engine_turn(void)
{
	uint64_t now_us = engine_now_us();

	if (engine.state != RUNNING)
		return false;
	stack_advance_us(now_us);
	while (rings_waiting(&engine.rings) && take_frames()) {
		rings_flush(&engine.rings);
		if (engine_now_us() - now_us >= TURN_US)
			break;
	}
	children_turn();
	give_back_ports(now_us);
	return engine.state == RUNNING && rings_waiting(&engine.rings);
}

void engine_flush(void)
{
	if (engine.state == RUNNING)
		rings_flush(&engine.rings);
}

void engine_hear_service(void)
{
	if (engine.state == RUNNING && stackd_hear(engine.service, hear))
		service_is_gone();
}

uint64_t engine_next_us(void)
{
	uint64_t next_us, now_us, pause_us;

	if (engine.state != RUNNING)
		return UINT64_MAX;
	next_us = stack_next_us();
	if (!rings_unsent(&engine.rings)) {
		engine.unsent_since_us = 0;
		return next_us;
	}
	now_us = engine_now_us();
	if (!engine.unsent_since_us)
		engine.unsent_since_us = now_us;
	pause_us = (now_us - engine.unsent_since_us) / 2;
	pause_us = pause_us < KICK_AGAIN_US ? KICK_AGAIN_US : pause_us > KICK_PAUSE_MAX_US ? KICK_PAUSE_MAX_US : pause_us;
	return next_us < now_us + pause_us ? next_us : now_us + pause_us;
}

int engine_packets_fd(void)
{
	return engine.state == RUNNING ? engine.rings.fd : -1;
}

int engine_service_fd(void)
{
	return engine.state == RUNNING ? engine.service : -1;
}

uint64_t engine_busy_poll_us(void)
{
	return engine.state == RUNNING ? engine.busy_poll_us : 0;
}

/* Where the library's own descriptors begin. */
static int first_private(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur <= 2 * PRIVATE_FDS)
		return PRIVATE_FDS;
	return limit.rlim_cur > INT_MAX / 2 ? INT_MAX / 2 : (int)limit.rlim_cur - PRIVATE_FDS;
}

static uint8_t owned[PRIVATE_FDS]; /* of the descriptors from the first private one on */
static int owned_first = -1;

int engine_private(int fd)
{
	int high;

	if (fd < 0)
		return -1;
	if (owned_first < 0)
		owned_first = first_private();
	high = libc_calls()->fcntl64(fd, F_DUPFD_CLOEXEC, owned_first);
	if (high < 0)
		return fd;
	libc_calls()->close(fd);
	if (high - owned_first < PRIVATE_FDS)
		owned[high - owned_first] = 1;
	return high;
}

bool engine_owns(int fd)
{
	return owned_first >= 0 && fd >= owned_first && fd - owned_first < PRIVATE_FDS && owned[fd - owned_first];
}

int engine_next_private(int fd)
{
	for (int at = fd < owned_first ? 0 : fd - owned_first + 1; owned_first >= 0 && at < PRIVATE_FDS; at++) {
		if (owned[at])
			return owned_first + at;
	}
	return -1;
}

void engine_close_private(int fd)
{
	if (engine_owns(fd))
		owned[fd - owned_first] = 0;
	if (fd >= 0)
		libc_calls()->close(fd);
}

static void read_busy_poll(void)
{
	const char *text = getenv("BW_ACCEL_BUSY_POLL_US");
	char *end;
	unsigned long value = text ? strtoul(text, &end, 10) : 0;

	engine.busy_poll_us = text && *text && !*end && value <= BUSY_POLL_MAX_US ? value : 0;
}

/* Begin with what the service has given. */
static int begin_with(int service, int packets, int memory, const struct stackd_answer *hello)
{
	static const struct stack_host host = { send_packet, socket_changed, fill_random };
	static const struct neighbours_host neighbours = { ask_for, send_frame };
	int err = rings_open(&engine.rings, packets, memory, hello);

	if (err)
		return err;
	err = stack_init(&host, NULL, engine_now_us());
	if (err) {
		engine.rings.fd = -1;
		rings_close(&engine.rings);
		return err;
	}
	engine.service = service;
	memcpy(engine.mac, hello->mac, STACKD_MAC_BYTES);
	engine.interface_index = hello->interface_index;
	neighbours_begin(&neighbours);
	follow_addresses(hello);
	read_busy_poll();
	page_fill(&engine.rings);
	engine.state = RUNNING;
	return 0;
}

int engine_begin(void)
{
	const char *named = getenv("BW_ACCEL_SOCKET"), *path = named && *named ? named : STACKD_SOCKET;
	struct stackd_request request = { .verb = STACKD_HELLO };
	struct stackd_answer answer;
	int service, page, err, given[2] = { -1, -1 };

	if (engine.state != BEFORE)
		return engine.state == RUNNING ? 0 : -ENETDOWN;
	service = stackd_connect(path);
	if (service < 0) {
		engine_say("no service answers at %s: %s", path, strerror(-service));
		return -ENETDOWN;
	}
	service = engine_private(service);
	page = page_begin(); /* without one bw-netstat does not see the program's sockets, that is all */
	err = stackd_ask(service, &request, page, &answer, given, hear);
	if (page >= 0)
		libc_calls()->close(page);
	err = err ? err : answer.result;
	if (!err && (given[0] < 0 || given[1] < 0))
		err = -EPROTO;
	given[0] = engine_private(given[0]);
	if (!err)
		err = begin_with(service, given[0], given[1], &answer);
	if (given[1] >= 0)
		libc_calls()->close(given[1]);
	if (!err)
		err = wait_begin_helper();
	if (err) {
		engine_say("the service at %s: %s", path, strerror(-err));
		if (engine.state != RUNNING)
			engine_close_private(given[0]);
		else
			rings_close(&engine.rings);
		engine.state = BEFORE;
		engine_close_private(service);
		return -ENETDOWN;
	}
	return 0;
}

static struct port *find_port(int protocol, uint16_t port)
{
	struct port *each = engine.ports;

	while (each && (each->protocol != protocol || each->port != port))
		each = each->next;
	return each;
}

static int ask_for_port(int protocol, uint16_t port, int fd)
{
	struct stackd_request request = { .verb = STACKD_BIND, .protocol = (uint8_t)protocol, .port = port };
	struct stackd_answer answer;
	int err = ask(&request, fd, &answer, NULL);

	return err ? err : answer.result;
}

/* A port that the program has already, for another socket; on another address it has to be asked for once more. */
static int take_again(struct port *own, const struct stack_address *local, int fd)
{
	if (own->only.family && (own->only.family != local->family || memcmp(own->only.ip, local->ip, sizeof(local->ip)) != 0)) {
		int err = ask_for_port(own->protocol, own->port, fd);

		if (err)
			return err;
		own->only = (struct stack_address){ 0 };
	}
	own->sockets++;
	return 0;
}

int engine_take_port(int protocol, const struct stack_address *local, int fd)
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
	*own = (struct port){ .next = engine.ports, .protocol = protocol, .port = local->port, .only = *local, .sockets = 1 };
	engine.ports = own;
	return 0;
}

void engine_drop_port(int protocol, uint16_t port)
{
	struct port *own = find_port(protocol, port);

	if (own && own->sockets)
		own->sockets--;
}

int engine_route(const struct stack_address *to, struct stack_address *source)
{
	struct stackd_request request = { .verb = STACKD_RESOLVE, .family = to->family == STACK_IPV6 ? AF_INET6 : AF_INET };
	struct stackd_answer answer;
	int err;

	memcpy(request.ip, to->ip, sizeof(request.ip));
	err = ask(&request, -1, &answer, NULL);
	if (err)
		return err;
	if (answer.result && answer.result != -EINPROGRESS)
		return answer.result;
	*source = (struct stack_address){ .family = to->family };
	memcpy(source->ip, answer.source, sizeof(source->ip));
	hear(&answer);
	return 0;
}

bool engine_has_address(const struct stack_address *address)
{
	struct stackd_address own = { .family = address->family == STACK_IPV6 ? AF_INET6 : AF_INET };

	memcpy(own.ip, address->ip, sizeof(own.ip));
	return is_among(&own, engine.addresses, engine.address_count);
}

uint32_t engine_interface_index(void)
{
	return engine.interface_index;
}

void engine_finish(void)
{
	uint64_t began_us = engine_now_us();

	while (engine.state == RUNNING && engine_now_us() - began_us < FINISH_US) {
		struct pollfd packets = { .fd = engine.rings.fd, .events = POLLIN };
		const struct timespec looks = { .tv_nsec = FINISH_LOOKS_MS * 1000000L };

		engine_hear_service();
		engine_turn();
		engine_flush();
		if (!stack_unfinished() && !neighbours_waiting() && (!stack_half_closed() || engine_now_us() - began_us > HALF_CLOSED_US))
			break;
		libc_calls()->ppoll(&packets, 1, &looks, NULL);
	}
	if (engine.state == RUNNING)
		page_fill(&engine.rings);
}

void engine_forked(void)
{
	struct port *next;

	/* Else the service would not see that the parent has ended. */
	engine_close_private(engine.rings.fd);
	engine_close_private(engine.service);
	engine.rings.fd = engine.service = -1;
	for (; engine.ports; engine.ports = next) {
		next = engine.ports->next;
		free(engine.ports);
	}
	rings_close(&engine.rings);
	page_forget();
	engine.state = BEFORE;
}
