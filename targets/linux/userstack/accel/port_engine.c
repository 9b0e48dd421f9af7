/* SPDX-License-Identifier: Apache-2.0 */
#include "port_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/time_units.h"
#include "neighbours.h"
#include "port_addresses.h"
#include "port_children.h"
#include "port_clocks.h"
#include "port_frames.h"
#include "port_interface.h"
#include "port_libc.h"
#include "port_page.h"
#include "port_ports.h"
#include "port_private.h"
#include "port_say.h"
#include "port_stackd.h"
#include "port_wait.h"

enum {
	FINISH_US = 5000000, FINISH_LOOKS_MS = 1,
	HALF_CLOSED_US = 100000, /* so long the end of the program waits for peers that have everything, but have not closed */
	BUSY_POLL_MAX_US = 1000000,
};

static struct {
	enum { BEFORE, RUNNING, GONE } state;
	int service;
	uint64_t busy_poll_us;
} engine = { .service = -1 };

void (*engine_socket_changed)(struct stack_socket *sock);

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
		neighbours_lose(ipv6, ip, 0); /* the stack is being asked for a packet: it hears of nothing now */
}

/* What the service says. */

/* The service asks what the stack is doing. */
static void report(void)
{
	struct stackd_request request = { .verb = STACKD_REPORTED };

	page_fill(frames_rings());
	stackd_tell(engine.service, &request, -1); /* if the service is gone, the next one who asks it finds out */
}

/* What is said of the way to an address. Two results say nothing of the host: it made room for others, or the kernel takes it. */
static void hear_way(const struct stackd_answer *event)
{
	bool ipv6 = event->family == AF_INET6, says_why = event->result != -ENOENT && event->result != -EREMOTE;

	if (event->result == -EINPROGRESS)
		return;
	if (event->result)
		neighbours_lose(ipv6, event->ip, says_why ? -event->result : 0);
	else
		neighbours_learn(ipv6, event->ip, event->mac, event->source);
}

static void hear(const struct stackd_answer *event)
{
	if (event->verb == STACKD_ADDRESSES)
		interface_follow(event);
	else if (event->verb == STACKD_REPORT)
		report();
	else if (event->verb == STACKD_RESOLVE || event->verb == STACKD_NEIGHBOUR)
		hear_way(event);
}

static void service_is_gone(void)
{
	if (engine.state != RUNNING)
		return;
	engine.state = GONE;
	wait_changed();
	say("the service of the interface is gone: what the stack had is lost");
}

int engine_ask(struct stackd_request *request, int descriptor, struct stackd_answer *answer)
{
	int err = stackd_ask(engine.service, request, descriptor, answer, NULL, hear);

	if (err) {
		service_is_gone();
		return -ENETDOWN;
	}
	return 0;
}

void engine_tell(struct stackd_request *request)
{
	if (stackd_tell(engine.service, request, -1))
		service_is_gone();
}

void engine_advance(void)
{
	if (engine.state == RUNNING)
		stack_advance_us(clocks_now_us());
}

bool engine_turn(void)
{
	uint64_t now_us = clocks_now_us();

	if (engine.state != RUNNING)
		return false;
	stack_advance_us(now_us);
	frames_take(now_us);
	children_turn();
	ports_give_back(now_us);
	return engine.state == RUNNING && frames_waiting();
}

void engine_flush(void)
{
	if (engine.state == RUNNING)
		frames_flush();
}

void engine_hear_service(void)
{
	if (engine.state == RUNNING && stackd_hear(engine.service, hear))
		service_is_gone();
}

uint64_t engine_next_us(void)
{
	uint64_t next_us, again_us;

	if (engine.state != RUNNING)
		return UINT64_MAX;
	next_us = stack_next_us();
	again_us = frames_again_us();
	return next_us < again_us ? next_us : again_us;
}

int engine_packets_fd(void)
{
	return engine.state == RUNNING ? frames_fd() : -1;
}

int engine_service_fd(void)
{
	return engine.state == RUNNING ? engine.service : -1;
}

uint64_t engine_busy_poll_us(void)
{
	return engine.state == RUNNING ? engine.busy_poll_us : 0;
}

