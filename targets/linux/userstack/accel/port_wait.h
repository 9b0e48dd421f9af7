/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of the stack, and who waits for it.
 *
 * There is no thread between the card and the program: a thread that waits for a socket waits for packets itself and handles what
 * came (it drives), and wakes others whose wait is over by that. While no thread of the program waits, the helper drives, so that
 * timers and acknowledgements go on: it looks once a millisecond while threads come and go, so as not to meet them at the lock for
 * each packet, and sleeps for packets and timers once none has come back, or at all while there is one that drives.
 */
#ifndef BW_ACCEL_WAIT_H
#define BW_ACCEL_WAIT_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/** Lock the stack, and all that this library knows. No signal handler runs until the unlock: it might want the lock, too. */
void wait_lock(void);
/** Unlock. Packets that were made are sent, and threads woken whose wait is over. */
void wait_unlock(void);

/** What a socket can do has changed. */
void wait_changed(void);

struct wait {
	bool (*done)(void *argument); /* called with the lock, by whichever thread */
	void (*abandon)(void *argument); /* called with the lock if the thread is cancelled meanwhile: it does not come back. NULL: nothing */
	void *argument;
	struct pollfd *fds;   /* of the kernel */
	nfds_t count;
	uint64_t until_us;    /* of clocks_now_us(); UINT64_MAX: without end */
	const sigset_t *mask; /* of signals while it sleeps; NULL: the thread's */
	bool restarts;        /* it goes on after handlers with SA_RESTART: signal(7) has the calls that do */
};

/**
 * Wait. Called with the lock, which others get meanwhile.
 *
 * @return 0: done() says so; a number: so many of `fds` have something; -ETIMEDOUT, -EINTR, -ENOMEM
 */
int wait_until(const struct wait *wait);

/** Start the helper. @return 0 or -errno */
int wait_begin_helper(void);

#endif
