/* SPDX-License-Identifier: Apache-2.0 */
#include "port_ways.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "allow_list.h"
#include "port_addresses.h"
#include "port_control.h"
#include "port_engine.h"
#include "port_epoll.h"
#include "port_interface.h"
#include "port_kernel.h"
#include "port_libc.h"
#include "port_options.h"
#include "port_ports.h"
#include "port_sockets.h"
#include "port_wait.h"

/* What --only lets the stack have. */
static bool is_allowed(const struct open_socket *sock, const struct stack_address *peer, uint16_t local_port)
{
	static struct allow_list list;
	static int read; /* 1: it was; -1: it is wrong */
	const char *text = getenv("BW_ACCEL_ONLY"), *wrong;

	if (!read)
		read = allow_list_parse(text ? text : "", &list, &wrong) ? -1 : 1;
	if (read < 0)
		return false;
	return allow_list_has(&list, sock->protocol, peer ? peer->ip : NULL, peer && peer->family == STACK_IPV6, local_port,
			      peer ? peer->port : 0);
}

/* Ways. */

static void go_by_kernel(struct open_socket *sock)
{
	sock->owner = OWNER_KERNEL;
	epoll_socket_moved(sock);
}

/* Open one of the stack's for a socket, in the place of what it has. */
static int open_stack(struct open_socket *sock, int fd)
{
	int err;
	struct stack_socket *stack = stack_open(sock->domain == AF_INET6 ? STACK_IPV6 : STACK_IPV4,
						sock->type == SOCK_STREAM ? STACK_TCP : STACK_UDP, &err);

	if (!stack)
		return err;
	if (sock->stack)
		stack_close(sock->stack);
	sock->stack = stack;
	options_copy(sock, fd);
	return 0;
}

static void close_stack(struct open_socket *sock)
{
	if (sock->stack)
		stack_close(sock->stack);
	sock->stack = NULL;
}

/* Have the port by the stack to which the kernel's socket is bound. */
static int take_port(struct open_socket *sock, int fd, const struct stack_address *local)
{
	int err = open_stack(sock, fd);

	err = err ? err : stack_bind(sock->stack, local); /* before the service hears of it: it keeps the last socket of a port */
	err = err ? err : ports_take(sock->protocol, local, fd);
	if (err)
		close_stack(sock);
	return err;
}

/* The stack gets a socket that is bound in the kernel to a port. `both`: the kernel's has a part in it, too: what this host sends to itself. */
static int enter_stack(struct open_socket *sock, int fd, const struct stack_address *local, bool both)
{
	int err = take_port(sock, fd, local);

	if (err)
		return err;
	stack_set_user(sock->stack, sock);
	sock->port = local->port;
	sock->both = both;
	sock->owner = OWNER_STACK;
	epoll_socket_moved(sock);
	return 0;
}

/* Begin anew with a socket that is the stack's: what it was connected to, or listened for, ends, and its port stays. */
static int renew(struct open_socket *sock, int fd)
{
	struct stack_address local;
	int err = kernel_local(fd, &local);

	err = err ? err : open_stack(sock, fd);
	if (err)
		return err;
	stack_set_user(sock->stack, sock);
	err = stack_bind(sock->stack, &local);
	epoll_socket_moved(sock);
	return err;
}

/* Whether the stack can have what is bound here: the interface's address, or all. */
static int is_ours(struct open_socket *sock, const struct stack_address *local)
{
	int err;

	if (sock->unfit || !is_allowed(sock, NULL, local->port))
		return 0;
	if (!address_is_any(local) && address_is_loopback(local))
		return 0;
	err = engine_begin();
	return err ? err : address_is_any(local) || interface_has_address(local);
}

/* Have the port by the stack to which a socket was bound, or leave it to the kernel's. */
static int enter_bound(struct open_socket *sock, int fd, const struct stack_address *local, void *argument)
{
	int err = is_ours(sock, local);

	(void)argument;
	if (err > 0)
		return enter_stack(sock, fd, local, true);
	if (!err)
		go_by_kernel(sock);
	return err;
}

