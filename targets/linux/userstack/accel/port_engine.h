/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes the stack of the program go: the service it asks, and its turns. All of it is called with the lock of port_wait.h.
 */
#ifndef BW_ACCEL_ENGINE_H
#define BW_ACCEL_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/stack.h"

struct stackd_answer;
struct stackd_request;

/** Connect to the service and begin, unless that is done. @return 0 or -errno (-ENETDOWN: the service is gone) */
int engine_begin(void);
/** Whether it has begun, in this process, and the service lives. */
bool engine_runs(void);
/** Whether the service has gone: nothing of the stack works any more. */
bool engine_is_gone(void);

/** Tell the stack the time: timers that are due run. */
void engine_advance(void);
/**
 * The same, and take in packets that are there, for a tenth of a millisecond at most: bulk for one thread is not to hold up a message
 * for another, or for this one.
 *
 * @return whether more wait
 */
bool engine_turn(void);
/** Send the packets that were made. */
void engine_flush(void);
/** Hear what the service says. */
void engine_hear_service(void);
/** When a timer is due next, or what could not be sent is tried again, as of the last engine_flush(); UINT64_MAX: never. */
uint64_t engine_next_us(void);
/** Descriptors that say by poll(2) that engine_turn(), or engine_hear_service(), has something to do; -1: none. */
int engine_packets_fd(void);
int engine_service_fd(void);

/** Ask the service, and wait for the answer, as stackd_ask(). @return 0, or -ENETDOWN: it is gone */
int engine_ask(struct stackd_request *request, int descriptor, struct stackd_answer *answer);
/** Ask it, without waiting, as stackd_tell(). */
void engine_tell(struct stackd_request *request);
/** How to reach an address. @return 0, or -errno as STACKD_RESOLVE (-EREMOTE: the kernel's own stack takes it) */
int engine_route(const struct stack_address *to, struct stack_address *source);
/** How long a thread that waits looks for packets by itself before it sleeps. */
uint64_t engine_busy_poll_us(void);

/** Hears where what a socket can do has changed. Set once, before anything begins. */
extern void (*engine_socket_changed)(struct stack_socket *sock);

/** Let what closed sockets have sent arrive, for some seconds at most: the program ends. */
void engine_finish(void);
/** The process has been forked: the stack is its parent's. This one begins with one of its own at its first new socket. */
void engine_forked(void);

#endif
