/* SPDX-License-Identifier: Apache-2.0 */
/* poll(2) and select(2) over descriptors of both stacks. Called with the lock; a number, or -errno. */
#ifndef BW_ACCEL_POLL_H
#define BW_ACCEL_POLL_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/select.h>

/** Whether any of the descriptors concerns the user-mode stack: else the C library's call will do. Asked without the lock. */
bool poll_concerns_stack(const struct pollfd *fds, nfds_t count);
bool select_concerns_stack(int count, const fd_set *in, const fd_set *out, const fd_set *except);

/** @param until_us  as struct wait has it */
int poll_wait(struct pollfd *fds, nfds_t count, uint64_t until_us, const sigset_t *mask);
int select_wait(int count, fd_set *in, fd_set *out, fd_set *except, uint64_t until_us, const sigset_t *mask);

#endif