/* A stream has its port by the stack no sooner than it listens or connects. @return 0, or -EADDRINUSE: it could not have it then */
static int try_port(struct open_socket *sock, int fd, const struct stack_address *local, void *argument)
{
	int err;

	(void)argument;
	if (is_ours(sock, local) <= 0)
		return 0;
	err = take_port(sock, fd, local);
	if (err)
		return err == -EADDRINUSE ? err : 0;
	close_stack(sock);
	ports_drop(sock->protocol, local->port);
	return 0;
}

int ways_bind(struct open_socket *sock, int fd, const struct sockaddr *address, socklen_t length)
{
	kernel_take *take = sock->type == SOCK_DGRAM ? enter_bound : try_port;
	struct stack_address local;

	if (sock->owner == OWNER_UNDECIDED && !address_from_sockaddr(address, length, &local) && !local.port)
		return kernel_choose_port(sock, fd, address, length, take, NULL);
	if (libc_calls()->bind(fd, address, length))
		return -errno;
	if (sock->type != SOCK_DGRAM || sock->owner != OWNER_UNDECIDED || kernel_local(fd, &local))
		return 0;
	return enter_bound(sock, fd, &local, NULL);
}

int ways_listen(struct open_socket *sock, int fd, int backlog)
{
	struct stack_address local;
	int err;

	if (sock->owner == OWNER_KERNEL || sock->type != SOCK_STREAM)
		return libc_calls()->listen(fd, backlog) ? -errno : 0;
	if (sock->owner == OWNER_UNDECIDED) {
		err = kernel_local(fd, &local);
		err = err ? err : kernel_have_port(sock, fd, &local, enter_bound, NULL);
		if (err)
			return err;
		if (sock->owner == OWNER_KERNEL)
			return libc_calls()->listen(fd, backlog) ? -errno : 0;
	}
	err = stack_listen(sock->stack, backlog);
	sock->backlog = backlog;
	if (!err && sock->both && libc_calls()->listen(fd, backlog))
		err = -errno;
	if (!err)
		sock->listens = true;
	return err;
}

/* Whether a way to a peer leads over the interface. @return 1, 0, or -errno */
static int leads_over_interface(struct open_socket *sock, const struct stack_address *peer, struct stack_address *source)
{
	struct stack_address local = { .port = sock->port };
	int err = sock->port ? 0 : kernel_local(sock->fd, &local);

	if (err)
		return err;
	if (sock->unfit || address_is_loopback(peer) || address_is_of_many(peer) || !is_allowed(sock, peer, local.port))
		return 0;
	err = engine_begin();
	err = err ? err : engine_route(peer, source);
	return err == -EREMOTE ? 0 : err ? err : 1;
}

/* Whether the stack sends from the address that the routes choose; one that the socket is bound to is the interface's. */
static bool can_send_from(const struct open_socket *sock, const struct stack_address *source)
{
	struct stack_address local;

	return (stack_local(sock->stack, &local) == 0 && !address_is_any(&local)) || interface_has_address(source);
}

/* Have a port by the stack, to send to a peer from a source that the routes choose. @return 1: the stack has it, 0: not, or -errno */
static int enter_to_send(struct open_socket *sock, int fd, const struct stack_address *local, bool connects, const struct stack_address *source)
{
	struct stack_address from = *local;
	int err;

	if (address_is_any(local) && sock->type == SOCK_STREAM) {
		from = *source;
		from.port = local->port;
	}
	if (!address_is_any(&from) && !interface_has_address(&from))
		return 0;
	err = enter_stack(sock, fd, &from, sock->type == SOCK_DGRAM && !connects);
	if (!err)
		stack_set_source(sock->stack, source);
	return err ? err : 1;
}

static int enter_to_connect(struct open_socket *sock, int fd, const struct stack_address *local, void *source)
{
	return enter_to_send(sock, fd, local, true, source);
}

static int enter_to_say(struct open_socket *sock, int fd, const struct stack_address *local, void *source)
{
	return enter_to_send(sock, fd, local, false, source);
}

