/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that children use: each is a local socket of the child's, whose other end is relayed to the stack here (port_children.h).
 *
 * Called with the lock.
 */
#ifndef BW_ACCEL_RELAYS_H
#define BW_ACCEL_RELAYS_H

#include <stdbool.h>
#include <sys/epoll.h>

struct open_socket;

/**
 * Relay a connection to a local socket, the other end of which is a child's.
 *
 * @param child  who may ask for what comes later; NULL: nobody has to
 * @param asks  for what comes; else it stays, for whoever reads, until the child asks
 * @return 0 or -errno
 */
int relays_begin(struct open_socket *sock, const void *child, bool asks, int *child_end);
/** A child has only sent so far, and waits for what comes now. */
void relays_ask(const void *child, const struct open_socket *sock);
/** A child has ended. */
void relays_forget_child(const void *child);
/** What a descriptor that is watched says, if it is of one. */
void relays_hear(const struct epoll_event *event);
/** Hand on what has come, from either end. */
void relays_turn(void);
/** What children have sent goes to the stack, and their connections are closed: the program ends. */
void relays_close_all(void);
/** In a process that was forked: they are its parent's. */
void relays_in_child(void);

#endif
