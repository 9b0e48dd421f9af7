/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: no program is fed there. */
#include "port/port_child.h"

#include <errno.h>

int port_child_start(struct port_child *child, char *const *argv, bool is_read)
{
	(void)is_read;
	(void)argv;
	*child = (struct port_child){ .in = PORT_SOCKET_NONE, .out = PORT_SOCKET_NONE };
	return -ENOTSUP;
}

bool port_child_has_ended(struct port_child *child, int *exit_code)
{
	(void)child;
	(void)exit_code;
	return false;
}

void port_child_end(struct port_child *child)
{
	(void)child;
}
