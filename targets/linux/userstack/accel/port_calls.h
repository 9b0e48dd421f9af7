/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls that the library stands in for have in common. */
#ifndef BW_ACCEL_CALLS_H
#define BW_ACCEL_CALLS_H

#include <limits.h>
#include <stdint.h>
#include <sys/socket.h>

#include "port_libc.h"

enum { CALLS_NOT_OURS = INT_MIN };

/** Return as calls do: -1 with errno for -errno. */
int64_t calls_done(int64_t result);

/** Receive by the stack. @return bytes, -errno, or CALLS_NOT_OURS: the kernel has the socket */
int64_t calls_receive(int fd, struct msghdr *message, int flags);

#if __SIZEOF_LONG__ == 4
/** What of a time has room in 32 bits: 68 years of waiting at most, and what is negative stays so. @return narrowed, or NULL for NULL */
struct timespec *calls_narrow(const struct time64 *time, struct timespec *narrowed);

/* The calls with time of 64 bits, of which the C library's headers tell only programs that are compiled for it. */
ssize_t __recvmsg64(int fd, struct msghdr *message, int flags);
int __recvmmsg64(int fd, struct mmsghdr *messages, unsigned int count, int flags, struct time64 *timeout);
int __ppoll64(struct pollfd *fds, nfds_t count, const struct time64 *timeout, const sigset_t *mask);
int __ppoll64_chk(struct pollfd *fds, nfds_t count, const struct time64 *timeout, const sigset_t *mask, size_t room);
int __pselect64(int count, fd_set *in, fd_set *out, fd_set *except, const struct time64 *timeout, const sigset_t *mask);
int __select64(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval64 *timeout);
int __epoll_pwait2_time64(int epoll_fd, struct epoll_event *events, int capacity, const struct time64 *timeout, const sigset_t *mask);
#endif

#endif
