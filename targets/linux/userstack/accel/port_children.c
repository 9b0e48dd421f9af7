/* SPDX-License-Identifier: Apache-2.0 */
#include "port_children.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "port_engine.h"
#include "port_libc.h"
#include "port_private.h"
#include "port_say.h"
#include "port_sockets.h"
#include "port_wait.h"
#include "port_ways.h"

enum { SCRATCH_BYTES = 65536, EVENTS_MAX = 32, TAKE_OVER_TRIES = 200, TAKE_OVER_PAUSE_NS = 10 * 1000 * 1000 };

/* What a child asks of its parent, and the answer, with a descriptor. */
struct request {
	int fd; /* by which both knew the socket when they parted */
};

struct answer {
	int result; /* 0, or -errno */
	bool listens, by_kernel; /* by_kernel: the connection is the kernel's own */
	struct stack_address local, peer;
};

/* A descriptor of a socket as it was at the fork. */
struct held {
	int fd;
	struct open_socket *sock;
};

/* Of the parent: a process that was forked from it. */
struct child {
	struct child *next;
	int channel;
	struct held *held;
	size_t count;
};

/* Of the parent: a connection that a child uses. */
struct relay {
	struct relay *next;
	struct open_socket *sock;
	int fd; /* -1: the child to which it was handed out has ended without taking it */
	const struct open_socket *listener; /* of one that is handed out and not taken yet */
	bool stack_ended, child_ended, hung_up, gone; /* hung_up: the child has closed it altogether */
};

/* Of the parent: a child that waits for connections. */
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
static int watched = -1;                     /* epoll over all of their descriptors */
static int fresh[2] = { -1, -1 };            /* channel of the fork that is being made */
static int parent = -1;                      /* of a child: its channel to the parent */
static bool turn_due;                        /* a socket has changed that somebody relays */

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

static void begin_to_inherit(void);

/* Around fork(2). */

static int make_pair(int type, int pair[2])
{
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pair[0] = private_move(pair[0]);
	return 0;
}

void children_before_fork(void)
{
	fresh[0] = fresh[1] = -1;
	if (engine_runs() && sockets_count_of_stack() && make_pair(SOCK_SEQPACKET, fresh) == 0)
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
	if (parent >= 0)
		private_close(parent); /* of the parent itself: what came from above that is not handed down further */
	parent = fresh[1];
	if (sockets_leave_to_parent() && parent >= 0)
		begin_to_inherit();
}

/* Messages. */

static int send_answer(int channel, const struct answer *answer, int descriptor)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)(uintptr_t)answer, sizeof(*answer) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (descriptor >= 0) {
		memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(descriptor));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.bytes);
	}
	return libc_calls()->sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Receive an answer. *descriptor: what came with it, or -1. Return 0, -EPIPE (the parent has ended) or -errno. */
