/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: nothing is known of a connection there. */
#include "port/port_connection.h"

#include <errno.h>

int port_connection_read(port_socket sock, struct port_connection *found)
{
	(void)sock;
	(void)found;
	return -ENOTSUP;
}

int port_congestion_set(port_socket sock, const char *name)
{
	(void)sock;
	(void)name;
	return -ENOTSUP;
}

int port_congestion_read(port_socket sock, char *name)
{
	(void)sock;
	(void)name;
	return -ENOTSUP;
}

int port_segment_set(port_socket sock, int bytes)
{
	(void)sock;
	(void)bytes;
	return -ENOTSUP;
}
