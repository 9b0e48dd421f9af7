/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: threads that share what they work on, and wake each other. Functions return 0 or -errno. */
#ifndef BW_PORT_SYNC_H
#define BW_PORT_SYNC_H

#include <stdint.h>

/* What one thread at a time may hold; opaque. Whoever waits for it lends its priority where the system can (Linux). */
struct port_lock;

int port_lock_create(struct port_lock **lock_out);
void port_lock_destroy(struct port_lock *lock); /* NULL is allowed */
void port_lock_take(struct port_lock *lock);
void port_lock_give(struct port_lock *lock);

/* A count that threads add to, and one waits for; opaque. */
struct port_bell;

int port_bell_create(struct port_bell **bell_out);
void port_bell_destroy(struct port_bell *bell); /* NULL is allowed */
void port_bell_ring(struct port_bell *bell);
/** Wait until it was rung once more than it was waited for. @return 0, -ETIMEDOUT, or -EINTR */
int port_bell_wait(struct port_bell *bell, int64_t timeout_ns);

#endif
