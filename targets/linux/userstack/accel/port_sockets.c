/* SPDX-License-Identifier: Apache-2.0 */
#include "port_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "descriptor_table.h"
#include "port_addresses.h"
#include "port_children.h"
#include "port_clocks.h"
#include "port_engine.h"
#include "port_epoll.h"
#include "port_kernel.h"
#include "port_libc.h"
#include "port_parent.h"
#include "port_ports.h"
#include "port_private.h"
#include "port_wait.h"

static struct descriptor_table sockets;

struct open_socket *sockets_find(int fd)
{
	return descriptor_table_find(&sockets, fd);
}

int sockets_next(int fd)
{
	return descriptor_table_next(&sockets, fd);
}

static void socket_changed(struct stack_socket *stack)
{
	struct open_socket *sock = stack_user(stack);

	if (!sock)
		return;
	if (sock->watches)
		epoll_socket_changed(sock);
	children_socket_changed(sock);
}

int sockets_add(int fd, int domain, int type, int protocol, bool nonblocking)
{
	struct open_socket *sock = calloc(1, sizeof(*sock));
	int err = sock ? descriptor_table_set(&sockets, fd, sock) : -ENOMEM;

	if (err) {
		free(sock);
		return err;
	}
	engine_socket_changed = socket_changed;
	sock->references = 1;
	sock->fd = fd;
	sock->domain = domain;
	sock->type = type;
	sock->protocol = protocol ? protocol : type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
	sock->nonblocking = nonblocking;
	sock->kept = -1;
	return 0;
}

int sockets_share(struct open_socket *sock, int fd)
{
	int err = descriptor_table_set(&sockets, fd, sock);

	if (!err)
		sock->references++;
	return err;
}

void sockets_hold(struct open_socket *sock)
{
	sock->references++;
}

void sockets_leave_stack(struct open_socket *sock)
{
	if (sock->stack && engine_runs())
		stack_close(sock->stack);
	sock->stack = NULL;
	if (sock->port && engine_runs())
		ports_drop(sock->protocol, sock->port);
	sock->port = 0;
}

void sockets_release(struct open_socket *sock)
{
	if (--sock->references)
		return;
	parent_leave(sock);
	sockets_leave_stack(sock);
	epoll_forget_socket(sock);
	private_close(sock->kept);
	free(sock);
}

void sockets_abandon(void *sock)
{
	sockets_release(sock);
}

/* The service keeps the kernel's socket for the port while connections last: it is not to listen, and lets others bind. */
static void quieten(const struct open_socket *sock, int fd)
{
	const int on = 1;

	if (sock->owner != OWNER_STACK || !sock->port)
		return;
	libc_calls()->setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (sock->listens && sock->both)
		kernel_end_listening(fd, sock->domain, SHUT_RDWR);
}

/* One of those that mean the socket, or -1. */
static int another_descriptor(const struct open_socket *sock)
{
	int fd = -1;

	if (sock->references > 1) {
		do
			fd = descriptor_table_next(&sockets, fd);
		while (fd >= 0 && sockets_find(fd) != sock);
	}
	return fd;
}

static void forget(int fd, struct open_socket *sock)
{
	descriptor_table_set(&sockets, fd, NULL);
	epoll_forget_descriptor(sock, fd);
	if (sock->fd == fd)
		sock->fd = another_descriptor(sock);
	sockets_release(sock);
}

void sockets_forget(int fd)
{
	struct open_socket *sock = sockets_find(fd);

	if (!sock)
		return;
	if (sock->references == 1)
		quieten(sock, fd);
	forget(fd, sock);
}

int sockets_close(int fd)
{
	sockets_forget(fd);
	return libc_calls()->close(fd) ? -errno : 0;
}

uint64_t sockets_until_us(uint64_t timeout_us)
{
	return timeout_us ? clocks_after_us(timeout_us) : UINT64_MAX;
}

void sockets_close_all(void)
{
	for (int fd = -1; (fd = descriptor_table_next(&sockets, fd)) >= 0;) {
		if (sockets_find(fd)->owner == OWNER_STACK)
			sockets_leave_stack(sockets_find(fd));
	}
}

struct open_socket *sockets_of_connection(const struct open_socket *listener, struct stack_socket *stack)
{
	struct open_socket *sock = calloc(1, sizeof(*sock));

	if (!sock)
		return NULL;
	*sock = (struct open_socket){
		.references = 1, .fd = -1, .kept = -1, .domain = listener->domain, .type = SOCK_STREAM, .protocol = IPPROTO_TCP,
		.owner = OWNER_STACK, .stack = stack, .tells = listener->tells,
	};
	stack_set_user(stack, sock);
	return sock;
}

