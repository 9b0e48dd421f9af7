/* SPDX-License-Identifier: Apache-2.0 */
#include "port_children.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "port_engine.h"
#include "port_family.h"
#include "port_libc.h"
#include "port_parent.h"
#include "port_private.h"
#include "port_relays.h"
#include "port_sockets.h"

enum { EVENTS_MAX = 32 };

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

/* A child that uses a listener. While a connection waits a byte lies in its local socket; whoever comes first gets the connection. */
struct handout {
	struct handout *next;
	struct open_socket *sock;
	int fd, kernel; /* kernel: the listener of the kernel's stack, or -1 */
	bool kernel_due, gone; /* kernel_due: a connection may wait there */
};

static struct child *children;
static struct handout *handouts;
static int watched = -1;          /* epoll over all of their descriptors */
static int fresh[2] = { -1, -1 }; /* channel of the fork that is being made */
static bool turn_due;             /* a socket has changed that somebody relays */

int children_fd(void)
{
	return watched;
}

int children_watch(int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (watched < 0)
		watched = private_move(libc_calls()->epoll_create1(EPOLL_CLOEXEC));
	return watched < 0 || libc_calls()->epoll_ctl(watched, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void children_end_watched(int fd)
{
	if (fd >= 0) {
		libc_calls()->epoll_ctl(watched, EPOLL_CTL_DEL, fd, NULL);
		private_close(fd);
	}
}

/* Around fork(2). */

void children_before_fork(void)
{
	parent_before_fork();
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

/* Note a process that asks over this channel. Return NULL if there is no memory. */
static struct child *add_child(int channel, size_t count)
{
	struct child *child = calloc(1, sizeof(*child));

	if (child)
		child->held = calloc(count, sizeof(*child->held));
	if (!child || !child->held || children_watch(channel, EPOLLIN)) {
		private_close(channel);
		free(child ? child->held : NULL);
		free(child);
		return NULL;
	}
	child->channel = channel;
	child->next = children;
	children = child;
	return child;
}

void children_after_fork(void)
{
	struct child *child;

	parent_after_fork();
	if (fresh[0] < 0)
		return;
	private_close(fresh[1]);
	child = add_child(fresh[0], sockets_count_of_stack());
	if (child)
		sockets_each_of_stack(hold, child);
}

void children_in_child(void)
{
	for (; children; children = children->next)
		private_close(children->channel);
	relays_in_child();
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
	handout->kernel_due = handout->kernel >= 0;
	if (handout->kernel_due)
		children_watch(handout->kernel, EPOLLIN | EPOLLET);
	return children_watch(handout->fd, EPOLLIN);
}

static void describe(const struct open_socket *sock, struct family_answer *answer)
{
	stack_local(sock->stack, &answer->local);
	stack_peer(sock->stack, &answer->peer);
}

/* A child uses a socket of before the fork. */
static void hand_over(const struct child *child, struct open_socket *sock, bool asks, struct family_answer *answer, int *child_end)
{
	if (sock->type != SOCK_STREAM)
		answer->result = -EOPNOTSUPP;
	else
		answer->result = sock->listens ? begin_handout(sock, child_end) : relays_begin(sock, child, asks, child_end);
	answer->listens = sock->listens;
	turn_due = true;
	if (!answer->result)
		describe(sock, answer);
}

/* Accept a connection of the stack's for a child. */
static int accept_for(const struct open_socket *listener, struct family_answer *answer, int *child_end)
{
	int err;
	struct stack_socket *stack = stack_accept(listener->stack, &answer->peer, &err);
	struct open_socket *sock = stack ? sockets_of_connection(listener, stack) : NULL;

	if (!stack)
		return err;
	if (!sock) {
		stack_close(stack);
		return -ENOMEM;
	}
	describe(sock, answer);
	err = relays_begin(sock, NULL, true, child_end);
	sockets_release(sock); /* it is the relay's */
	return err;
}

static bool is_readable(int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	const struct timespec none = { 0 };

	return fd >= 0 && libc_calls()->ppoll(&polled, 1, &none, NULL) > 0;
}

static void accept_from_either(const struct open_socket *listener, struct family_answer *answer, int *child_end)
{
	int kernel = -1;

	turn_due = true; /* others may have connections to come for still */
	answer->result = listener->listens ? accept_for(listener, answer, child_end) : -EINVAL;
	for (struct handout *each = handouts; each && kernel < 0; each = each->next)
		kernel = each->sock == listener ? each->kernel : -1;
	if (answer->result != -EAGAIN || !is_readable(kernel)) /* it may block, which is the child's to do */
		return;
	*child_end = libc_calls()->accept4(kernel, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	answer->result = *child_end < 0 ? -errno : 0;
	answer->by_kernel = true;
}

/* A child forks: the new process knows what the child does. */
static int add_grandchild(const struct child *child, int *child_end)
{
	int pair[2], err = family_pair(SOCK_SEQPACKET, pair);
	struct child *added = err ? NULL : add_child(pair[0], child->count);

	if (!added) {
		if (!err)
			libc_calls()->close(pair[1]);
		return err ? err : -ENOMEM;
	}
	for (size_t i = 0; i < child->count; i++)
		hold(child->held[i].fd, child->held[i].sock, added);
	*child_end = pair[1];
	return 0;
}

static struct open_socket *find_held(const struct child *child, int fd)
{
	for (size_t i = 0; i < child->count; i++) {
		if (child->held[i].fd == fd)
			return child->held[i].sock;
	}
	return NULL;
}

/* A child has nothing more to ask of a socket: from now on it is open as long as this process, or a relay, has it. */
static void leave_held(struct child *child, struct open_socket *sock)
{
	size_t kept = 0, released = 0;

	for (size_t i = 0; i < child->count; i++) {
		if (child->held[i].sock == sock)
			released++;
		else
			child->held[kept++] = child->held[i];
	}
	child->count = kept;
	while (released--)
		sockets_release(sock);
}

static void answer_child(struct child *child, const struct family_request *request)
{
	struct family_answer answer = { .result = -EBADF };
	struct open_socket *held = find_held(child, request->fd), *sock = held && held->stack ? held : NULL;
	int child_end = -1;

	if (request->verb == FAMILY_ASK)
		relays_ask(child, sock);
	if (request->verb == FAMILY_ASK || request->verb == FAMILY_LEAVE) {
		leave_held(child, held);
		return;
	}
	if (request->verb == FAMILY_CLONE)
		answer.result = add_grandchild(child, &child_end);
	else if (sock && request->verb == FAMILY_ACCEPT)
		accept_from_either(sock, &answer, &child_end);
	else if (sock)
		hand_over(child, sock, request->verb == FAMILY_TAKE, &answer, &child_end);
	family_send(child->channel, &answer, child_end);
	if (child_end >= 0)
		libc_calls()->close(child_end);
	if (request->verb == FAMILY_TAKE && !answer.result && !answer.listens)
		leave_held(child, held);
}

static void drop_child(struct child *child)
{
	for (struct child **each = &children; *each; each = &(*each)->next) {
		if (*each == child) {
			*each = child->next;
			break;
		}
	}
	relays_forget_child(child);
	for (size_t i = 0; i < child->count; i++)
		sockets_release(child->held[i].sock);
	children_end_watched(child->channel);
	free(child->held);
	free(child);
}

static void serve_child(struct child *child)
{
	for (;;) {
		struct family_request request;
		ssize_t length = libc_calls()->recv(child->channel, &request, sizeof(request), MSG_DONTWAIT);

		if (length == (ssize_t)sizeof(request)) {
			answer_child(child, &request);
		} else {
			if (length >= 0 || errno != EAGAIN)
				drop_child(child);
			return;
		}
	}
}

/* Whether a connection waits for whoever accepts it. */
static bool has_connection(struct handout *handout)
{
	handout->kernel_due = handout->kernel_due && is_readable(handout->kernel);
	return stack_ready(handout->sock->stack) & STACK_READABLE || handout->kernel_due;
}

/* Tell a child that a connection waits, unless it has that to read still. */
static void tell_of_connection(struct handout *handout)
{
	const char waits = 0;
	int unread = 0;

	if (has_connection(handout) && libc_calls()->ioctl(handout->fd, TIOCOUTQ, &unread) == 0 && !unread)
		libc_calls()->send(handout->fd, &waits, sizeof(waits), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Nothing comes from a child over it but its end. */
static void hear_handout(struct handout *handout)
{
	char nothing;
	ssize_t length = libc_calls()->recv(handout->fd, &nothing, sizeof(nothing), MSG_DONTWAIT);

	handout->gone |= length == 0 || (length < 0 && errno != EAGAIN);
}

static void end_handout(struct handout *handout)
{
	children_end_watched(handout->fd);
	children_end_watched(handout->kernel);
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
		relays_hear(&events[i]);
		for (struct handout *each = handouts; each; each = each->next) {
			each->kernel_due |= each->kernel == events[i].data.fd;
			if (each->fd == events[i].data.fd)
				hear_handout(each);
		}
	}
}

void children_turn(void)
{
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
		tell_of_connection(each);
	relays_turn();
}

void children_socket_changed(struct open_socket *sock)
{
	sock->relay_due |= sock->relayed;
	turn_due |= sock->relayed;
}
