/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service of this machine: programs connect to it by a local socket that keeps messages (SOCK_SEQPACKET), and are given
 * descriptors in answers. Everything is waited for by one epoll.
 */
#ifndef BW_PORT_LOCAL_SOCKET_H
#define BW_PORT_LOCAL_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { LOCAL_DESCRIPTORS_MAX = 2 };

/** Connect to a service. @return a descriptor, -ENAMETOOLONG, or another -errno */
int local_connect(const char *path);

/* Where programs connect. Both descriptors are watched as `socket`. */
struct local_listener {
	int epoll, socket;
	int timer;      /* for who could not be let in */
	int said_error; /* why nobody could, the last time; 0: somebody could */
};

/**
 * Make the socket of a service, and wait for who connects. One that a killed service has left is replaced; of one that lives the
 * bind fails.
 *
 * @param group whose members may connect, -1: only the own user
 * @return 0 or -errno; it stays open as long as the service runs
 */
int local_listen(struct local_listener *listener, int epoll, const char *path, int64_t group);

/**
 * Accept a connection, and tell who it is. Where none can be accepted it rests for a tenth of a second: who waits stays in the
 * socket's queue, which would keep the service awake.
 *
 * @return a descriptor that does not block; -EAGAIN; another -errno, once: nobody can be let in for now
 */
int local_accept(struct local_listener *listener, struct ucred *who);

/** Have as many descriptors as are allowed: every client is one, and what it is given. @return how many; 0: that cannot be said */
uint64_t local_allow_descriptors(void);

/** Have SIGTERM and SIGINT, which are blocked from then on, by a descriptor; SIGPIPE is ignored. @return that, or -errno */
int local_end_signals(void);

/** Wait for a descriptor to be read, too. @return 0 or -errno */
int local_watch(int epoll, int descriptor);

/**
 * Send one message in two parts.
 *
 * @param descriptors up to LOCAL_DESCRIPTORS_MAX that go with it
 * @param text        the second part, of 0 bytes: none
 * @return 0 or -errno
 */
int local_answer(int connection, const void *about, size_t about_bytes, const int *descriptors, size_t descriptor_count,
		 const char *text, size_t text_bytes);

#endif
