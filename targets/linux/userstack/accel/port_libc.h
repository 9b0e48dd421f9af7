/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's own calls, behind those that this library stands in for. */
#ifndef BW_ACCEL_LIBC_H
#define BW_ACCEL_LIBC_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

/* Each call that is looked up: name, result, parameters. */
#define LIBC_CALLS(CALL) \
	CALL(socket, int, (int domain, int type, int protocol)) \
	CALL(bind, int, (int fd, const struct sockaddr *address, socklen_t length)) \
	CALL(listen, int, (int fd, int backlog)) \
	CALL(accept4, int, (int fd, struct sockaddr *address, socklen_t *length, int flags)) \
	CALL(connect, int, (int fd, const struct sockaddr *address, socklen_t length)) \
	CALL(shutdown, int, (int fd, int how)) \
	CALL(close, int, (int fd)) \
	CALL(getsockname, int, (int fd, struct sockaddr *address, socklen_t *length)) \
	CALL(getpeername, int, (int fd, struct sockaddr *address, socklen_t *length)) \
	CALL(getsockopt, int, (int fd, int level, int name, void *value, socklen_t *length)) \
	CALL(setsockopt, int, (int fd, int level, int name, const void *value, socklen_t length)) \
	CALL(send, ssize_t, (int fd, const void *data, size_t size, int flags)) \
	CALL(sendto, ssize_t, (int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length)) \
	CALL(sendmsg, ssize_t, (int fd, const struct msghdr *message, int flags)) \
	CALL(sendmmsg, int, (int fd, struct mmsghdr *messages, unsigned int count, int flags)) \
	CALL(sendfile, ssize_t, (int to, int from, off_t *offset, size_t size)) \
	CALL(sendfile64, ssize_t, (int to, int from, off64_t *offset, size_t size)) \
	CALL(write, ssize_t, (int fd, const void *data, size_t size)) \
	CALL(writev, ssize_t, (int fd, const struct iovec *parts, int count)) \
	CALL(recv, ssize_t, (int fd, void *data, size_t size, int flags)) \
	CALL(recvfrom, ssize_t, (int fd, void *data, size_t size, int flags, struct sockaddr *from, socklen_t *length)) \
	CALL(recvmsg, ssize_t, (int fd, struct msghdr *message, int flags)) \
	CALL(recvmmsg, int, (int fd, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout)) \
	CALL(read, ssize_t, (int fd, void *data, size_t size)) \
	CALL(readv, ssize_t, (int fd, const struct iovec *parts, int count)) \
	CALL(splice, ssize_t, (int from, off64_t *from_at, int to, off64_t *to_at, size_t size, unsigned int flags)) \
	CALL(pread64, ssize_t, (int fd, void *data, size_t size, off64_t offset)) \
	CALL(lseek64, off64_t, (int fd, off64_t offset, int whence)) \
	CALL(ppoll, int, (struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)) \
	CALL(pselect, int, (int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask)) \
	CALL(select, int, (int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)) \
	CALL(epoll_create1, int, (int flags)) \
	CALL(epoll_ctl, int, (int epoll, int operation, int fd, struct epoll_event *event)) \
	CALL(epoll_wait, int, (int epoll, struct epoll_event *events, int count, int timeout_ms)) \
	CALL(epoll_pwait, int, (int epoll, struct epoll_event *events, int count, int timeout_ms, const sigset_t *mask)) \
	CALL(epoll_pwait2, int, (int epoll, struct epoll_event *events, int count, const struct timespec *timeout, const sigset_t *mask)) \
	CALL(close_range, int, (unsigned int first, unsigned int last, int flags)) \
	CALL(dup, int, (int fd)) \
	CALL(dup2, int, (int fd, int to)) \
	CALL(dup3, int, (int fd, int to, int flags)) \
	CALL(fcntl, int, (int fd, int command, ...)) \
	CALL(fcntl64, int, (int fd, int command, ...)) \
	CALL(ioctl, int, (int fd, unsigned long request, ...)) \
	CALL(syscall, long, (long number, ...)) \
	CALL(prctl, int, (int option, ...)) \
	CALL(sigaction, int, (int number, const struct sigaction *action, struct sigaction *before)) \
	CALL(signal, sighandler_t, (int number, sighandler_t handler)) \
	CALL(sysv_signal, sighandler_t, (int number, sighandler_t handler)) \
	CALL(sigset, sighandler_t, (int number, sighandler_t handler)) \
	CALL(siginterrupt, int, (int number, int interrupts)) \
	CALL(_exit, void, (int code))

/* The time of select(2) with 64 bits, on every machine. */
struct timeval64 {
	int64_t seconds, microseconds;
};

#if __SIZEOF_LONG__ == 4
/* Time of 64 bits where the C library's first one has 32 (ARM): programs with _TIME_BITS=64 call these. */
struct time64 {
	int64_t seconds;
	int32_t nanoseconds, padding; /* of little-endian machines */
};

#define LIBC_CALLS_TIME64(CALL) \
	CALL(__recvmsg64, ssize_t, (int fd, struct msghdr *message, int flags)) \
	CALL(__recvmmsg64, int, (int fd, struct mmsghdr *messages, unsigned int count, int flags, struct time64 *timeout)) \
	CALL(__ppoll64, int, (struct pollfd *fds, nfds_t count, const struct time64 *timeout, const sigset_t *mask)) \
	CALL(__pselect64, int, (int count, fd_set *in, fd_set *out, fd_set *except, const struct time64 *timeout, const sigset_t *mask)) \
	CALL(__select64, int, (int count, fd_set *in, fd_set *out, fd_set *except, struct timeval64 *timeout)) \
	CALL(__epoll_pwait2_time64, int, (int epoll, struct epoll_event *events, int count, const struct time64 *timeout, const sigset_t *mask))
#else
#define LIBC_CALLS_TIME64(CALL)
#endif

struct libc {
#define LIBC_MEMBER(name, result, parameters) __typeof__(result parameters) *(name);
	LIBC_CALLS(LIBC_MEMBER)
	LIBC_CALLS_TIME64(LIBC_MEMBER)
#undef LIBC_MEMBER
};

/** The calls; looked up at the first use, which may come before any constructor. */
const struct libc *libc_calls(void);

#endif
