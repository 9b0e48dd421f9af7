/* SPDX-License-Identifier: Apache-2.0 */
#include "port_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "allow_list.h"
#include "descriptor_table.h"
#include "port_children.h"
#include "port_control.h"
#include "port_engine.h"
#include "port_epoll.h"
#include "port_libc.h"
#include "port_options.h"
#include "port_wait.h"

enum { IPV4_MAPPED_AT = 12, LOOPBACK_NET = 127 };

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

/* The stack's part ends. */
static void leave_stack(struct open_socket *sock)
{
	if (sock->stack && engine_runs())
		stack_close(sock->stack);
	sock->stack = NULL;
	if (sock->port && engine_runs())
		engine_drop_port(sock->protocol, sock->port);
	sock->port = 0;
}

void sockets_release(struct open_socket *sock)
{
	if (--sock->references)
		return;
	leave_stack(sock);
	epoll_forget_socket(sock);
	engine_close_private(sock->kept);
	free(sock);
}

/* The service keeps the kernel's socket for the port while connections last: it is not to listen, and lets others bind. */
static void quieten(const struct open_socket *sock, int fd)
{
	const int on = 1;

	if (sock->way != WAY_STACK || !sock->port)
		return;
	libc_calls()->setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (sock->listens && sock->both)
		libc_calls()->shutdown(fd, SHUT_RDWR);
}

/* Whether another descriptor than this means the socket, or a call is in it. */
static void forget(int fd, struct open_socket *sock)
{
	descriptor_table_set(&sockets, fd, NULL);
	epoll_forget_descriptor(sock, fd);
	if (sock->fd == fd)
		sock->fd = -1;
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

void sockets_close_all(void)
{
	for (int fd = -1; (fd = descriptor_table_next(&sockets, fd)) >= 0;) {
		if (sockets_find(fd)->way == WAY_STACK)
			leave_stack(sockets_find(fd));
	}
}

uint64_t sockets_until_us(uint64_t timeout_us)
{
	return timeout_us ? engine_now_us() + timeout_us : UINT64_MAX;
}

/* Addresses. */

int sockets_from_sockaddr(const struct sockaddr *sockaddr, socklen_t length, struct stack_address *address)
{
	struct sockaddr_in6 six;
	struct sockaddr_in four;
	sa_family_t family;

	*address = (struct stack_address){ 0 };
	if (!sockaddr || length < (socklen_t)sizeof(family))
		return -EINVAL;
	memcpy(&family, sockaddr, sizeof(family));
	if (family == AF_INET && length >= (socklen_t)sizeof(four)) {
		memcpy(&four, sockaddr, sizeof(four));
		address->family = STACK_IPV4;
		address->port = ntohs(four.sin_port);
		memcpy(address->ip, &four.sin_addr, sizeof(four.sin_addr));
		return 0;
	}
	if (family != AF_INET6)
		return family == AF_INET ? -EINVAL : -EAFNOSUPPORT;
	if (length < (socklen_t)sizeof(six))
		return -EINVAL;
	memcpy(&six, sockaddr, sizeof(six));
	address->port = ntohs(six.sin6_port);
	if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
		address->family = STACK_IPV4;
		memcpy(address->ip, six.sin6_addr.s6_addr + IPV4_MAPPED_AT, sizeof(four.sin_addr));
		return 0;
	}
	address->family = STACK_IPV6;
	memcpy(address->ip, &six.sin6_addr, sizeof(six.sin6_addr));
	return 0;
}

void sockets_to_sockaddr(int domain, const struct stack_address *address, struct sockaddr *sockaddr, socklen_t *length)
{
	struct sockaddr_in six_or_four_room;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(address->port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(address->port) };
	socklen_t whole = domain == AF_INET6 ? sizeof(six) : sizeof(six_or_four_room);

	if (!sockaddr || !length)
		return;
	memcpy(&four.sin_addr, address->ip, sizeof(four.sin_addr));
	if (address->family == STACK_IPV6) {
		memcpy(&six.sin6_addr, address->ip, sizeof(six.sin6_addr));
	} else {
		memset(six.sin6_addr.s6_addr + IPV4_MAPPED_AT - 2, 0xff, 2);
		memcpy(six.sin6_addr.s6_addr + IPV4_MAPPED_AT, address->ip, sizeof(four.sin_addr));
	}
	if (*length)
		memcpy(sockaddr, domain == AF_INET6 ? (const void *)&six : (const void *)&four, *length < whole ? *length : whole);
	*length = whole;
}

static size_t ip_bytes(const struct stack_address *address)
{
	return address->family == STACK_IPV6 ? 16 : 4;
}

static bool is_any(const struct stack_address *address)
{
	static const uint8_t zero[16];

	return memcmp(address->ip, zero, ip_bytes(address)) == 0;
}

