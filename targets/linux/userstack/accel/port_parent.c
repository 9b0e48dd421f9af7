/* SPDX-License-Identifier: Apache-2.0 */
#include "port_parent.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "port_family.h"
#include "port_libc.h"
#include "port_private.h"
#include "port_say.h"
#include "port_sockets.h"
#include "port_wait.h"
#include "port_ways.h"

enum { TAKE_OVER_TRIES = 200, TAKE_OVER_PAUSE_NS = 10 * 1000 * 1000, ORIGINS_MAX = 8 };

/* A process from which sockets came by a fork: the parent, and those before it whose sockets it had not taken. */
struct origin {
	int channel;
	int cloned; /* while this process forks: the new one's channel, or -1 */
};

static struct origin origins[ORIGINS_MAX];
static int origin_count;
static bool filtered; /* what is not used any more is not told */

/* The parent has ended: its ports are this process's, once the service has taken them back. Let others have the lock meanwhile. */
static int take_over(struct open_socket *sock)
{
	const struct timespec pause = { .tv_nsec = TAKE_OVER_PAUSE_NS };
	int err = 0;

	for (int i = 0; i < TAKE_OVER_TRIES && (sock->owner == OWNER_PARENT || sock->owner == OWNER_HANDED); i++) {
		err = ways_enter_again(sock);
		if (err != -EADDRINUSE)
			return err;
		wait_unlock();
		nanosleep(&pause, NULL);
		wait_lock();
	}
	return sock->owner == OWNER_STACK ? 0 : err;
}

static void take_over_port(struct open_socket *sock, void *argument)
{
	(void)argument;
	if (sockets_is_without_connection(sock))
		take_over(sock);
}

/* Once the parent has ended nobody listens for it any more: without a call of the program's, peers would be refused. */
static void *inherit(void *channel)
{
	struct pollfd ended = { .fd = (int)(intptr_t)channel };

	/* A setuid() of the program interrupts all of its threads. */
	while (libc_calls()->ppoll(&ended, 1, NULL, NULL) < 0 && errno == EINTR)
		;
	wait_lock();
	sockets_each_of_parent(ended.fd, take_over_port, NULL);
	wait_unlock();
	return NULL;
}

static void begin_to_inherit(int channel)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, inherit, (void *)(intptr_t)channel))
		say("no thread to take over the parent's ports: %s", strerror(errno));
	pthread_attr_destroy(&attributes);
}

/* Ask a parent, and wait for its answer. @return 0; -EPIPE: it has ended; or -errno */
static int ask(int channel, enum family_verb verb, int fd, struct family_answer *answer, int *descriptor)
{
	const struct family_request request = { .verb = verb, .fd = fd };
	int err = channel < 0 || libc_calls()->send(channel, &request, sizeof(request), MSG_NOSIGNAL) < 0 ? -EPIPE : 0;

	*descriptor = -1;
	err = err ? err : family_receive(channel, answer, descriptor, MSG_CMSG_CLOEXEC);
	return err ? err : answer->result;
}

static void move_to_clone(struct open_socket *sock, void *origin)
{
	sock->channel = ((const struct origin *)origin)->cloned;
}

struct found {
	bool any, without_connection;
};

static void find_any(struct open_socket *sock, void *argument)
{
	struct found *found = argument;

	found->any = true;
	found->without_connection |= sockets_is_without_connection(sock);
}

void parent_before_fork(void)
{
	for (int fd = -1; (fd = sockets_next(fd)) >= 0;) {
		if (sockets_find(fd)->unasked)
			parent_use(sockets_find(fd), true);
	}
	for (int i = 0; i < origin_count; i++) {
		struct found found = { 0 };
		struct family_answer answer;
		int descriptor = -1;

		sockets_each_of_parent(origins[i].channel, find_any, &found);
		if (found.any)
			ask(origins[i].channel, FAMILY_CLONE, -1, &answer, &descriptor);
		origins[i].cloned = private_move(descriptor);
	}
}

void parent_after_fork(void)
{
	for (int i = 0; i < origin_count; i++)
		private_close(origins[i].cloned);
}

