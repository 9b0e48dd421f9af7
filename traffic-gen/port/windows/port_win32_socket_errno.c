/* SPDX-License-Identifier: Apache-2.0 */
#include "port/windows/port_win32_socket_errno.h"

#include <winsock2.h>

#include <errno.h>

int winsock_errno_of(int code)
{
	switch (code) {
	case WSAEWOULDBLOCK:
		return -EAGAIN;
	case WSAEINPROGRESS:
		return -EINPROGRESS;
	case WSAECONNREFUSED:
		return -ECONNREFUSED;
	case WSAECONNRESET:
		return -ECONNRESET;
	case WSAECONNABORTED:
		return -ECONNABORTED;
	case WSAENOTCONN:
		return -ENOTCONN;
	case WSAESHUTDOWN:
		return -EPIPE;
	case WSAETIMEDOUT:
		return -ETIMEDOUT;
	case WSAEADDRINUSE:
		return -EADDRINUSE;
	case WSAEADDRNOTAVAIL:
		return -EADDRNOTAVAIL;
	case WSAEHOSTUNREACH:
		return -EHOSTUNREACH;
	case WSAENETUNREACH:
		return -ENETUNREACH;
	case WSAEACCES:
		return -EACCES;
	case WSAEMSGSIZE:
		return -EMSGSIZE;
	case WSAENOBUFS:
		return -ENOBUFS;
	case WSAEINTR:
		return -EINTR;
	default:
		return -EIO;
	}
}

int winsock_last_errno(void)
{
	return winsock_errno_of(WSAGetLastError());
}