static short poll_events(unsigned int ready)
{
	short events = 0;

	if (ready & STACK_READABLE)
		events |= POLLIN | POLLRDNORM;
	if (ready & STACK_WRITABLE)
		events |= POLLOUT | POLLWRNORM;
	if (ready & STACK_ERROR)
		events |= POLLERR;
	if (ready & STACK_PEER_CLOSED)
		events |= POLLRDHUP;
	if (ready & STACK_HUNG_UP)
		events |= POLLHUP;
	return events;
}

/* What is sent as datagrams has bands, as the kernel has it. */
static short events_of(const struct open_socket *sock, unsigned int ready)
{
	short events = poll_events(ready);

	return sock->type == SOCK_DGRAM && ready & STACK_WRITABLE ? events | POLLWRBAND : events;
}

short sockets_ready(const struct open_socket *sock)
{
	if (engine_is_gone() || !sock->stack)
		return POLLIN | POLLOUT | POLLERR | POLLHUP;
	return events_of(sock, stack_ready(sock->stack));
}

short sockets_news(const struct open_socket *sock)
{
	return engine_is_gone() || !sock->stack ? sockets_ready(sock) : events_of(sock, stack_news(sock->stack));
}

/* Of forks. */

void sockets_each_of_stack(void (*each)(int fd, struct open_socket *sock, void *argument), void *argument)
{
	for (int fd = -1; (fd = descriptor_table_next(&sockets, fd)) >= 0;) {
		if (sockets_find(fd)->owner == OWNER_STACK)
			each(fd, sockets_find(fd), argument);
	}
}

static void count_one(int fd, struct open_socket *sock, void *argument)
{
	(void)fd;
	(void)sock;
	++*(unsigned int *)argument;
}

unsigned int sockets_count_of_stack(void)
{
	unsigned int count = 0;

	sockets_each_of_stack(count_one, &count);
	return count;
}

struct leaving {
	int channel;
	bool without_connection;
};

static void leave_to_parent(int fd, struct open_socket *sock, void *argument)
{
	struct leaving *leaving = argument;

	leaving->without_connection |= sockets_is_without_connection(sock);
	sock->fd = sock->asked_as = fd;
	sock->channel = leaving->channel;
	sock->owner = OWNER_PARENT;
	sock->stack = NULL;
	sock->port = 0;
	sock->relayed = false;
}

bool sockets_leave_to_parent(int channel)
{
	struct leaving leaving = { .channel = channel };

	sockets_each_of_stack(leave_to_parent, &leaving);
	return leaving.without_connection;
}

void sockets_each_of_parent(int channel, void (*each)(struct open_socket *sock, void *argument), void *argument)
{
	for (int fd = -1; (fd = descriptor_table_next(&sockets, fd)) >= 0;) {
		struct open_socket *sock = sockets_find(fd);

		if ((sock->owner == OWNER_PARENT || sock->owner == OWNER_HANDED) && sock->channel == channel)
			each(sock, argument);
	}
}

int sockets_become(struct open_socket *sock, int local_socket, const struct stack_address *local, const struct stack_address *peer,
		   enum socket_owner owner)
{
	int err = 0;

	if (sock->nonblocking)
		err = libc_calls()->fcntl64(local_socket, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (!err && owner == OWNER_HANDED)
		sock->kept = private_move(libc_calls()->dup(sock->fd));
	for (int fd = -1; !err && (fd = descriptor_table_next(&sockets, fd)) >= 0;) {
		int flags;

		if (sockets_find(fd) != sock)
			continue;
		flags = libc_calls()->fcntl64(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
		err = libc_calls()->dup3(local_socket, fd, flags) < 0 ? -errno : 0;
	}
	libc_calls()->close(local_socket);
	if (err)
		return err;
	sock->local = *local;
	sock->peer = *peer;
	sock->owner = owner;
	return 0;
}

int sockets_add_handed(const struct open_socket *listener, int fd, const struct stack_address *local, const struct stack_address *peer,
		       struct sockaddr *address, socklen_t *length, int flags)
{
	struct open_socket *sock;
	int err = 0, set = (flags & SOCK_NONBLOCK) ? O_NONBLOCK : 0;

	if (libc_calls()->fcntl64(fd, F_SETFL, set) < 0 || libc_calls()->fcntl64(fd, F_SETFD, flags & SOCK_CLOEXEC ? FD_CLOEXEC : 0) < 0)
		err = -errno;
	if (!err)
		err = sockets_add(fd, listener->domain, SOCK_STREAM, IPPROTO_TCP, set != 0);
	if (err) {
		libc_calls()->close(fd);
		return err;
	}
	sock = sockets_find(fd);
	sock->owner = local ? OWNER_RELAYED : OWNER_KERNEL;
	if (local) {
		sock->local = *local;
		sock->peer = *peer;
		address_to_sockaddr(sock->domain, peer, address, length);
	} else if (address && length) {
		return libc_calls()->getpeername(fd, address, length) ? -errno : fd;
	}
	return fd;
}