/* Of the parent's own origins those stay of which it has not taken everything. */
static void keep_origins(void)
{
	int kept = 0;

	for (int i = 0; i < origin_count; i++) {
		struct found found = { 0 };
		struct origin origin = origins[i];

		sockets_each_of_parent(origin.channel, find_any, &found);
		sockets_each_of_parent(origin.channel, move_to_clone, &origin);
		private_close(origin.channel);
		if (origin.cloned < 0)
			continue;
		origins[kept++] = (struct origin){ .channel = origin.cloned, .cloned = -1 };
		if (found.without_connection)
			begin_to_inherit(origin.cloned);
	}
	origin_count = kept;
}

void parent_left(int channel)
{
	bool without_connection;

	keep_origins();
	if (origin_count == ORIGINS_MAX) {
		private_close(channel);
		channel = -1;
	}
	without_connection = sockets_leave_to_parent(channel);
	if (channel < 0)
		return;
	origins[origin_count++] = (struct origin){ .channel = channel, .cloned = -1 };
	if (without_connection)
		begin_to_inherit(channel);
}

static int take(struct open_socket *sock, bool asks)
{
	struct family_answer answer;
	int descriptor, err = ask(sock->channel, asks ? FAMILY_TAKE : FAMILY_TAKE_TO_SEND, sock->asked_as, &answer, &descriptor);

	if (err == -EPIPE && sockets_is_without_connection(sock))
		return take_over(sock);
	if (err == -EOPNOTSUPP)
		say("a socket of UDP from before the fork is its parent's");
	if (err)
		return err == -EPIPE ? -ECONNRESET : err;
	sock->unasked = !asks && !answer.listens;
	return sockets_become(sock, descriptor, &answer.local, &answer.peer, answer.listens ? OWNER_HANDED : OWNER_RELAYED);
}

void parent_use(struct open_socket *sock, bool asks)
{
	const struct family_request request = { .verb = FAMILY_ASK, .fd = sock->asked_as };

	if (sock->owner == OWNER_PARENT)
		take(sock, asks);
	if (!sock->unasked || !asks)
		return;
	sock->unasked = false;
	libc_calls()->send(sock->channel, &request, sizeof(request), MSG_NOSIGNAL); /* if it has ended the connection has, too */
}

void parent_leave(const struct open_socket *sock)
{
	const struct family_request request = { .verb = FAMILY_LEAVE, .fd = sock->asked_as };

	if (!filtered && (sock->owner == OWNER_PARENT || sock->owner == OWNER_HANDED || sock->unasked))
		libc_calls()->send(sock->channel, &request, sizeof(request), MSG_NOSIGNAL);
}

bool parent_before_filter(void)
{
	bool all = true;

	for (int fd = -1; (fd = sockets_next(fd)) >= 0;) {
		struct open_socket *sock = sockets_find(fd);

		if (!sockets_is_without_connection(sock))
			parent_use(sock, true);
		all &= !sock->listens || sock->owner == OWNER_KERNEL;
	}
	filtered = true;
	return all;
}

static bool never(void *argument)
{
	(void)argument;
	return false;
}

int parent_accept(struct open_socket *sock, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	struct pollfd handed = { .fd = fd, .events = POLLIN };
	struct wait wait = {
		.done = never, .abandon = sockets_abandon, .argument = sock, .fds = &handed, .count = 1,
		.until_us = sock->nonblocking ? 0 : sockets_until_us(sock->receive_us), .restarts = !sock->receive_us,
	};
	struct family_answer answer;
	int descriptor, err;

	do {
		char waits;

		err = wait_until(&wait);
		if (sock->owner != OWNER_HANDED)
			return -ESTALE;
		if (err < 0)
			return err == -ETIMEDOUT ? -EAGAIN : err;
		/* Another process may come first, or have read it. */
		err = libc_calls()->recv(fd, &waits, sizeof(waits), MSG_DONTWAIT) < 0 && errno == EAGAIN ? -EAGAIN : 0;
		err = err ? err : ask(sock->channel, FAMILY_ACCEPT, sock->asked_as, &answer, &descriptor);
	} while (err == -EAGAIN && !sock->nonblocking && !sock->receive_us);
	if (err == -EPIPE) {
		err = take_over(sock);
		return err ? err : -ESTALE;
	}
	if (err || descriptor < 0)
		return err ? err : -EPROTO;
	return sockets_add_handed(sock, descriptor, answer.by_kernel ? NULL : &answer.local, &answer.peer, address, length, flags);
}
