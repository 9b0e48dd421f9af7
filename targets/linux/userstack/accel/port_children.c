/* SPDX-License-Identifier: Apache-2.0 */
#include "port_children.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "port_engine.h"
#include "port_family.h"
#include "port_libc.h"
#include "port_parent.h"
#include "port_private.h"
#include "port_sockets.h"

enum { SCRATCH_BYTES = 65536, EVENTS_MAX = 32 };

/* A descriptor of a socket as it was at the fork. */
struct held {
	int fd;
	struct open_socket *sock;
};

/* A process that was forked from this one. */
struct child {
	struct child *next;
	int channel;
	struct held *held;
	size_t count;
};

/* A connection that a child uses. */
struct relay {
	struct relay *next;
	struct open_socket *sock;
	int fd; /* -1: the child to which it was handed out has ended without taking it */
	const struct child *child;
	bool unasked; /* the child has only sent so far: what comes stays, for whoever reads */
	const struct open_socket *listener; /* of one that is handed out and not taken yet */
	bool stack_ended, child_ended, hung_up, gone; /* hung_up: the child has closed it altogether */
};

/* A child that waits for connections. */
struct handout {
	struct handout *next;
	struct open_socket *sock;
	int fd, kernel; /* kernel: the listener of the kernel's stack, or -1 */
	bool waiting, gone; /* waiting: a connection was handed out that the child has not taken */
	struct relay *given; /* that connection, unless it is the kernel's own */
};

static struct child *children;
static struct relay *relays;
static struct handout *handouts;
static int watched = -1;          /* epoll over all of their descriptors */
static int fresh[2] = { -1, -1 }; /* channel of the fork that is being made */
static bool turn_due;             /* a socket has changed that somebody relays */

int children_fd(void)
{
	return watched;
}

