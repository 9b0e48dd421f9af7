/* SPDX-License-Identifier: Apache-2.0 */
/* The ports of the interface that the program has: the service gives them, and gets them back. */
#ifndef BW_ACCEL_PORTS_H
#define BW_ACCEL_PORTS_H

#include <stdint.h>

#include "core/stack.h"

/** Have a port of the interface. @param fd  a socket of the kernel that is bound to `local`. @return 0 or -errno */
int ports_take(int protocol, const struct stack_address *local, int fd);
/** A socket that had the port is closed: it is given back when no connection has it any more, of a listener at once. */
void ports_drop(int protocol, uint16_t port);
/** Give back those that nothing has any more; it looks once in a second. */
void ports_give_back(uint64_t now_us);
/** The process has been forked: they are its parent's. */
void ports_forget(void);

#endif
