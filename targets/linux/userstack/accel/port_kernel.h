/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's socket behind a descriptor, and the port that it holds: one that the kernel chooses may be another program's by the
 * stack, or that of a connection there. Called with the lock (port_wait.h); 0 or more, or -errno.
 */
#ifndef BW_ACCEL_KERNEL_H
#define BW_ACCEL_KERNEL_H

#include <sys/socket.h>

#include "core/stack.h"

struct open_socket;

/** What it is bound to; port 0: to none. */
int kernel_local(int fd, struct stack_address *local);
/** It listens no more, and its port stays. */
int kernel_end_listening(int fd, int domain, int how);

/** Takes by the stack what the kernel's socket is bound to. @return 0 or more, or -errno (-EADDRINUSE: the port is somebody's) */
typedef int kernel_take(struct open_socket *sock, int fd, const struct stack_address *local, void *argument);
/**
 * Bind to a port that the kernel chooses, and take it; as long as it is somebody's, another one, which the kernel has not chosen yet.
 *
 * @param address  without a port, as bind(2) has it
 */
int kernel_choose_port(struct open_socket *sock, int fd, const struct sockaddr *address, socklen_t length, kernel_take *take, void *argument);
/** Take the port that it has, or one at this address that the kernel chooses. */
int kernel_have_port(struct open_socket *sock, int fd, const struct stack_address *address, kernel_take *take, void *argument);

#endif