static int watch(int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (watched < 0)
		watched = private_move(libc_calls()->epoll_create1(EPOLL_CLOEXEC));
	return watched < 0 || libc_calls()->epoll_ctl(watched, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static void end_watched(int fd)
{
	if (fd >= 0) {
		libc_calls()->epoll_ctl(watched, EPOLL_CTL_DEL, fd, NULL);
		private_close(fd);
	}
}

/* Around fork(2). */

void children_before_fork(void)
{
	parent_ask_for_all();
	fresh[0] = fresh[1] = -1;
	if (engine_runs() && sockets_count_of_stack() && family_pair(SOCK_SEQPACKET, fresh) == 0)
		fresh[1] = private_move(fresh[1]);
}

static void hold(int fd, struct open_socket *sock, void *argument)
{
	struct child *child = argument;

	child->held[child->count++] = (struct held){ fd, sock };
	sockets_hold(sock);
}

void children_after_fork(void)
{
	struct child *child;

	if (fresh[0] < 0)
		return;
	private_close(fresh[1]);
	child = calloc(1, sizeof(*child));
	if (child)
		child->held = calloc(sockets_count_of_stack(), sizeof(*child->held));
	if (!child || !child->held || watch(fresh[0], EPOLLIN)) {
		private_close(fresh[0]);
		free(child ? child->held : NULL);
		free(child);
		return;
	}
	child->channel = fresh[0];
	child->next = children;
	children = child;
	sockets_each_of_stack(hold, child);
}

void children_in_child(void)
{
	for (; children; children = children->next)
		private_close(children->channel);
	for (; relays; relays = relays->next)
		private_close(relays->fd);
	for (; handouts; handouts = handouts->next) {
		private_close(handouts->fd);
		if (handouts->kernel >= 0)
			private_close(handouts->kernel);
	}
	if (watched >= 0)
		private_close(watched);
	watched = -1;
	if (fresh[0] >= 0)
		private_close(fresh[0]);
	parent_left(fresh[1]);
}

/* Give a relay a local socket, the other end of which is the child's. */
static int open_relay(struct relay *relay, int *child_end)
{
	int pair[2], err = family_pair(SOCK_STREAM, pair);

	if (err)
		return err;
	relay->fd = pair[0];
	relay->hung_up = false; /* that was another child */
	*child_end = pair[1];
	turn_due = true;
	return watch(relay->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

static int begin_relay(struct open_socket *sock, int *child_end)
{
	struct relay *relay = calloc(1, sizeof(*relay));
	int err = relay ? open_relay(relay, child_end) : -ENOMEM;

	if (err) {
		free(relay);
		return err;
	}
	relay->sock = sock;
	relay->next = relays;
	relays = relay;
	sockets_hold(sock);
	sock->relayed = true;
	return 0;
}

static int begin_handout(struct open_socket *sock, int *child_end)
{
	struct handout *handout = calloc(1, sizeof(*handout));
	int pair[2], err = handout ? family_pair(SOCK_SEQPACKET, pair) : -ENOMEM;

	if (err) {
		free(handout);
		return err;
	}
	handout->fd = pair[0];
	handout->sock = sock;
	handout->kernel = sock->both && sock->fd >= 0 ? private_move(libc_calls()->dup(sock->fd)) : -1;
	handout->next = handouts;
	handouts = handout;
	sockets_hold(sock);
	sock->relayed = true;
	*child_end = pair[1];
	turn_due = true;
	if (handout->kernel >= 0)
		watch(handout->kernel, EPOLLIN | EPOLLET);
	return watch(handout->fd, EPOLLIN);
}

static void describe(const struct open_socket *sock, struct family_answer *answer)
{
	stack_local(sock->stack, &answer->local);
	stack_peer(sock->stack, &answer->peer);
}

static void answer_child(const struct child *child, const struct family_request *request)
{
	struct family_answer answer = { .result = -EBADF };
	int child_end = -1;

	for (size_t i = 0; i < child->count; i++) {
		struct open_socket *sock = child->held[i].sock;

		if (child->held[i].fd != request->fd || !sock->stack)
			continue;
		if (sock->type != SOCK_STREAM)
			answer.result = -EOPNOTSUPP;
		else
			answer.result = sock->listens ? begin_handout(sock, &child_end) : begin_relay(sock, &child_end);
		answer.listens = sock->listens;
		if (!answer.result)
			describe(sock, &answer);
		if (!answer.result && !sock->listens) {
			relays->child = child;
			relays->unasked = !request->asks;
		}
		break;
	}
	family_send(child->channel, &answer, child_end);
	if (child_end >= 0)
		libc_calls()->close(child_end);
}

/* A child has only sent so far, and waits for what comes now. */
static void hear_question(const struct child *child, const struct family_request *request)
{
	for (size_t i = 0; i < child->count; i++) {
		if (child->held[i].fd != request->fd)
			continue;
		for (struct relay *each = relays; each; each = each->next) {
			if (each->child == child && each->sock == child->held[i].sock)
				each->unasked = false;
		}
	}
}

static void drop_child(struct child *child)
{
	for (struct child **each = &children; *each; each = &(*each)->next) {
		if (*each == child) {
			*each = child->next;
			break;
		}
	}
	for (struct relay *each = relays; each; each = each->next) {
		if (each->child == child)
			each->child = NULL;
	}
	for (size_t i = 0; i < child->count; i++)
		sockets_release(child->held[i].sock);
	end_watched(child->channel);
	free(child->held);
	free(child);
}

static void serve_child(struct child *child)
{
	for (;;) {
		struct family_request request;
		ssize_t length = libc_calls()->recv(child->channel, &request, sizeof(request), MSG_DONTWAIT);

		if (length == (ssize_t)sizeof(request)) {
			(request.is_taken ? hear_question : answer_child)(child, &request);
		} else {
			if (length >= 0 || errno != EAGAIN)
				drop_child(child);
			return;
		}
	}
}

/* Hand on what has come for the child. Nothing is taken from the stack before the child's socket has it, and has asked for it. */
static void relay_to_child(struct relay *relay, uint8_t *scratch)
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

static void relay_to_stack(struct relay *relay, uint8_t *scratch)
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
	end_watched(relay->fd);
	sockets_release(relay->sock);
	free(relay);
}

/* Give a child a connection: of the stack's, or of the kernel's own. Return whether it has been sent. */
static bool give(struct handout *handout, const struct family_answer *answer, int descriptor)
{
	bool sent = descriptor >= 0 && family_send(handout->fd, answer, descriptor) == 0;

	if (descriptor >= 0)
		libc_calls()->close(descriptor);
	handout->waiting = sent;
	return sent;
}

/* A connection that a child has not taken, which has ended; or NULL. */
static struct relay *find_left_over(const struct open_socket *listener)
{
	struct relay *each = relays;

	while (each && (each->fd >= 0 || each->listener != listener))
		each = each->next;
	return each;
}

static void hand_out(struct handout *handout)
{
	struct family_answer answer = { 0 };
	struct stack_socket *stack;
	struct open_socket *sock;
	struct relay *left_over;
	int err, child_end = -1;

	if (handout->waiting || handout->gone || !handout->sock->stack)
		return;
	left_over = find_left_over(handout->sock);
	if (left_over) {
		describe(left_over->sock, &answer);
		if (open_relay(left_over, &child_end) == 0 && give(handout, &answer, child_end))
			handout->given = left_over;
		return;
	}
	stack = stack_accept(handout->sock->stack, &answer.peer, &err);
	if (stack) {
		sock = sockets_of_connection(handout->sock, stack);
		if (!sock) {
			stack_close(stack);
			return;
		}
		describe(sock, &answer);
		if (begin_relay(sock, &child_end) == 0) {
			relays->listener = handout->sock;
			if (give(handout, &answer, child_end))
				handout->given = relays;
		}
		sockets_release(sock); /* it is the relay's */
		return;
	}
	if (handout->kernel >= 0) {
		answer.by_kernel = true;
		give(handout, &answer, libc_calls()->accept4(handout->kernel, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
	}
}

static void hear_handout(struct handout *handout)
{
	char taken;
	ssize_t length = libc_calls()->recv(handout->fd, &taken, sizeof(taken), MSG_DONTWAIT);

	if (length > 0) {
		if (handout->given)
			handout->given->listener = NULL;
		handout->given = NULL;
		handout->waiting = false;
	} else if (length == 0 || errno != EAGAIN) {
		handout->gone = true;
	}
}

static void end_handout(struct handout *handout)
{
	if (handout->given) { /* another child gets it */
		end_watched(handout->given->fd);
		handout->given->fd = -1;
	}
	end_watched(handout->fd);
	end_watched(handout->kernel);
	sockets_release(handout->sock);
	free(handout);
}

/* What descriptors say. */
static void hear_events(void)
{
	struct epoll_event events[EVENTS_MAX];
	int count = libc_calls()->epoll_wait(watched, events, EVENTS_MAX, 0);

	for (int i = 0; i < count; i++) {
		struct child *child = children;

		turn_due = true;
		while (child && child->channel != events[i].data.fd)
			child = child->next;
		if (child)
			serve_child(child);
		for (struct relay *each = relays; each; each = each->next)
			each->hung_up |= each->fd == events[i].data.fd && (events[i].events & EPOLLHUP);
		for (struct handout *each = handouts; each; each = each->next) {
			if (each->fd == events[i].data.fd)
				hear_handout(each);
		}
	}
}

void children_turn(void)
{
	static uint8_t scratch[SCRATCH_BYTES];

	if (watched < 0)
		return;
	hear_events();
	if (!turn_due)
		return;
	turn_due = false;
	for (struct handout **each = &handouts; *each;) {
		struct handout *handout = *each;

		if (handout->gone || !handout->sock->stack) {
			*each = handout->next;
			end_handout(handout);
		} else {
			each = &handout->next;
		}
	}
	for (struct handout *each = handouts; each; each = each->next)
		hand_out(each);
	for (struct relay **each = &relays; *each;) {
		struct relay *relay = *each;

		if (relay->sock->stack && !relay->listener) {
			relay_to_stack(relay, scratch);
			relay_to_child(relay, scratch);
		}
		if (!relay->sock->stack || relay->gone || (relay->child_ended && (relay->stack_ended || relay->hung_up))) {
			*each = relay->next;
			end_relay(relay);
		} else {
			each = &relay->next;
		}
	}
}

void children_socket_changed(struct open_socket *sock)
{
	if (sock->relayed)
		turn_due = true;
}
