/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: Winsock's error numbers as -errno. */
#ifndef BW_PORT_WIN32_SOCKET_ERRNO_H
#define BW_PORT_WIN32_SOCKET_ERRNO_H

/** Return a number of WSAGetLastError(), or of SO_ERROR, as -errno; -EIO: any other. */
int winsock_errno_of(int code);

/** Return why the last call of Winsock failed, as -errno. */
int winsock_last_errno(void);

#endif
