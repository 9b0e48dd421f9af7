/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that go to other processes with a message of a local socket (SCM_RIGHTS). */
#ifndef BW_ACCEL_PASSING_H
#define BW_ACCEL_PASSING_H

#include <stdbool.h>
#include <sys/socket.h>

/**
 * Whether a message would hand on a socket that the user-mode stack has: who gets it would have the kernel's socket behind it, which
 * is not connected. The first one is named on standard error.
 */
bool passing_takes_ours(const struct msghdr *message);

#endif
