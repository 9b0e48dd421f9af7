/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets that a fork has in common with its parent. The stack is one process's: the parent keeps it, and hands a child what that
 * uses of it. A connection becomes a local socket of the child's, whose other end the parent relays; connections that come to a
 * listener are given to whichever process waits for them. A child for itself begins with a stack of its own at its first new
 * socket, and takes over the ports of a parent that has ended (a program that goes into the background does so).
 *
 * Called with the lock.
 */
#ifndef BW_ACCEL_CHILDREN_H
#define BW_ACCEL_CHILDREN_H

#include <stdbool.h>
#include <sys/socket.h>

struct open_socket;

/** Around fork(2): in the parent before and after, and in the child. */
void children_before_fork(void);
void children_after_fork(void);
void children_in_child(void);

/** Of a child: get a socket of the parent's (WAY_PARENT). @return 0: it is usable now, by whichever way; or -errno */
int children_take(struct open_socket *sock);
/**
 * Of a child: accept a connection that the parent hands out (WAY_HANDED).
 *
 * @return a descriptor; -ESTALE: the parent has ended, and the socket is this process's own now; or -errno
 */
int children_accept(struct open_socket *sock, int fd, struct sockaddr *address, socklen_t *length, int flags);

/** Of a parent: descriptor that says by poll(2) that children_turn() has something to do; -1: none. */
int children_fd(void);
void children_turn(void);
/** What a socket of the stack can do has changed. */
void children_socket_changed(struct open_socket *sock);

#endif
