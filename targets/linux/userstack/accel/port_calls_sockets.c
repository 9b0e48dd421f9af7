/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on sockets, but for those that carry data: their life, their names, their options. */
#include "port_addresses.h"
#include "port_libc.h"

#include <errno.h>
#include <netinet/in.h>

#include "port_calls.h"
#include "port_engine.h"
#include "port_options.h"
#include "port_parent.h"
#include "port_sockets.h"
#include "port_wait.h"
#include "port_ways.h"

EXPORT int socket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), fd = libc_calls()->socket(domain, type, protocol), err;

	if (fd < 0 || (domain != AF_INET && domain != AF_INET6) || (kind != SOCK_STREAM && kind != SOCK_DGRAM) ||
	    (protocol && protocol != (kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP)))
		return fd;
	wait_lock();
	err = sockets_add(fd, domain, kind, protocol, (type & SOCK_NONBLOCK) != 0);
	if (err)
		libc_calls()->close(fd);
	return (int)calls_unlock(err ? err : fd);
}

EXPORT int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	struct open_socket *sock = calls_enter(fd);

	return sock ? (int)calls_unlock(ways_bind(sock, fd, address, length)) : libc_calls()->bind(fd, address, length);
}

EXPORT int listen(int fd, int backlog)
{
	struct open_socket *sock = calls_enter(fd);

	return sock ? (int)calls_unlock(ways_listen(sock, fd, backlog)) : libc_calls()->listen(fd, backlog);
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	struct open_socket *sock = calls_enter(fd);
	int err;

	if (!sock)
		return libc_calls()->connect(fd, address, length);
	err = ways_connect(sock, fd, address, length);
	wait_unlock();
	return err == 1 ? libc_calls()->connect(fd, address, length) : (int)calls_done(err);
}

EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	struct open_socket *sock = calls_enter(fd);
	int accepted;

	if (sock && sock->owner == OWNER_HANDED) {
		sockets_hold(sock);
		accepted = parent_accept(sock, fd, address, length, flags);
		sockets_release(sock);
		if (accepted != -ESTALE)
			return (int)calls_unlock(accepted);
	}
	if (!sock || sock->owner != OWNER_STACK) {
		if (sock)
			wait_unlock();
		return libc_calls()->accept4(fd, address, length, flags);
	}
	if (!sock->listens || flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC))
		return (int)calls_unlock(sock->type == SOCK_DGRAM && !(flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) ? -EOPNOTSUPP : -EINVAL);
	sockets_hold(sock);
	accepted = ways_accept(sock, fd, address, length, flags);
	sockets_release(sock);
	return (int)calls_unlock(accepted);
}

EXPORT int accept(int fd, struct sockaddr *address, socklen_t *length)
{
	return accept4(fd, address, length, 0);
}

EXPORT int shutdown(int fd, int how)
{
	struct open_socket *sock = calls_enter_stack_to_send(fd);

	if (!sock)
		return libc_calls()->shutdown(fd, how);
	return (int)calls_unlock(engine_is_gone() ? -ENETDOWN : ways_shutdown(sock, fd, how));
}

/* What the ends of a parent's socket are. @return 1: it is none; 0: the address is given; or -1 with errno */
static int name_relayed(int fd, bool of_peer, struct sockaddr *address, socklen_t *length)
{
	struct open_socket *sock = calls_enter(fd);
	int err = 1;

	if (!sock)
		return 1;
	if (sock->owner == OWNER_RELAYED || sock->owner == OWNER_HANDED)
		err = of_peer && !sock->peer.port ? -ENOTCONN : 0;
	if (!err)
		address_to_sockaddr(sock->domain, of_peer ? &sock->peer : &sock->local, address, length);
	return (int)calls_unlock(err);
}

EXPORT int getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	struct stack_address local;
	struct open_socket *sock = calls_enter_stack(fd);

	if (!sock)
		return name_relayed(fd, false, address, length) ? libc_calls()->getsockname(fd, address, length) : 0;
	if ((int)*length < 0)
		return (int)calls_unlock(-EINVAL);
	if (!engine_is_gone() && (!sock->port || sock->type == SOCK_STREAM) && !sock->listens && stack_local(sock->stack, &local) == 0) {
		if (!local.port) { /* its connection has failed: the kernel's keeps the port, and no address */
			local.family = sock->domain == AF_INET6 ? STACK_IPV6 : STACK_IPV4;
			local.port = sock->port;
		}
		address_to_sockaddr(sock->domain, &local, address, length);
		return (int)calls_unlock(0);
	}
	wait_unlock();
	return libc_calls()->getsockname(fd, address, length);
}

EXPORT int getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
	struct stack_address peer;
	struct open_socket *sock = calls_enter_stack(fd);
	int err;

	if (!sock) {
		err = name_relayed(fd, true, address, length);
		return err > 0 ? libc_calls()->getpeername(fd, address, length) : err;
	}
	err = engine_is_gone() ? -ENOTCONN : stack_peer(sock->stack, &peer);
	if (!err && (int)*length < 0)
		err = -EINVAL;
	if (!err)
		address_to_sockaddr(sock->domain, &peer, address, length);
	return (int)calls_unlock(err);
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	struct open_socket *sock = calls_enter(fd);

	return sock ? (int)calls_unlock(options_set(sock, fd, level, name, value, length)) :
		      libc_calls()->setsockopt(fd, level, name, value, length);
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	struct open_socket *sock = calls_enter(fd);

	return sock ? (int)calls_unlock(options_get(sock, fd, level, name, value, length)) :
		      libc_calls()->getsockopt(fd, level, name, value, length);
}

/* Second names, where time has 64 bits in others. */
#if __SIZEOF_LONG__ == 4
EXPORT int __setsockopt64(int fd, int level, int name, const void *value, socklen_t length) __THROW __attribute__((alias("setsockopt")));
EXPORT int __getsockopt64(int fd, int level, int name, void *value, socklen_t *length) __THROW __attribute__((alias("getsockopt")));
#endif
