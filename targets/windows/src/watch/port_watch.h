/* SPDX-License-Identifier: Apache-2.0 */
/* What all functions that stand in place of the system's use, to write a call down. The program's last error is kept. */
#ifndef BW_WATCH_PORT_WATCH_H
#define BW_WATCH_PORT_WATCH_H

#include <winsock2.h>
#include <ws2tcpip.h>
#include <mswsock.h>
#include <windows.h>

#include <stdbool.h>

#include "functions.h"
#include "port_hooks.h"
#include "port_memory.h"

/**
 * Find bw-accel's memory by the order that whoever started this process has left.
 *
 * @return false: there is no order
 */
bool watch_attach(void);
/** The memory, and who writes it down; after watch_attach(). */
struct watch_memory *watch_memory(void);
DWORD watch_recorder(void);

/** Note when and where a call begins. Socket INVALID_SOCKET: of none. */
void watch_begin(struct watch_event *event, enum watch_function function, SOCKET sock);
/** Note its end and hand it on; -1: the last error says why it failed. */
void watch_end(struct watch_event *event, int64_t result);
/** The same, with an error that the function returned. */
void watch_end_with(struct watch_event *event, int64_t result, DWORD error);
void watch_value(struct watch_event *event, int which, int64_t value);
void watch_timeout_ms(struct watch_event *event, DWORD timeout_ms);
/** Note an address as far as it is readable; NULL: none. */
void watch_address(struct watch_event *event, const struct sockaddr *address, int length);
void watch_text(struct watch_event *event, const char *text);
/** Note what a wait said of a socket; events as of WSAPoll: POLLRDNORM, POLLWRNORM, POLLPRI. */
void watch_ready(struct watch_event *event, SOCKET sock, uint32_t events);
/** Write down something that the record does not show otherwise. */
void watch_note(const char *text);
/** The same, once in a process; `said` belongs to the place. */
void watch_note_once(long *said, const char *text);

/** Number of a socket in the record; one that was not seen before gets the next. */
uint32_t socket_number(SOCKET sock);
/** Tell whether a handle is a socket that was seen. */
bool socket_is_known(HANDLE handle);
void socket_forget(SOCKET sock);

/** An operation that has begun and whose end is told elsewhere. */
struct operation {
	OVERLAPPED *overlapped;
	LPWSAOVERLAPPED_COMPLETION_ROUTINE routine;
	uint64_t number;
	uint32_t socket;
	uint16_t function;
};

/**
 * Note that a call begins an operation; before the call, as it may end at once and elsewhere. NULL: it begins none.
 *
 * @return the routine to hand on in place of the program's
 */
LPWSAOVERLAPPED_COMPLETION_ROUTINE operation_begin(struct watch_event *event, OVERLAPPED *overlapped,
						   LPWSAOVERLAPPED_COMPLETION_ROUTINE routine);
/** End of the call that has begun it: unless it was refused, the operation goes on. result as of watch_end(). */
void operation_begun(struct watch_event *event, OVERLAPPED *overlapped, int64_t result);
/* The error of an operation stands in its OVERLAPPED. */
#define OPERATION_SAYS UINT32_MAX
/** Note that an operation has ended, error 0, Windows' or OPERATION_SAYS; one that is not known is left out, and not read. */
void operation_end(OVERLAPPED *overlapped, int64_t size_bytes, DWORD error);

/* A row of a table: a system library's function, and own_NAME in its place. */
#define HOOK(library, name) { library, #name, (any_function)own_##name }

/* Tables of functions, by the files of that name. */
struct hook_table {
	const struct hook *hooks;
	size_t count;
};
extern const struct hook_table socket_hooks, transfer_hooks, waiting_hooks, extension_hooks;
/** @param children  watch programs that this one starts, too */
struct hook_table process_hooks(bool children);

#endif
