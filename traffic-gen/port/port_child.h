/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: a program that is started, fed on its stdin and perhaps read on its stdout, without ever waiting for it. Linux alone. */
#ifndef BW_PORT_CHILD_H
#define BW_PORT_CHILD_H

#include <stdbool.h>

#include "port/port.h"

struct port_child {
	int64_t pid;         /* 0: not started */
	port_socket in, out; /* to its stdin, from its stdout; for port_send and port_recv; the caller closes them */
};

/**
 * Start a program in a group of processes of its own; its stderr is this one's.
 *
 * @param is_read  whether out is to read its stdout; else that is this one's stderr, and out PORT_SOCKET_NONE
 * @return 0; where it is not, in and out are PORT_SOCKET_NONE: -ENOTSUP: this system cannot; or -errno, -ENOENT: there is no such program
 */
int port_child_start(struct port_child *child, char *const *argv, bool is_read);
/** Whether it has ended. @param exit_code  receives that, or -signal; of one that has ended it may be asked once */
bool port_child_has_ended(struct port_child *child, int *exit_code);
/** End it and its group, whatever they do; harmless when it has ended. */
void port_child_end(struct port_child *child);

#endif
