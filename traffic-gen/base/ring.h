/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of fixed-size entries between one writing and one reading thread, without locks. The writer never waits:
 * what does not fit is dropped and counted. Pure.
 */
#ifndef BW_RING_H
#define BW_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
	size_t entry_bytes;
	size_t mask; /* capacity - 1 */
	unsigned char *entries;
	_Alignas(64) atomic_size_t written; /* by the writer only */
	atomic_uint_fast64_t dropped;       /* by the writer only */
	_Alignas(64) atomic_size_t read;    /* by the reader only */
};

/**
 * Allocate (and touch) a ring.
 *
 * @param capacity  entries, a power of two
 * @return 0, -EINVAL, or -ENOMEM
 */
int ring_create(struct ring *ring, size_t capacity, size_t entry_bytes);
void ring_destroy(struct ring *ring);

/** Append a copy of an entry. @return false: the ring was full, the entry is dropped and counted */
bool ring_push(struct ring *ring, const void *entry);
/** Take the oldest entry. @return false: the ring is empty */
bool ring_pop(struct ring *ring, void *entry);
/** Entries dropped so far; any thread. */
uint64_t ring_dropped(const struct ring *ring);

#endif