static void read_busy_poll(void)
{
	const char *text = getenv("BW_ACCEL_BUSY_POLL_US");
	char *end;
	unsigned long value = text ? strtoul(text, &end, 10) : 0;

	engine.busy_poll_us = text && *text && !*end && value <= BUSY_POLL_MAX_US ? value : 0;
}

static void read_congestion(void)
{
	const char *text = getenv("BW_ACCEL_CONGESTION");
	bool model = text && strcmp(text, "bbr") == 0;

	if (text && *text && !model && strcmp(text, "cubic") != 0)
		say("BW_ACCEL_CONGESTION: \"%s\" is neither cubic nor bbr: it is cubic", text);
	stack_set_congestion(model ? STACK_BBR : STACK_CUBIC);
}

/* Begin with what the service has given. */
static int begin_with(int service, int packets, int memory, const struct stackd_answer *hello)
{
	static const struct stack_host host = { send_packet, socket_changed, fill_random };
	static const struct neighbours_host neighbours = { ask_for, frames_send, stack_unreachable };
	int err = frames_begin(packets, memory, hello);

	if (err)
		return err;
	err = stack_init(&host, NULL, clocks_now_us());
	if (err)
		return err;
	engine.service = service;
	neighbours_begin(&neighbours);
	interface_begin(hello);
	read_busy_poll();
	read_congestion();
	page_fill(frames_rings());
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
		say("no service answers at %s: %s", path, strerror(-service));
		return -ENETDOWN;
	}
	service = private_move(service);
	page = page_begin(); /* without one bw-netstat does not see the program's sockets, that is all */
	err = stackd_ask(service, &request, page, &answer, given, hear);
	if (page >= 0)
		libc_calls()->close(page);
	err = err ? err : answer.result;
	if (!err && (given[0] < 0 || given[1] < 0))
		err = -EPROTO;
	given[0] = private_move(given[0]);
	if (!err)
		err = begin_with(service, given[0], given[1], &answer);
	if (given[1] >= 0)
		libc_calls()->close(given[1]);
	if (!err)
		err = wait_begin_helper();
	if (err) {
		say("the service at %s: %s", path, stackd_error(err));
		frames_end();
		private_close(given[0]);
		engine.state = BEFORE;
		private_close(service);
		return -ENETDOWN;
	}
	return 0;
}

int engine_route(const struct stack_address *to, struct stack_address *source)
{
	struct stackd_request request = { .verb = STACKD_RESOLVE, .family = to->family == STACK_IPV6 ? AF_INET6 : AF_INET };
	const uint8_t *known = neighbours_source(to->family == STACK_IPV6, to->ip);
	struct stackd_answer answer;
	int err;

	*source = (struct stack_address){ .family = to->family };
	if (known) {
		memcpy(source->ip, known, address_bytes(to));
		return 0;
	}
	memcpy(request.ip, to->ip, sizeof(request.ip));
	err = engine_ask(&request, -1, &answer);
	if (err)
		return err;
	if (answer.result && answer.result != -EINPROGRESS)
		return answer.result;
	memcpy(source->ip, answer.source, sizeof(source->ip));
	hear(&answer);
	return 0;
}

void engine_finish(void)
{
	uint64_t began_us = clocks_now_us();

	while (engine.state == RUNNING && clocks_now_us() - began_us < FINISH_US) {
		struct pollfd packets = { .fd = frames_fd(), .events = POLLIN };
		const struct timespec looks = { .tv_nsec = (long)(FINISH_LOOKS_MS * NS_PER_MS) };

		engine_hear_service();
		engine_turn();
		engine_flush();
		if (!stack_unfinished() && !neighbours_waiting() && (!stack_half_closed() || clocks_now_us() - began_us > HALF_CLOSED_US))
			break;
		libc_calls()->ppoll(&packets, 1, &looks, NULL);
	}
	if (engine.state == RUNNING)
		page_fill(frames_rings());
}

void engine_forked(void)
{
	/* Else the service would not see that the parent has ended. */
	private_close(frames_fd());
	private_close(engine.service);
	engine.service = -1;
	ports_forget();
	frames_end();
	page_forget();
	engine.state = BEFORE;
}
