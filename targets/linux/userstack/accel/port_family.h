/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that was forked and its parent say to each other: a request of the child's, an answer with a descriptor. */
#ifndef BW_ACCEL_FAMILY_H
#define BW_ACCEL_FAMILY_H

#include <stdbool.h>
#include <sys/socket.h>

#include "stack.h"

enum family_verb {
	FAMILY_TAKE,         /* use a socket; of a connection what comes goes to the child */
	FAMILY_TAKE_TO_SEND, /* the same, but what comes stays with the parent */
	FAMILY_ASK,          /* let what comes on a connection that was only sent on go to the child; there is no answer */
	FAMILY_ACCEPT,       /* a connection of a listener that the child uses; -EAGAIN: none waits */
	FAMILY_LEAVE,        /* the child has closed a socket that it could still ask for; there is no answer */
	FAMILY_CLONE,        /* a channel for a process that the child forks, which knows the same sockets */
};

struct family_request {
	enum family_verb verb;
	int fd; /* by which both knew the socket when they parted */
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