/* Whether packets to an address never leave by a card. */
static bool is_loopback(const struct stack_address *address)
{
	static const uint8_t loopback6[16] = { [15] = 1 };

	if (address->family == STACK_IPV4)
		return address->ip[0] == LOOPBACK_NET || is_any(address);
	return memcmp(address->ip, loopback6, sizeof(loopback6)) == 0 || is_any(address);
}

static int local_of(int fd, struct stack_address *local)
{
	struct sockaddr_storage sockaddr;
	socklen_t length = sizeof(sockaddr);

	if (libc_calls()->getsockname(fd, (struct sockaddr *)&sockaddr, &length))
		return -errno;
	return sockets_from_sockaddr((const struct sockaddr *)&sockaddr, length, local);
}

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
	sock->way = WAY_KERNEL;
	epoll_socket_moved(sock);
}

static int bind_kernel(int fd, int domain, const struct stack_address *address)
{
	struct sockaddr_storage sockaddr;
	socklen_t length = sizeof(sockaddr);

	sockets_to_sockaddr(domain, address, (struct sockaddr *)&sockaddr, &length);
	return libc_calls()->bind(fd, (const struct sockaddr *)&sockaddr, length) ? -errno : 0;
}

/* The stack gets a socket that is bound in the kernel to a port. `both`: the kernel's has a part in it, too. */
static int enter_stack(struct open_socket *sock, int fd, const struct stack_address *local, bool both)
{
	int err = engine_take_port(sock->protocol, local, fd);

	if (err)
		return err;
	sock->stack = stack_open(sock->domain == AF_INET6 ? STACK_IPV6 : STACK_IPV4,
				 sock->type == SOCK_STREAM ? STACK_TCP : STACK_UDP, &err);
	if (sock->stack) {
		options_copy(sock, fd);
		err = stack_bind(sock->stack, local);
	}
	if (err) {
		if (sock->stack)
			stack_close(sock->stack);
		sock->stack = NULL;
		engine_drop_port(sock->protocol, local->port);
		return err;
	}
	stack_set_user(sock->stack, sock);
	sock->port = local->port;
	sock->both = both;
	sock->way = WAY_STACK;
	epoll_socket_moved(sock);
	return 0;
}

/* Whether the stack can have what is bound here: the interface's address, or all. */
static int is_ours(struct open_socket *sock, const struct stack_address *local)
{
	int err;

	if (sock->unfit || !is_allowed(sock, NULL, local->port))
		return 0;
	if (!is_any(local) && is_loopback(local))
		return 0;
	err = engine_begin();
	return err ? err : is_any(local) || engine_has_address(local);
}

int sockets_bind(struct open_socket *sock, int fd, const struct sockaddr *address, socklen_t length)
{
	struct stack_address local;
	int err;

	if (libc_calls()->bind(fd, address, length))
		return -errno;
	if (sock->type != SOCK_DGRAM || sock->way != WAY_UNDECIDED || local_of(fd, &local))
		return 0;
	err = is_ours(sock, &local);
	if (err > 0)
		return enter_stack(sock, fd, &local, is_any(&local));
	if (!err)
		go_by_kernel(sock);
	return err;
}

