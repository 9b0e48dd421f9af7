/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages: what a program is told beside the data that it receives, and which address it wants a datagram to leave from.
 * Called with the lock.
 */
#ifndef BW_ACCEL_CONTROL_H
#define BW_ACCEL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/stack.h"

struct open_socket;

/** Whether an option asks for control messages that the user-mode stack has, with this value. */
bool control_has(const struct open_socket *sock, int level, int name, int value);
/** Note what control_has() knows; another option is none of it. */
void control_set(struct open_socket *sock, int level, int name, int value);
/** A connection that was accepted tells what its listener was to tell. */
void control_inherit(struct open_socket *sock, int fd, const struct open_socket *listener);

/** Tell of what was received last: msg_control, msg_controllen and msg_flags are set. */
void control_write(const struct open_socket *sock, struct msghdr *message);

/* How a datagram is to leave. */
struct control_way {
	struct stack_address from; /* its family is 0: as the routes say */
	uint32_t interface_index;  /* 0: as the routes say */
};

/** Read what is sent beside a datagram. @return 0, -EINVAL (malformed) or -EOPNOTSUPP (it asks for more than that, which is said) */
int control_read(const struct open_socket *sock, const struct msghdr *message, struct control_way *way);

#endif