/* Give an undecided socket to the stack if the way to the peer leads over its interface. @return 1: it has it, 0: not, or -errno */
static int enter_for_peer(struct open_socket *sock, int fd, const struct stack_address *peer, bool connects)
{
	struct stack_address source, any = { .family = sock->domain == AF_INET6 ? STACK_IPV6 : STACK_IPV4 };
	int err = leads_over_interface(sock, peer, &source);

	if (err <= 0)
		return err;
	/* A datagram may come from anybody. */
	return connects ? kernel_have_port(sock, fd, &source, enter_to_connect, &source) :
			  kernel_have_port(sock, fd, &any, enter_to_say, &source);
}

static bool is_connected(void *argument)
{
	const struct open_socket *sock = argument;

	return engine_is_gone() || !sock->stack || stack_ready(sock->stack) & (STACK_WRITABLE | STACK_ERROR | STACK_HUNG_UP);
}

/* What a connection that connect() has begun has come to. It is said once: by connect(), or as the socket's error. */
static int connected(struct open_socket *sock)
{
	if (engine_is_gone() || !sock->stack)
		return -ENETDOWN;
	sock->connects = false;
	return stack_take_connected(sock->stack);
}

/* Begin to connect. A socket whose connection has failed may try again. */
static int begin_to_connect(struct open_socket *sock, int fd, const struct stack_address *peer)
{
	struct stack_address local;
	int err = stack_local(sock->stack, &local);

	if (!err && !local.port)
		err = renew(sock, fd);
	err = err ? err : stack_connect(sock->stack, peer);
	sock->connects = err == -EINPROGRESS;
	return err;
}

static int connect_stream(struct open_socket *sock, int fd, const struct stack_address *peer)
{
	struct wait wait = { .done = is_connected, .abandon = sockets_abandon, .argument = sock, .until_us = sockets_until_us(sock->send_us),
			     .restarts = !sock->send_us };
	int waited, err = sock->connects ? -EALREADY : begin_to_connect(sock, fd, peer);

	if (!sock->connects || (sock->nonblocking && !is_connected(sock)))
		return err;
	sockets_hold(sock);
	waited = wait_until(&wait);
	if (waited >= 0)
		err = connected(sock);
	else if (waited != -ETIMEDOUT)
		err = waited;
	sockets_release(sock);
	return err;
}

int ways_connect(struct open_socket *sock, int fd, const struct sockaddr *address, socklen_t length)
{
	struct stack_address peer, source;
	int err = address_from_sockaddr(address, length, &peer);

	if (sock->owner == OWNER_STACK && engine_is_gone())
		return -ENETDOWN;
	if (!err && sock->owner == OWNER_UNDECIDED) {
		err = enter_for_peer(sock, fd, &peer, true);
		if (err < 0)
			return err;
		err = 0;
	} else if (!err && sock->owner == OWNER_STACK && sock->type == SOCK_DGRAM) {
		err = leads_over_interface(sock, &peer, &source);
		if (err < 0)
			return err;
		if (!err || !can_send_from(sock, &source)) {
			sockets_leave_stack(sock);
			go_by_kernel(sock);
		} else {
			stack_set_source(sock->stack, &source);
			sock->both = false; /* from now on it hears that peer alone */
			epoll_socket_moved(sock);
		}
		err = 0;
	}
	if (sock->owner == OWNER_STACK && !err)
		return sock->type == SOCK_STREAM ? connect_stream(sock, fd, &peer) : stack_connect(sock->stack, &peer);
	if (sock->owner == OWNER_STACK)
		return err;
	if (sock->owner == OWNER_UNDECIDED && !err)
		go_by_kernel(sock);
	return 1;
}

int ways_datagram_goes_by_kernel(struct open_socket *sock, int fd, const struct stack_address *to)
{
	struct stack_address source;
	int err;

	if (sock->owner == OWNER_KERNEL)
		return 1;
	if (sock->owner == OWNER_UNDECIDED) {
		err = enter_for_peer(sock, fd, to, false);
		return err < 0 ? err : !err;
	}
	if (to->family == sock->sent_to.family && memcmp(to->ip, sock->sent_to.ip, address_bytes(to)) == 0)
		return sock->sent_by_kernel;
	err = leads_over_interface(sock, to, &source);
	if (err < 0)
		return err;
	sock->sent_to = *to;
	sock->sent_by_kernel = !err || !can_send_from(sock, &source);
	if (!sock->sent_by_kernel)
		stack_set_source(sock->stack, &source);
	return sock->sent_by_kernel;
}

