/* SPDX-License-Identifier: Apache-2.0 */
/* What bw-accel and the programs that it watches, or tunes, share. */
#ifndef BW_WATCH_PORT_MEMORY_H
#define BW_WATCH_PORT_MEMORY_H

#include <windows.h>

#include "ring.h"
#include "tuning.h"

/* Names of shared memory: the calls, by the process of bw-accel; whom a process belongs to, by its own. */
#define WATCH_MEMORY_NAME L"Local\\benchwright-watch-memory-%lu"
#define WATCH_ORDER_NAME L"Local\\benchwright-watch-order-%lu"
enum { WATCH_NAME_CHARACTERS = 64 };

struct watch_memory {
	uint32_t children; /* 1: programs that a watched one starts are watched, too */
	uint32_t recorded; /* 1: calls are written down */
	struct tuning tunings[TUNE_COUNT];
	struct watch_ring ring;
};

/* Left by who starts a process, for the library in it. */
struct watch_order {
	uint32_t recorder; /* process of bw-accel */
	uint32_t attached; /* the library's answer: 1 */
};

/**
 * Map shared memory, NULL where that cannot be done.
 *
 * @param handle  of the memory, for CloseHandle()
 * @param size    to make it; 0: it has to be there
 */
void *memory_map(const wchar_t *name_format, DWORD process, size_t size, HANDLE *handle);

#endif
