/* SPDX-License-Identifier: Apache-2.0 */
#include "port_kernel.h"

#include <errno.h>
#include <netinet/in.h>

#include "port_addresses.h"
#include "port_libc.h"
#include "port_sockets.h"

enum { CHOICES = 64 };

int kernel_local(int fd, struct stack_address *local)
{
	struct sockaddr_storage sockaddr;
	socklen_t length = sizeof(sockaddr);

	if (libc_calls()->getsockname(fd, (struct sockaddr *)&sockaddr, &length))
		return -errno;
	return address_from_sockaddr((const struct sockaddr *)&sockaddr, length, local);
}

static int bind_to(int fd, int domain, const struct stack_address *address)
{
	struct sockaddr_storage sockaddr;
	socklen_t length = sizeof(sockaddr);

	address_to_sockaddr(domain, address, (struct sockaddr *)&sockaddr, &length);
	return libc_calls()->bind(fd, (const struct sockaddr *)&sockaddr, length) ? -errno : 0;
}

/* The kernel frees the port of a listener that ends if it has chosen it (inet_put_port of tcp_set_state), and leaves it otherwise. */
int kernel_end_listening(int fd, int domain, int how)
{
	struct stack_address local;
	int err = kernel_local(fd, &local);

	if (libc_calls()->shutdown(fd, how))
		return -errno;
	if (!err)
		bind_to(fd, domain, &local); /* in vain while it has the port, or a connection of this host to itself does */
	return 0;
}

/* Take the port from a socket to which the kernel has given it unasked. */
static int unbind(const struct open_socket *sock, int fd)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	if (sock->type == SOCK_DGRAM)
		return libc_calls()->connect(fd, &nobody, sizeof(nobody)) ? -errno : 0;
	return libc_calls()->listen(fd, 0) || libc_calls()->shutdown(fd, SHUT_RD) ? -errno : 0;
}

/* Hold a port, so that the kernel does not choose it again. @return a socket, or -1 */
static int hold(const struct open_socket *sock, const struct stack_address *local)
{
	int fd = libc_calls()->socket(sock->domain, sock->type | SOCK_CLOEXEC, sock->protocol);

	if (fd >= 0)
		bind_to(fd, sock->domain, local);
	return fd;
}

int kernel_choose_port(struct open_socket *sock, int fd, const struct sockaddr *address, socklen_t length, kernel_take *take, void *argument)
{
	struct stack_address local;
	int held[CHOICES], count = 0, err;

	for (;;) {
		err = libc_calls()->bind(fd, address, length) ? -errno : kernel_local(fd, &local);
		if (err)
			break;
		err = take(sock, fd, &local, argument);
		if (err != -EADDRINUSE || count == CHOICES || unbind(sock, fd))
			break;
		held[count] = hold(sock, &local);
		if (held[count] < 0)
			break;
		count++;
	}
	while (count--)
		libc_calls()->close(held[count]);
	return err;
}

int kernel_have_port(struct open_socket *sock, int fd, const struct stack_address *address, kernel_take *take, void *argument)
{
	struct sockaddr_storage sockaddr;
	socklen_t length = sizeof(sockaddr);
	struct stack_address local;
	int err = kernel_local(fd, &local);

	if (err || local.port)
		return err ? err : take(sock, fd, &local, argument);
	address_to_sockaddr(sock->domain, address, (struct sockaddr *)&sockaddr, &length);
	return kernel_choose_port(sock, fd, (const struct sockaddr *)&sockaddr, length, take, argument);
}
