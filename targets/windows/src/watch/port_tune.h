/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bw-accel --set has a program's sockets, threads and process get. Each is read back where Windows lets it be, and is a line of
 * the record. The program's last error is kept.
 */
#ifndef BW_WATCH_PORT_TUNE_H
#define BW_WATCH_PORT_TUNE_H

#include <winsock2.h>
#include <windows.h>

#include <stdbool.h>
#include <stdint.h>

/** What the process gets as a whole; once, after watch_attach(). */
void tune_process(void);
/** A socket that was just made, or accepted. */
void tune_socket(SOCKET sock);
/** A socket that has a connection now: what it could not get before. */
void tune_connected(SOCKET sock);
/** The thread that calls, which moves data; once each. */
void tune_thread(void);
/**
 * Tell whether an option that the program sets by itself stays as bw-accel has set it.
 *
 * @return true: the call is not to be made
 */
bool tune_holds(SOCKET sock, int level, int option, const char *value, int length);

/** A wait that asks again and again before it sleeps. */
struct poll {
	uint64_t begin_ticks, until_ticks, tick_hz;
};

/** @return false: nobody asked for it, or the call does not wait at all: it is to be made as it is */
bool poll_begin(struct poll *poll, bool waits);
/** @return false: it has been asked for long enough: sleep */
bool poll_goes_on(const struct poll *poll);
/** What is left of a wait, INFINITE of one without an end; and of one in µs. */
DWORD poll_rest_ms(const struct poll *poll, DWORD timeout_ms);
int64_t poll_rest_us(const struct poll *poll, int64_t timeout_us);
/** An event that tells of a socket, for which a wait asks again and again; and one that is closed. */
void poll_note_event(HANDLE event);
void poll_forget_event(HANDLE event);
bool poll_is_for_sockets(DWORD count, const HANDLE *objects);
/** Before a call that blocks until data have come: ask for them. Not where a socket of the process may be one that does not block. */
void poll_readable(SOCKET sock);
/** From now on none is taken for one that blocks. */
void poll_no_more_readable(void);

#endif
