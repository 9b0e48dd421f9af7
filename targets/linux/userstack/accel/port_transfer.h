/* SPDX-License-Identifier: Apache-2.0 */
/* Sending and receiving by sockets that the user-mode stack has. Called with the lock; bytes, or -errno. */
#ifndef BW_ACCEL_TRANSFER_H
#define BW_ACCEL_TRANSFER_H

#include <stdint.h>
#include <sys/socket.h>

struct open_socket;

/**
 * Send a message as sendmsg(2) of a socket of OWNER_STACK; a datagram that leads elsewhere goes by the kernel.
 *
 * @return bytes; -EPIPE without a signal: the caller sends it
 */
int64_t transfer_send(struct open_socket *sock, int fd, const struct msghdr *message, int flags);
/** Receive a message as recvmsg(2). msg_namelen, msg_controllen and msg_flags are set. */
int64_t transfer_receive(struct open_socket *sock, int fd, struct msghdr *message, int flags);

#endif
