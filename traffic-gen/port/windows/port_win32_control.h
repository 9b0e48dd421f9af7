/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages and stamps of Winsock as bytes and numbers, without a call of the system: tested everywhere. As Microsoft documents
 * them under "Winsock timestamping", of 64 bit programs: a header of length (8 bytes, header and data), level and type (4 each), then
 * the data; the next header at a multiple of 8.
 */
#ifndef BW_PORT_WIN32_CONTROL_H
#define BW_PORT_WIN32_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CONTROL_HEADER_BYTES = 16,
	CONTROL_ID_BYTES = 24,           /* a message of one ID, padded */
	CONTROL_SOL_SOCKET = 0xffff,
	CONTROL_SO_TIMESTAMP = 0x300a,   /* received: the stamp, 64 bits */
	CONTROL_SO_TIMESTAMP_ID = 0x300b /* to be sent: the number by which its stamp is asked for, 32 bits */
};

/** Write the message that numbers a datagram. */
void control_put_id(uint8_t control[CONTROL_ID_BYTES], uint32_t id);

/**
 * Find the stamp among the control messages of a datagram.
 *
 * @return false: there is none, or what is there is damaged
 */
bool control_find_stamp(const uint8_t *control, size_t size_bytes, uint64_t *ticks);

/** Performance counter to the ns of PORT_CLOCK_MONOTONIC; 0: no such time, as of a stamp of a network card's own clock. */
int64_t control_monotonic_ns(uint64_t ticks, uint64_t ticks_per_s);

#endif
