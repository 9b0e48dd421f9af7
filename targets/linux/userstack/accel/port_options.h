/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sockets: which of setsockopt(2) the user-mode stack has. Called with the lock; 0 or -errno. */
#ifndef BW_ACCEL_OPTIONS_H
#define BW_ACCEL_OPTIONS_H

#include <sys/socket.h>

struct open_socket;

/** Set an option: of the kernel's socket first, which checks it, and of the user-mode stack if that has the socket. */
int options_set(struct open_socket *sock, int fd, int level, int name, const void *value, socklen_t length);
int options_get(struct open_socket *sock, int fd, int level, int name, void *value, socklen_t *length);
/** Signals when it is ready (O_ASYNC) are asked for: refused by name, or the kernel's stack has the socket. */
int options_set_async(struct open_socket *sock);
/** Hand what was set so far to the user-mode stack. */
void options_copy(struct open_socket *sock, int fd);
/** Set at a connection that was accepted what the program has set at its listener. */
void options_inherit(struct open_socket *sock, int fd, const struct open_socket *listener);

#endif