int sockets_listen(struct open_socket *sock, int fd, int backlog)
{
	struct stack_address local;
	int err;

	if (sock->way == WAY_KERNEL || sock->type != SOCK_STREAM)
		return libc_calls()->listen(fd, backlog) ? -errno : 0;
	if (sock->way == WAY_UNDECIDED) {
		err = local_of(fd, &local);
		if (!err && !local.port) {
			err = bind_kernel(fd, sock->domain, &local);
			err = err ? err : local_of(fd, &local);
		}
		err = err ? err : is_ours(sock, &local);
		if (!err) {
			go_by_kernel(sock);
			return libc_calls()->listen(fd, backlog) ? -errno : 0;
		}
		if (err > 0)
			err = enter_stack(sock, fd, &local, is_any(&local));
		if (err)
			return err;
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
	int err;

	if (sock->unfit || is_loopback(peer) || !is_allowed(sock, peer, 0))
		return 0;
	err = engine_begin();
	err = err ? err : engine_route(peer, source);
	return err == -EREMOTE ? 0 : err ? err : 1;
}

/* Bind a socket that has no port yet, or leave it. *local: what it has then. */
static int have_port(const struct open_socket *sock, int fd, const struct stack_address *source, struct stack_address *local)
{
	int err = local_of(fd, local);

	if (!err && !local->port) {
		err = bind_kernel(fd, sock->domain, source);
		err = err ? err : local_of(fd, local);
	}
	return err;
}

/* Give an undecided socket to the stack if the way to the peer leads over its interface. @return 1: it has it, 0: not, or -errno */
static int enter_for_peer(struct open_socket *sock, int fd, const struct stack_address *peer, bool connects)
{
	struct stack_address source, local, route_source;
	int err = leads_over_interface(sock, peer, &source);

	if (err <= 0)
		return err;
	route_source = source;
	if (!connects) /* a datagram may come from anybody */
		source = (struct stack_address){ .family = sock->domain == AF_INET6 ? STACK_IPV6 : STACK_IPV4 };
	err = have_port(sock, fd, &source, &local);
	if (err)
		return err;
	if (is_any(&local) && sock->type == SOCK_STREAM) {
		source.port = local.port;
		local = source;
	}
	if (!is_any(&local) && !engine_has_address(&local))
		return 0;
	err = enter_stack(sock, fd, &local, sock->type == SOCK_DGRAM && is_any(&local));
	if (!err)
		stack_set_source(sock->stack, &route_source);
	return err ? err : 1;
}

static bool is_connected(void *argument)
{
	const struct open_socket *sock = argument;

	return engine_is_gone() || !sock->stack || stack_ready(sock->stack) & (STACK_WRITABLE | STACK_ERROR | STACK_HUNG_UP);
}

static int connect_stream(struct open_socket *sock, const struct stack_address *peer)
{
	struct wait wait = { .done = is_connected, .argument = sock, .until_us = sockets_until_us(sock->send_us), .restarts = !sock->send_us };
	int err = stack_connect(sock->stack, peer);

	if (err != -EINPROGRESS || sock->nonblocking)
		return err;
	sockets_hold(sock);
	err = wait_until(&wait);
	if (err == -ETIMEDOUT)
		err = -EINPROGRESS;
	else if (err >= 0)
		err = engine_is_gone() || !sock->stack ? -ENETDOWN : -stack_take_error(sock->stack);
	sockets_release(sock);
	return err;
}

int sockets_connect(struct open_socket *sock, int fd, const struct sockaddr *address, socklen_t length)
{
	struct stack_address peer, source;
	int err = sockets_from_sockaddr(address, length, &peer);

	if (sock->way == WAY_STACK && engine_is_gone())
		return -ENETDOWN;
	if (!err && sock->way == WAY_UNDECIDED) {
		err = enter_for_peer(sock, fd, &peer, true);
		if (err < 0)
			return err;
		err = 0;
	} else if (!err && sock->way == WAY_STACK && sock->type == SOCK_DGRAM) {
		err = leads_over_interface(sock, &peer, &source);
		if (err < 0)
			return err;
		if (!err || (sock->both && !engine_has_address(&source))) { /* from now on it hears that peer alone */
			leave_stack(sock);
			go_by_kernel(sock);
		} else {
			stack_set_source(sock->stack, &source);
		}
		err = 0;
	}
	if (sock->way == WAY_STACK && !err)
		return sock->type == SOCK_STREAM ? connect_stream(sock, &peer) : stack_connect(sock->stack, &peer);
	if (sock->way == WAY_STACK)
		return err;
	if (sock->way == WAY_UNDECIDED && !err)
		go_by_kernel(sock);
	return 1;
}

int sockets_datagram_goes_by_kernel(struct open_socket *sock, int fd, const struct stack_address *to)
{
	struct stack_address source;
	int err;

	if (sock->way == WAY_KERNEL)
		return 1;
	if (sock->way == WAY_UNDECIDED) {
		err = enter_for_peer(sock, fd, to, false);
		return err < 0 ? err : !err;
	}
	if (!sock->both)
		return 0;
	if (to->family == sock->sent_to.family && memcmp(to->ip, sock->sent_to.ip, ip_bytes(to)) == 0)
		return sock->sent_by_kernel;
	err = leads_over_interface(sock, to, &source);
	if (err < 0)
		return err;
	sock->sent_to = *to;
	sock->sent_by_kernel = !err || !engine_has_address(&source);
	if (!sock->sent_by_kernel)
		stack_set_source(sock->stack, &source);
	return sock->sent_by_kernel;
}

/* Accepting. */

static bool can_accept(void *argument)
{
	const struct open_socket *sock = argument;

	return engine_is_gone() || !sock->stack || stack_ready(sock->stack) & STACK_READABLE;
}

struct open_socket *sockets_of_connection(const struct open_socket *listener, struct stack_socket *stack)
{
	struct open_socket *sock = calloc(1, sizeof(*sock));

	if (!sock)
		return NULL;
	*sock = (struct open_socket){
		.references = 1, .fd = -1, .kept = -1, .domain = listener->domain, .type = SOCK_STREAM, .protocol = IPPROTO_TCP,
		.way = WAY_STACK, .stack = stack, .tells = listener->tells,
	};
	stack_set_user(stack, sock);
	return sock;
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
	sockets_find(fd)->way = WAY_STACK;
	stack_set_user(stack, sockets_find(fd));
	control_inherit(sockets_find(fd), fd, listener);
	return fd;
}

static int accept_from_kernel(const struct open_socket *sock, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	int accepted = libc_calls()->accept4(fd, address, length, flags);
	int err = accepted < 0 ? -errno : 0;

	if (!err)
		err = sockets_add(accepted, sock->domain, sock->type, sock->protocol, (flags & SOCK_NONBLOCK) != 0);
	if (!err)
		sockets_find(accepted)->way = WAY_KERNEL;
	else if (accepted >= 0)
		libc_calls()->close(accepted);
	return err ? err : accepted;
}

int sockets_accept(struct open_socket *sock, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	struct pollfd kernel = { .fd = fd, .events = POLLIN };
	struct wait wait = {
		.done = can_accept, .argument = sock, .fds = &kernel, .count = sock->both ? 1 : 0,
		.until_us = sock->nonblocking ? 0 : sockets_until_us(sock->receive_us), .restarts = !sock->receive_us,
	};

	for (;;) {
		struct stack_address peer;
		struct stack_socket *stack;
		int err = wait_until(&wait);

		if (engine_is_gone() || !sock->stack)
			return -ENETDOWN;
		if (err > 0)
			return accept_from_kernel(sock, fd, address, length, flags);
		if (err)
			return err == -ETIMEDOUT ? -EAGAIN : err;
		stack = stack_accept(sock->stack, &peer, &err);
		if (stack) {
			sockets_to_sockaddr(sock->domain, &peer, address, length);
			return adopt(sock, stack, flags);
		}
		if (err != -EAGAIN) /* else another thread was quicker */
			return err;
	}
}

short sockets_ready(const struct open_socket *sock)
{
	unsigned int ready;
	short events = 0;

	if (engine_is_gone() || !sock->stack)
		return POLLIN | POLLOUT | POLLERR | POLLHUP;
	ready = stack_ready(sock->stack);
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

/* Of forks. */

void sockets_each_of_stack(void (*each)(int fd, struct open_socket *sock, void *argument), void *argument)
{
	for (int fd = -1; (fd = descriptor_table_next(&sockets, fd)) >= 0;) {
		if (sockets_find(fd)->way == WAY_STACK)
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

static bool is_without_connection(const struct open_socket *sock)
{
	return sock->listens || sock->type == SOCK_DGRAM;
}

static void leave_to_parent(int fd, struct open_socket *sock, void *argument)
{
	*(bool *)argument |= is_without_connection(sock);
	sock->fd = fd;
	sock->way = WAY_PARENT;
	sock->stack = NULL;
	sock->port = 0;
	sock->relayed = false;
}

bool sockets_leave_to_parent(void)
{
	bool without_connection = false;

	sockets_each_of_stack(leave_to_parent, &without_connection);
	return without_connection;
}

void sockets_each_of_parent(int (*each)(struct open_socket *sock))
{
	for (int fd = -1; (fd = descriptor_table_next(&sockets, fd)) >= 0;) {
		struct open_socket *sock = sockets_find(fd);

		if ((sock->way == WAY_PARENT || sock->way == WAY_HANDED) && is_without_connection(sock))
			each(sock);
	}
}

int sockets_become(struct open_socket *sock, int local_socket, const struct stack_address *local, const struct stack_address *peer,
		   enum way way)
{
	int err = 0;

	if (sock->nonblocking)
		err = libc_calls()->fcntl64(local_socket, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (!err && way == WAY_HANDED)
		sock->kept = engine_private(libc_calls()->dup(sock->fd));
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
	sock->way = way;
	return 0;
}

int sockets_enter_again(struct open_socket *sock)
{
	struct stack_address local;
	int err = engine_begin();

	if (!err && sock->kept >= 0 && libc_calls()->dup3(sock->kept, sock->fd, 0) < 0)
		err = -errno;
	err = err ? err : local_of(sock->fd, &local);
	err = err ? err : enter_stack(sock, sock->fd, &local, is_any(&local));
	if (err || !sock->listens)
		return err;
	err = stack_listen(sock->stack, sock->backlog);
	if (!err && sock->both && libc_calls()->listen(sock->fd, sock->backlog))
		err = -errno;
	return err;
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
	sock->way = local ? WAY_RELAYED : WAY_KERNEL;
	if (local) {
		sock->local = *local;
		sock->peer = *peer;
		sockets_to_sockaddr(sock->domain, peer, address, length);
	} else if (address && length) {
		return libc_calls()->getpeername(fd, address, length) ? -errno : fd;
	}
	return fd;
}
