/* SPDX-License-Identifier: Apache-2.0 */
#include "port_relays.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "port_children.h"
#include "port_family.h"
#include "port_libc.h"
#include "port_private.h"
#include "port_sockets.h"

enum { SCRATCH_BYTES = 65536 };

/* A connection that a child uses. */
struct relay {
	struct relay *next;
	struct open_socket *sock;
	int fd;
	const void *child; /* who knows it by a descriptor; NULL: it was accepted for whoever has it */
	bool unasked; /* the child has only sent so far: what comes stays, for whoever reads */
	bool due; /* it has something to do */
	bool stack_ended, child_ended, hung_up, gone; /* hung_up: the child has closed it altogether */
};

static struct relay *relays;
static uint8_t scratch[SCRATCH_BYTES];

int relays_begin(struct open_socket *sock, const void *child, bool asks, int *child_end)
{
	struct relay *relay = calloc(1, sizeof(*relay));
	int pair[2], err = relay ? family_pair(SOCK_STREAM, pair) : -ENOMEM;

	if (err) {
		free(relay);
		return err;
	}
	*relay = (struct relay){ .next = relays, .sock = sock, .fd = pair[0], .child = child, .unasked = !asks, .due = true };
	*child_end = pair[1];
	relays = relay;
	sockets_hold(sock);
	sock->relayed = true;
	return children_watch(relay->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

void relays_ask(const void *child, const struct open_socket *sock)
{
	for (struct relay *each = relays; each; each = each->next) {
		if (each->child == child && each->sock == sock) {
			each->unasked = false;
			each->due = true;
		}
	}
}

void relays_forget_child(const void *child)
{
	for (struct relay *each = relays; each; each = each->next) {
		if (each->child == child)
			each->child = NULL;
	}
}

/* Hand on what has come for the child. Nothing is taken from the stack before the child's socket has it, and has asked for it. */
static void relay_to_child(struct relay *relay)
{
	while (!relay->stack_ended && !relay->gone) {
		int64_t size = stack_receive(relay->sock->stack, scratch, SCRATCH_BYTES, STACK_PEEK, NULL);
		ssize_t sent;

		if (size == -EAGAIN || (size > 0 && relay->unasked))
			return;
		if (size <= 0) {
			relay->stack_ended = true;
			relay->gone = size < 0;
			libc_calls()->shutdown(relay->fd, SHUT_WR);
			return;
		}
		sent = libc_calls()->send(relay->fd, scratch, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0) {
			relay->gone = errno != EAGAIN;
			return;
		}
		stack_receive(relay->sock->stack, scratch, (size_t)sent, 0, NULL);
	}
}

/* Whether the child has closed it altogether, or only its sending. */
static bool has_hung_up(const struct relay *relay)
{
	struct pollfd local = { .fd = relay->fd };
	const struct timespec none = { 0 };

	return relay->hung_up || (libc_calls()->ppoll(&local, 1, &none, NULL) > 0 && local.revents & POLLHUP);
}

static void relay_to_stack(struct relay *relay)
{
	while (!relay->child_ended) {
		ssize_t size = libc_calls()->recv(relay->fd, scratch, SCRATCH_BYTES, MSG_DONTWAIT | MSG_PEEK);
		int64_t sent;

		if (size < 0 && errno == EAGAIN)
			return;
		if (size <= 0) {
			relay->child_ended = true;
			relay->hung_up = has_hung_up(relay);
			if (!relay->hung_up) /* what is closed here may still be open elsewhere */
				stack_shutdown(relay->sock->stack, STACK_SHUT_WRITE);
			return;
		}
		sent = stack_send(relay->sock->stack, scratch, (size_t)size, 0, NULL);
		if (sent == -EAGAIN)
			return;
		if (sent < 0) {
			relay->gone = true;
			return;
		}
		libc_calls()->recv(relay->fd, scratch, (size_t)sent, MSG_DONTWAIT);
	}
}

static void end_relay(struct relay *relay)
{
	children_end_watched(relay->fd);
	sockets_release(relay->sock);
	free(relay);
}

void relays_hear(const struct epoll_event *event)
{
	for (struct relay *each = relays; each; each = each->next) {
		if (each->fd == event->data.fd) {
			each->due = true;
			each->hung_up |= (event->events & EPOLLHUP) != 0;
		}
	}
}

/* Several may be of one socket. */
static void note_changes(void)
{
	for (struct relay *each = relays; each; each = each->next)
		each->due |= each->sock->relay_due;
	for (struct relay *each = relays; each; each = each->next)
		each->sock->relay_due = false;
}

void relays_turn(void)
{
	note_changes();
	for (struct relay **each = &relays; *each;) {
		struct relay *relay = *each;

		if (relay->sock->stack && relay->due) {
			relay->due = false;
			relay_to_stack(relay);
			relay_to_child(relay);
		}
		if (!relay->sock->stack || relay->gone || (relay->child_ended && (relay->stack_ended || relay->hung_up))) {
			*each = relay->next;
			end_relay(relay);
		} else {
			each = &relay->next;
		}
	}
}

void relays_close_all(void)
{
	for (struct relay *each = relays; each; each = each->next) {
		if (each->sock->stack)
			relay_to_stack(each);
		sockets_leave_stack(each->sock);
	}
}

void relays_in_child(void)
{
	for (; relays; relays = relays->next)
		private_close(relays->fd);
}