int ways_enter_again(struct open_socket *sock)
{
	struct stack_address local;
	int err = engine_begin();

	if (!err && sock->kept >= 0 && libc_calls()->dup3(sock->kept, sock->fd, 0) < 0)
		err = -errno;
	err = err ? err : kernel_local(sock->fd, &local);
	err = err ? err : enter_stack(sock, sock->fd, &local, sock->both);
	if (err || !sock->listens)
		return err;
	err = stack_listen(sock->stack, sock->backlog);
	if (!err && sock->both && libc_calls()->listen(sock->fd, sock->backlog))
		err = -errno;
	return err;
}

int ways_shutdown(struct open_socket *sock, int fd, int how)
{
	int err;

	if (!sock->listens) {
		err = stack_shutdown(sock->stack, how);
		sock->connects = sock->connects && err; /* connect() has nothing more to say */
		return err;
	}
	if (how != SHUT_RD && how != SHUT_RDWR)
		return how == SHUT_WR ? 0 : -EINVAL;
	sock->listens = false;
	err = sock->both ? kernel_end_listening(fd, sock->domain, how) : 0;
	return err ? err : renew(sock, fd);
}

/* Accepting. */

static bool can_accept(void *argument)
{
	const struct open_socket *sock = argument;

	return engine_is_gone() || !sock->stack || !sock->listens || stack_ready(sock->stack) & STACK_READABLE;
}

/* Make a descriptor of a connection that the stack has accepted. */
static int adopt(const struct open_socket *listener, struct stack_socket *stack, int flags)
{
	int fd = libc_calls()->socket(listener->domain, SOCK_STREAM | flags, IPPROTO_TCP), err = fd < 0 ? -errno : 0;

	if (!err)
		err = sockets_add(fd, listener->domain, SOCK_STREAM, IPPROTO_TCP, (flags & SOCK_NONBLOCK) != 0);
	if (err) {
		if (fd >= 0)
			libc_calls()->close(fd);
		stack_close(stack);
		return err;
	}
	sockets_find(fd)->stack = stack;
	sockets_find(fd)->owner = OWNER_STACK;
	stack_set_user(stack, sockets_find(fd));
	control_inherit(sockets_find(fd), fd, listener);
	options_inherit(sockets_find(fd), fd, listener);
	return fd;
}

static int accept_from_kernel(const struct open_socket *sock, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	int accepted = libc_calls()->accept4(fd, address, length, flags);
	int err = accepted < 0 ? -errno : 0;

	if (!err)
		err = sockets_add(accepted, sock->domain, sock->type, sock->protocol, (flags & SOCK_NONBLOCK) != 0);
	if (!err)
		sockets_find(accepted)->owner = OWNER_KERNEL;
	else if (accepted >= 0)
		libc_calls()->close(accepted);
	return err ? err : accepted;
}

int ways_accept(struct open_socket *sock, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	struct pollfd kernel = { .fd = fd, .events = POLLIN };
	struct wait wait = {
		.done = can_accept, .abandon = sockets_abandon, .argument = sock, .fds = &kernel, .count = sock->both ? 1 : 0,
		.until_us = sock->nonblocking ? 0 : sockets_until_us(sock->receive_us), .restarts = !sock->receive_us,
	};

	for (;;) {
		struct stack_address peer;
		struct stack_socket *stack;
		int err = wait_until(&wait);

		if (engine_is_gone() || !sock->stack)
			return -ENETDOWN;
		if (!sock->listens)
			return -EINVAL; /* shutdown() by another thread */
		if (err > 0)
			return accept_from_kernel(sock, fd, address, length, flags);
		if (err)
			return err == -ETIMEDOUT ? -EAGAIN : err;
		stack = stack_accept(sock->stack, &peer, &err);
		if (stack) {
			address_to_sockaddr(sock->domain, &peer, address, length);
			return adopt(sock, stack, flags);
		}
		if (err != -EAGAIN) /* else another thread was quicker */
			return err;
	}
}
