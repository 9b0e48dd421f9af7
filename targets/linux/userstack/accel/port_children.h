/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets that a fork has in common with its parent. The stack is one process's: the parent keeps it, and hands a child what that
 * uses of it. A connection becomes a local socket of the child's, whose other end the parent relays; connections that come to a
 * listener are given to whichever process waits for them. This is the parent's side; that of a child: port_parent.h.
 *
 * Called with the lock.
 */
#ifndef BW_ACCEL_CHILDREN_H
#define BW_ACCEL_CHILDREN_H

#include <stdint.h>

struct open_socket;

/** Around fork(2): in the parent before and after, and in the child. */
void children_before_fork(void);
void children_after_fork(void);
void children_in_child(void);

/** Descriptor that says by poll(2) that children_turn() has something to do; -1: none. */
int children_fd(void);
void children_turn(void);
/** Watch a descriptor for children_turn(); it is closed with its end. @return 0 or -errno */
int children_watch(int fd, uint32_t events);
void children_end_watched(int fd);
/** What a socket of the stack can do has changed. */
void children_socket_changed(struct open_socket *sock);

#endif