static int receive_answer(int channel, struct answer *answer, int *descriptor, int flags)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { answer, sizeof(*answer) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t length = libc_calls()->recvmsg(channel, &message, flags);
	const struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	*descriptor = -1;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(descriptor, CMSG_DATA(header), sizeof(*descriptor));
	if (length < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	return length == (ssize_t)sizeof(*answer) ? 0 : -EPIPE;
}

/* The parent's side. */

/* Give a relay a local socket, the other end of which is the child's. */
static int open_relay(struct relay *relay, int *child_end)
{
	int pair[2], err = make_pair(SOCK_STREAM, pair);

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
	int pair[2], err = handout ? make_pair(SOCK_SEQPACKET, pair) : -ENOMEM;

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

static void describe(const struct open_socket *sock, struct answer *answer)
{
	stack_local(sock->stack, &answer->local);
	stack_peer(sock->stack, &answer->peer);
}

static void answer_child(struct child *child, const struct request *request)
{
	struct answer answer = { .result = -EBADF };
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
		break;
	}
	send_answer(child->channel, &answer, child_end);
	if (child_end >= 0)
		libc_calls()->close(child_end);
}

static void drop_child(struct child *child)
{
	for (struct child **each = &children; *each; each = &(*each)->next) {
		if (*each == child) {
			*each = child->next;
			break;
		}
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
		struct request request;
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

/* Hand on what has come for the child. Nothing is taken from the stack before the child's socket has it. */
static void relay_to_child(struct relay *relay, uint8_t *scratch)
{
	while (!relay->stack_ended && !relay->gone) {
		int64_t size = stack_receive(relay->sock->stack, scratch, SCRATCH_BYTES, STACK_PEEK, NULL);
		ssize_t sent;

		if (size == -EAGAIN)
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

static void relay_to_stack(struct relay *relay, uint8_t *scratch)
{
	while (!relay->child_ended) {
		ssize_t size = libc_calls()->recv(relay->fd, scratch, SCRATCH_BYTES, MSG_DONTWAIT | MSG_PEEK);
		int64_t sent;

		if (size < 0 && errno == EAGAIN)
			return;
		if (size <= 0) {
			relay->child_ended = true;
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
static bool give(struct handout *handout, const struct answer *answer, int descriptor)
{
	bool sent = descriptor >= 0 && send_answer(handout->fd, answer, descriptor) == 0;

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
	struct answer answer = { 0 };
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

/* The child's side. */

/* The parent has ended: its ports are this process's, once the service has taken them back. Let others have the lock meanwhile. */
static int take_over(struct open_socket *sock)
{
	const struct timespec pause = { .tv_nsec = TAKE_OVER_PAUSE_NS };
	int err = 0;

	for (int i = 0; i < TAKE_OVER_TRIES && (sock->way == WAY_PARENT || sock->way == WAY_HANDED); i++) {
		err = ways_enter_again(sock);
		if (err != -EADDRINUSE)
			return err;
		wait_unlock();
		nanosleep(&pause, NULL);
		wait_lock();
	}
	return sock->way == WAY_STACK ? 0 : err;
}

/* Once the parent has ended nobody listens for it any more: without a call of the program's, peers would be refused. */
static void *inherit(void *unused)
{
	struct pollfd ended = { .fd = parent };

	(void)unused;
	libc_calls()->ppoll(&ended, 1, NULL, NULL);
	wait_lock();
	sockets_each_of_parent(take_over);
	wait_unlock();
	return NULL;
}

static void begin_to_inherit(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, inherit, NULL))
		say("no thread to take over the parent's ports: %s", strerror(errno));
	pthread_attr_destroy(&attributes);
}

int children_take(struct open_socket *sock)
{
	const struct request request = { .fd = sock->fd };
	struct answer answer;
	int descriptor, err = parent < 0 ? -EPIPE : 0;

	if (!err && libc_calls()->send(parent, &request, sizeof(request), MSG_NOSIGNAL) < 0)
		err = -EPIPE;
	if (!err)
		err = receive_answer(parent, &answer, &descriptor, MSG_CMSG_CLOEXEC);
	if (err == -EPIPE && (sock->listens || sock->type == SOCK_DGRAM))
		return take_over(sock);
	if (err)
		return err == -EPIPE ? -ECONNRESET : err;
	if (answer.result) {
		if (answer.result == -EOPNOTSUPP)
			say("a socket of UDP from before the fork is its parent's");
		return answer.result;
	}
	return sockets_become(sock, descriptor, &answer.local, &answer.peer, answer.listens ? WAY_HANDED : WAY_RELAYED);
}

static bool never(void *argument)
{
	(void)argument;
	return false;
}

int children_accept(struct open_socket *sock, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	struct pollfd handed = { .fd = fd, .events = POLLIN };
	struct wait wait = {
		.done = never, .fds = &handed, .count = 1, .until_us = sock->nonblocking ? 0 : sockets_until_us(sock->receive_us),
		.restarts = !sock->receive_us,
	};
	struct answer answer;
	const char taken = 0;
	int descriptor, err;

	do {
		err = wait_until(&wait);
		if (sock->way != WAY_HANDED)
			return -ESTALE;
		err = err == -ETIMEDOUT ? -EAGAIN : err < 0 ? err : receive_answer(fd, &answer, &descriptor, MSG_DONTWAIT);
	} while (err == -EAGAIN && !sock->nonblocking && !sock->receive_us);
	if (err == -EPIPE) {
		err = take_over(sock);
		return err ? err : -ESTALE;
	}
	if (err || descriptor < 0)
		return err ? err : -EPROTO;
	libc_calls()->send(fd, &taken, sizeof(taken), MSG_NOSIGNAL | MSG_DONTWAIT);
	return sockets_add_handed(sock, descriptor, answer.by_kernel ? NULL : &answer.local, &answer.peer, address, length, flags);
}
