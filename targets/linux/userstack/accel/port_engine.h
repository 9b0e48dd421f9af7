/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes the stack of the program go: the service it asks, the packets it takes and gives, its time. All of it is called with
 * the lock of port_wait.h.
 */
#ifndef BW_ACCEL_ENGINE_H
#define BW_ACCEL_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/stack.h"

/** Connect to the service and begin, unless that is done. @return 0 or -errno (-ENETDOWN: the service is gone) */
int engine_begin(void);
/** Whether it has begun, in this process, and the service lives. */
bool engine_runs(void);
/** Whether the service has gone: nothing of the stack works any more. */
bool engine_is_gone(void);

uint64_t engine_now_us(void);
uint64_t engine_realtime_ns(void);
/** From now on each frame is stamped when it is taken out of the ring. */
void engine_stamp_frames(void);
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

/** Have a port of the interface. @param fd  a socket of the kernel that is bound to `local`. @return 0 or -errno */
int engine_take_port(int protocol, const struct stack_address *local, int fd);
/** A socket that had the port is closed: it is given back when no connection has it any more. */
void engine_drop_port(int protocol, uint16_t port);
/** How to reach an address. @return 0, or -errno as STACKD_RESOLVE (-EREMOTE: the kernel's own stack takes it) */
int engine_route(const struct stack_address *to, struct stack_address *source);
/** Whether the interface has the address. */
bool engine_has_address(const struct stack_address *address);
/** The interface's number, 0 before the beginning. */
uint32_t engine_interface_index(void);
/** How long a thread that waits looks for packets by itself before it sleeps. */
uint64_t engine_busy_poll_us(void);

/** Hears where what a socket can do has changed. Set once, before anything begins. */
extern void (*engine_socket_changed)(struct stack_socket *sock);
/** Say a line on standard error, behind the program's name. */
void engine_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Let what closed sockets have sent arrive, for some seconds at most: the program ends. */
void engine_finish(void);
/** The process has been forked: the stack is its parent's. This one begins with one of its own at its first new socket. */
void engine_forked(void);
/** Move a descriptor out of the way of the program's. @return it, or -1 */
int engine_private(int fd);
void engine_close_private(int fd);
/** Whether a descriptor is this library's: programs that close all descriptors may not close it. */
bool engine_owns(int fd);
/** @return the next of these behind `fd`, or -1; -1 begins */
int engine_next_private(int fd);

#endif
