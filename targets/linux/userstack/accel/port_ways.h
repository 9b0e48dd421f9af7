/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stack a socket goes by: it is undecided until the program binds it, or names a peer. What the calls that do so make of it.
 * Called with the lock (port_wait.h); 0 or more, or -errno.
 */
#ifndef BW_ACCEL_WAYS_H
#define BW_ACCEL_WAYS_H

#include <sys/socket.h>

struct open_socket;
struct stack_address;

int ways_bind(struct open_socket *sock, int fd, const struct sockaddr *address, socklen_t length);
int ways_shutdown(struct open_socket *sock, int fd, int how);
int ways_listen(struct open_socket *sock, int fd, int backlog);
int ways_connect(struct open_socket *sock, int fd, const struct sockaddr *address, socklen_t length);
/** @return a descriptor; blocks unless the socket does not */
int ways_accept(struct open_socket *sock, int fd, struct sockaddr *address, socklen_t *length, int flags);
/** Which stack a datagram goes by; the socket gets a port if it has none. @return 1: the kernel's, 0: the user-mode stack, or -errno */
int ways_datagram_goes_by_kernel(struct open_socket *sock, int fd, const struct stack_address *to);
/** Give the stack of this process a listener, or a socket of UDP, that was the parent's. @return 0 or -errno */
int ways_enter_again(struct open_socket *sock);

#endif
