/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/receive/acceptor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HELLO_TIMEOUT_NS INT64_C(1000000000)
#define WAIT_NS INT64_C(100000000)

enum { BACKLOG = 16, EVENTS_MAX = 32 };

int acceptor_open(struct acceptor *acceptor, const struct plan *plan, int listeners_max, atomic_bool *stop)
{
	int err;

	memset(acceptor, 0, sizeof(*acceptor));
	acceptor->plan = plan;
	acceptor->stop = stop;
	acceptor->listeners = calloc((size_t)listeners_max + 1, sizeof(*acceptor->listeners));
	if (!acceptor->listeners)
		return -ENOMEM;
	err = port_poller_create(listeners_max * (1 + ACCEPTOR_UNKNOWN_MAX), &acceptor->poller);
	if (err) {
		free(acceptor->listeners);
		acceptor->listeners = NULL;
	}
	return err;
}

void acceptor_close(struct acceptor *acceptor)
{
	if (!acceptor->poller)
		return; /* was never open */
	for (int i = 0; i < acceptor->listener_count; i++) {
		struct listener *listener = &acceptor->listeners[i];

		port_socket_close(listener->door.sock);
		for (int k = 0; k < ACCEPTOR_UNKNOWN_MAX; k++) {
			if (listener->unknown[k].door.sock != PORT_SOCKET_NONE)
				port_socket_close(listener->unknown[k].door.sock);
		}
	}
	port_poller_destroy(acceptor->poller);
	free(acceptor->listeners);
	memset(acceptor, 0, sizeof(*acceptor));
}

int acceptor_listen(struct acceptor *acceptor, struct incoming *incoming)
{
	struct address local = address_at(&acceptor->plan->consumer, incoming->port);
	struct listener *listener = &acceptor->listeners[acceptor->listener_count];
	int err = port_tcp_listen(&local, BACKLOG, &listener->door.sock);

	if (err)
		return err;
	listener->door.listener = listener;
	listener->door.is_listener = true;
	listener->incoming = incoming;
	for (int i = 0; i < ACCEPTOR_UNKNOWN_MAX; i++)
		listener->unknown[i].door = (struct door){ listener, false, PORT_SOCKET_NONE };
	acceptor->listener_count++;
	return port_poller_add(acceptor->poller, listener->door.sock, PORT_POLL_IN, &listener->door);
}

/* Stop waiting for a hello; the socket stays open. */
static port_socket release(struct acceptor *acceptor, struct unknown *unknown)
{
	port_socket sock = unknown->door.sock;

	port_poller_remove(acceptor->poller, sock);
	unknown->door.sock = PORT_SOCKET_NONE;
	return sock;
}

static void refuse(struct acceptor *acceptor, struct unknown *unknown, struct tally *why)
{
	tally_add(why, 1);
	port_socket_abort(release(acceptor, unknown));
}

/* Find room for a connection; the oldest one of the stream goes when there is none. */
static struct unknown *make_room(struct acceptor *acceptor, struct listener *listener)
{
	struct unknown *oldest = &listener->unknown[0];

	for (int i = 0; i < ACCEPTOR_UNKNOWN_MAX; i++) {
		struct unknown *unknown = &listener->unknown[i];

		if (unknown->door.sock == PORT_SOCKET_NONE)
			return unknown;
		if (unknown->deadline_monotonic_ns < oldest->deadline_monotonic_ns)
			oldest = unknown;
	}
	refuse(acceptor, oldest, &acceptor->hostile.bad_hello);
	return oldest;
}

static void accept_one(struct acceptor *acceptor, struct listener *listener)
{
	struct unknown *unknown;
	struct address source;
	port_socket sock;

	if (port_tcp_accept(listener->door.sock, &sock, &source) != 0)
		return;
	if (!address_same_ip(&source, &listener->incoming->account.producer->address)) {
		tally_add(&acceptor->hostile.foreign_connections, 1);
		port_socket_abort(sock);
		return;
	}
	unknown = make_room(acceptor, listener);
	unknown->door.sock = sock;
	unknown->deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + HELLO_TIMEOUT_NS;
	unknown->length_bytes = 0;
	if (port_poller_add(acceptor->poller, sock, PORT_POLL_IN, &unknown->door) != 0) {
		unknown->door.sock = PORT_SOCKET_NONE;
		port_socket_abort(sock);
	}
}

/* Judge a complete hello. @return NULL: welcome; or the counter of what is wrong with it */
static struct tally *judge(struct acceptor *acceptor, const struct unknown *unknown)
{
	const struct stream *stream = unknown->door.listener->incoming->account.stream;
	struct frame_hello hello;

	if (frame_hello_parse(unknown->hello, &hello) != 0 || hello.stream_id != stream->id ||
	    hello.size_bytes != stream->size_bytes)
		return &acceptor->hostile.bad_hello;
	if (hello.nonce != acceptor->plan->nonce)
		return &acceptor->hostile.stale;
	return NULL;
}

static void admit(struct acceptor *acceptor, struct unknown *unknown)
{
	struct tally *fault = judge(acceptor, unknown);
	port_socket sock;

	if (fault) {
		refuse(acceptor, unknown, fault);
		return;
	}
	sock = release(acceptor, unknown);
	if (receiver_adopt(unknown->door.listener->incoming, sock) == 0)
		tally_add(&unknown->door.listener->incoming->account.connections, 1);
	else
		port_socket_abort(sock); /* the producer tries again */
}

static void read_hello(struct acceptor *acceptor, struct unknown *unknown)
{
	unsigned int left_bytes = FRAME_HELLO_BYTES - unknown->length_bytes;
	int64_t length = port_recv(unknown->door.sock, unknown->hello + unknown->length_bytes, left_bytes, NULL);

	if (length == -EAGAIN)
		return;
	if (length <= 0) {
		refuse(acceptor, unknown, &acceptor->hostile.bad_hello);
		return;
	}
	unknown->length_bytes += (unsigned int)length;
	if (unknown->length_bytes == FRAME_HELLO_BYTES)
		admit(acceptor, unknown);
}

static void refuse_overdue(struct acceptor *acceptor)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	for (int i = 0; i < acceptor->listener_count; i++) {
		for (int k = 0; k < ACCEPTOR_UNKNOWN_MAX; k++) {
			struct unknown *unknown = &acceptor->listeners[i].unknown[k];

			if (unknown->door.sock != PORT_SOCKET_NONE && now_monotonic_ns > unknown->deadline_monotonic_ns)
				refuse(acceptor, unknown, &acceptor->hostile.bad_hello);
		}
	}
}

void acceptor_run(void *argument)
{
	struct acceptor *acceptor = argument;
	struct port_event events[EVENTS_MAX];

	while (!atomic_load_explicit(acceptor->stop, memory_order_relaxed)) {
		int count = port_poller_wait(acceptor->poller, events, EVENTS_MAX, WAIT_NS);

		for (int i = 0; i < count; i++) {
			struct door *door = events[i].user;

			if (door->sock == PORT_SOCKET_NONE)
				continue; /* put out earlier in this round */
			if (door->is_listener)
				accept_one(acceptor, door->listener);
			else
				read_hello(acceptor, (struct unknown *)door);
		}
		refuse_overdue(acceptor);
	}
}
