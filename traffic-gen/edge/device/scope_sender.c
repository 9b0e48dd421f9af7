/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/device/scope_sender.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"

#define RETRY_NS (100 * NS_PER_MS)
#define CONNECT_TIMEOUT_NS (1000 * NS_PER_MS)
#define LOOK_NS (20 * NS_PER_MS)

int scope_sender_init(struct scope_sender *sender, const struct address *peer)
{
	int err;

	memset(sender, 0, sizeof(*sender));
	sender->peer = *peer;
	sender->sock = PORT_SOCKET_NONE;
	err = port_poller_create(1, &sender->poller);
	if (err)
		return err;
	sender->buffer = malloc(SCOPE_BUFFER_BYTES);
	if (sender->buffer)
		return 0;
	port_poller_destroy(sender->poller);
	return -ENOMEM;
}

/* Count the edges in the buffer, which is thrown away. A line that was begun is lost, too. */
static void drop_buffer(struct scope_sender *sender)
{
	const char *at = sender->buffer, *end = sender->buffer + sender->used_bytes;
	bool broken = sender->broken_line;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *next = newline ? newline + 1 : end;

		/* Of a begun line only the end is there; a progress line has no "ps". */
		if (broken ? memchr(at, 'r', (size_t)(next - at)) != NULL : strncmp(at, "{\"channel", 9) == 0)
			sender->lost++;
		broken = false;
		at = next;
	}
	sender->used_bytes = 0;
	sender->broken_line = false;
}

static void hang_up(struct scope_sender *sender, int64_t now_monotonic_ns)
{
	if (sender->sock != PORT_SOCKET_NONE) {
		port_poller_remove(sender->poller, sender->sock);
		port_socket_close(sender->sock);
	}
	sender->sock = PORT_SOCKET_NONE;
	sender->state = SCOPE_AWAY;
	sender->retry_at_monotonic_ns = now_monotonic_ns + RETRY_NS;
	drop_buffer(sender);
}

static void flush(struct scope_sender *sender, int64_t now_monotonic_ns)
{
	while (sender->used_bytes) {
		const struct port_slice slice = { sender->buffer, sender->used_bytes };
		int64_t sent = port_send(sender->sock, &slice, 1, false);

		if (sent == -EAGAIN)
			return;
		if (sent < 0) {
			hang_up(sender, now_monotonic_ns);
			return;
		}
		sender->broken_line = sender->buffer[sent - 1] != '\n';
		sender->used_bytes -= (size_t)sent;
		memmove(sender->buffer, sender->buffer + sent, sender->used_bytes);
	}
}

void scope_sender_release(struct scope_sender *sender)
{
	if (!sender->buffer)
		return;
	if (sender->state == SCOPE_UP)
		flush(sender, 0);
	hang_up(sender, 0);
	port_poller_destroy(sender->poller);
	free(sender->buffer);
	sender->buffer = NULL;
}

/* Add a line. @return false when it was dropped */
static bool add_line(struct scope_sender *sender, const char *line, int length)
{
	if (sender->state != SCOPE_UP || sender->used_bytes + (size_t)length > SCOPE_BUFFER_BYTES)
		return false;
	memcpy(sender->buffer + sender->used_bytes, line, (size_t)length);
	sender->used_bytes += (size_t)length;
	return true;
}

void scope_sender_edge(struct scope_sender *sender, int channel, struct scope_time time, bool rising)
{
	char line[SCOPE_LINE_BYTES];
	int length = snprintf(line, sizeof(line),
			      "{\"channel\":%d,\"time_ns\":%" PRId64 ",\"fraction_ps\":%d,\"rising\":%s}\n", channel,
			      time.counter_ns, time.ps, rising ? "true" : "false");

	sender->edges++;
	if (!add_line(sender, line, length))
		sender->lost++;
}

void scope_sender_until(struct scope_sender *sender, int64_t counter_ns)
{
	char line[SCOPE_LINE_BYTES];

	add_line(sender, line, snprintf(line, sizeof(line), "{\"until_ns\":%" PRId64 "}\n", counter_ns));
}

static void begin_connection(struct scope_sender *sender, int64_t now_monotonic_ns)
{
	const struct address any = { .is_ipv6 = sender->peer.is_ipv6 };
	int err = port_tcp_connect(&any, &sender->peer, &sender->sock);

	if (err && err != -EINPROGRESS)
		sender->sock = PORT_SOCKET_NONE;
	if (sender->sock == PORT_SOCKET_NONE ||
	    port_poller_add(sender->poller, sender->sock, PORT_POLL_OUT, sender) != 0) {
		if (sender->sock != PORT_SOCKET_NONE)
			port_socket_close(sender->sock);
		sender->sock = PORT_SOCKET_NONE;
		sender->retry_at_monotonic_ns = now_monotonic_ns + RETRY_NS;
		return;
	}
	sender->state = SCOPE_CONNECTING;
	sender->retry_at_monotonic_ns = now_monotonic_ns + CONNECT_TIMEOUT_NS;
}

static void finish_connection(struct scope_sender *sender, int64_t now_monotonic_ns)
{
	struct port_event event;

	if (port_poller_wait(sender->poller, &event, 1, 0) < 1) {
		if (now_monotonic_ns >= sender->retry_at_monotonic_ns)
			hang_up(sender, now_monotonic_ns);
		return;
	}
	if (port_tcp_connect_result(sender->sock) != 0) {
		hang_up(sender, now_monotonic_ns);
		return;
	}
	port_socket_set_nodelay(sender->sock);
	sender->state = SCOPE_UP;
	sender->connections++;
	sender->look_at_monotonic_ns = now_monotonic_ns;
}

/* The oscilloscope never says anything: what can be read is the end. */
static void look(struct scope_sender *sender, int64_t now_monotonic_ns)
{
	char byte;

	if (now_monotonic_ns < sender->look_at_monotonic_ns)
		return;
	sender->look_at_monotonic_ns = now_monotonic_ns + LOOK_NS;
	if (port_recv(sender->sock, &byte, sizeof(byte), NULL) != -EAGAIN)
		hang_up(sender, now_monotonic_ns);
}

void scope_sender_work(struct scope_sender *sender, int64_t now_monotonic_ns)
{
	if (sender->state == SCOPE_AWAY && now_monotonic_ns >= sender->retry_at_monotonic_ns)
		begin_connection(sender, now_monotonic_ns);
	if (sender->state == SCOPE_CONNECTING)
		finish_connection(sender, now_monotonic_ns);
	if (sender->state == SCOPE_UP)
		look(sender, now_monotonic_ns);
	if (sender->state == SCOPE_UP)
		flush(sender, now_monotonic_ns);
}
