/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets that a fork has in common with its parent, as the child has them (the parent's side: port_children.h). For itself a child
 * begins with a stack of its own at its first new socket, and takes over the ports of a parent that has ended (a program that goes
 * into the background does so).
 *
 * Called with the lock.
 */
#ifndef BW_ACCEL_PARENT_H
#define BW_ACCEL_PARENT_H

#include <stdbool.h>
#include <sys/socket.h>

struct open_socket;

/** Around fork(2), in the process that forks: the new one can ask those that this one can. */
void parent_before_fork(void);
void parent_after_fork(void);
/** In the child, after fork(2). @param channel to its parent; -1: that has no stack */
void parent_left(int channel);
/**
 * Get a socket of the parent's (OWNER_PARENT): it is usable then, by whichever way.
 *
 * @param asks  for what comes; else it stays with the parent, for whoever reads, until this process asks
 */
void parent_use(struct open_socket *sock, bool asks);
/** The last descriptor of a socket is closed here: the parent need not have it open for this process any more. */
void parent_leave(const struct open_socket *sock);
/**
 * The process will allow itself few system calls: its parent's connections are fetched now.
 *
 * @return whether nothing is left that has to be asked for
 */
bool parent_before_filter(void);
/**
 * Accept a connection that the parent hands out (OWNER_HANDED).
 *
 * @return a descriptor; -ESTALE: the parent has ended, and the socket is this process's own now; or -errno
 */
int parent_accept(struct open_socket *sock, int fd, struct sockaddr *address, socklen_t *length, int flags);

#endif
