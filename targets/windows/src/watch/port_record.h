/* SPDX-License-Identifier: Apache-2.0 */
/* The record's file. Where it cannot be written any more it ends with a whole line, and its first line says so. */
#ifndef BW_WATCH_PORT_RECORD_H
#define BW_WATCH_PORT_RECORD_H

#include <windows.h>

#include <stdbool.h>
#include <stdint.h>

#include "ring.h"

struct record;

/** Make the file, and write its first line. @return NULL: GetLastError() says why */
struct record *record_open(const wchar_t *path);
/** Write what is in the ring. @return how many calls were taken */
uint64_t record_write(struct record *record, struct watch_ring *ring);
/** The error on which the record broke off; 0: none. */
DWORD record_error(const struct record *record);
/** Say in the first line how it has ended, and close the file. @return calls in the record */
uint64_t record_close(struct record *record, struct watch_ring *ring);

#endif
