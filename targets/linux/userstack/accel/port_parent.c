/* SPDX-License-Identifier: Apache-2.0 */
#include "port_parent.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "port_family.h"
#include "port_libc.h"
#include "port_private.h"
#include "port_say.h"
#include "port_sockets.h"
#include "port_wait.h"
#include "port_ways.h"

enum { TAKE_OVER_TRIES = 200, TAKE_OVER_PAUSE_NS = 10 * 1000 * 1000 };

static int parent = -1; /* the channel to it */

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

void parent_left(int channel)
{
	if (parent >= 0)
		private_close(parent); /* of the parent itself: what came from above that is not handed down further */
	parent = channel;
	if (sockets_leave_to_parent() && parent >= 0)
		begin_to_inherit();
}

static int take(struct open_socket *sock, bool asks)
{
	const struct family_request request = { .fd = sock->fd, .asks = asks };
	struct family_answer answer;
	int descriptor, err = parent < 0 ? -EPIPE : 0;

	if (!err && libc_calls()->send(parent, &request, sizeof(request), MSG_NOSIGNAL) < 0)
		err = -EPIPE;
	if (!err)
		err = family_receive(parent, &answer, &descriptor, MSG_CMSG_CLOEXEC);
	if (err == -EPIPE && (sock->listens || sock->type == SOCK_DGRAM))
		return take_over(sock);
	if (err)
		return err == -EPIPE ? -ECONNRESET : err;
	if (answer.result) {
		if (answer.result == -EOPNOTSUPP)
			say("a socket of UDP from before the fork is its parent's");
		return answer.result;
	}
	sock->unasked = !asks && !answer.listens;
	sock->asked_as = request.fd;
	return sockets_become(sock, descriptor, &answer.local, &answer.peer, answer.listens ? WAY_HANDED : WAY_RELAYED);
}

void parent_use(struct open_socket *sock, bool asks)
{
	const struct family_request request = { .fd = sock->asked_as, .asks = true, .is_taken = true };

	if (sock->way == WAY_PARENT)
		take(sock, asks);
	if (!sock->unasked || !asks)
		return;
	sock->unasked = false;
	libc_calls()->send(parent, &request, sizeof(request), MSG_NOSIGNAL); /* if it has ended the connection has, too */
}

void parent_ask_for_all(void)
{
	for (int fd = -1; (fd = sockets_next(fd)) >= 0;) {
		if (sockets_find(fd)->unasked)
			parent_use(sockets_find(fd), true);
	}
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
	const char taken = 0;
	int descriptor, err;

	do {
		err = wait_until(&wait);
		if (sock->way != WAY_HANDED)
			return -ESTALE;
		err = err == -ETIMEDOUT ? -EAGAIN : err < 0 ? err : family_receive(fd, &answer, &descriptor, MSG_DONTWAIT);
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
