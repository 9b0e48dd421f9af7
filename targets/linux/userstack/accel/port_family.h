/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that was forked and its parent say to each other: a request of the child's, an answer with a descriptor. */
#ifndef BW_ACCEL_FAMILY_H
#define BW_ACCEL_FAMILY_H

#include <stdbool.h>
#include <sys/socket.h>

#include "stack.h"

struct family_request {
	int fd;        /* by which both knew the socket when they parted */
	bool asks;     /* for what comes on the connection; else it stays with the parent */
	bool is_taken; /* the child has it already, and only asks: there is no answer */
};

struct family_answer {
	int result; /* 0, or -errno */
	bool listens, by_kernel; /* by_kernel: the connection is the kernel's own */
	struct stack_address local, peer;
};

/** Connect two local sockets; the first is out of the program's reach. @return 0 or -errno */
int family_pair(int type, int pair[2]);
/** @param descriptor goes with it; -1: none. @return 0 or -errno */
int family_send(int channel, const struct family_answer *answer, int descriptor);
/** @param[out] descriptor what came with it, or -1. @return 0; -EPIPE: the parent has ended; or -errno */
int family_receive(int channel, struct family_answer *answer, int *descriptor, int flags);

#endif
