/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calls of the C library that this library stands in for have in common. Each asks whether a descriptor is one of a socket
 * here; if not, the C library's own does what it always did. They are in port_calls_*.c, by what they are for.
 */
#ifndef BW_ACCEL_CALLS_H
#define BW_ACCEL_CALLS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/socket.h>

#include "port_libc.h"

#define EXPORT __attribute__((visibility("default")))

/* What the variants that check buffers do: more bytes than there is room for. */
#define CALLS_CHECK(size, room) \
	if ((size) > (room)) \
		abort()

struct open_socket;

enum { CALLS_NOT_OURS = INT_MIN };

/** Return as calls do: -1 with errno for -errno. */
int64_t calls_done(int64_t result);
/** The same, and unlock. */
int64_t calls_unlock(int64_t result);

/** @return the socket of a descriptor, with the lock; or NULL without it: it is none of ours */
struct open_socket *calls_enter_as_it_is(int fd);
/**
 * The same to use it: what was the parent's is fetched first. What cannot be had is a socket of the kernel without a connection.
 */
struct open_socket *calls_enter(int fd);
/** The same to send, or to say that nothing more will be sent: what a connection of the parent's receives is not asked for. */
struct open_socket *calls_enter_to_send(int fd);
/** As calls_enter() of one that the user-mode stack has: others are the kernel's. */
struct open_socket *calls_enter_stack(int fd);
/** As calls_enter_to_send() of one that it has. */
struct open_socket *calls_enter_stack_to_send(int fd);

/** @return whether the user-mode stack has the socket, for calls that are made of others */
bool calls_use_stack(int fd);

/** @return the instant at which a timeout is over, as struct wait has it; UINT64_MAX: never, 0: it is over */
uint64_t calls_until_us(const struct timespec *timeout);
/** @return whether a timeout is a time, or NULL */
bool calls_time_fits(const struct timespec *timeout);
/** @return what is left until then */
uint64_t calls_left_us(uint64_t end_us);

/** A system call that sets a filter for those to come: it is prepared for; of others nothing. */
void calls_prepare_filter(long number, const long *words);

/** Receive by the stack. @return bytes, -errno, or CALLS_NOT_OURS: the kernel has the socket */
int64_t calls_receive(int fd, struct msghdr *message, int flags);

/** Wait for sockets of which the stack has some. @param[in,out] timeout  what is left of it then; NULL: without end @return as select(2) does */
int calls_select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval64 *timeout);

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
