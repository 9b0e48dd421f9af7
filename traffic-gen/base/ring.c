/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ring_create(struct ring *ring, size_t capacity, size_t entry_bytes)
{
	if (capacity == 0 || (capacity & (capacity - 1)) || entry_bytes == 0)
		return -EINVAL;
	ring->entries = malloc(capacity * entry_bytes);
	if (!ring->entries)
		return -ENOMEM;
	memset(ring->entries, 0, capacity * entry_bytes);
	ring->entry_bytes = entry_bytes;
	ring->mask = capacity - 1;
	atomic_init(&ring->written, 0);
	atomic_init(&ring->read, 0);
	atomic_init(&ring->dropped, 0);
	return 0;
}

void ring_destroy(struct ring *ring)
{
	free(ring->entries);
	ring->entries = NULL;
}

bool ring_push(struct ring *ring, const void *entry)
{
	size_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
	size_t read = atomic_load_explicit(&ring->read, memory_order_acquire);

	if (written - read > ring->mask) {
		uint64_t dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed);

		atomic_store_explicit(&ring->dropped, dropped + 1, memory_order_relaxed);
		return false;
	}
	memcpy(ring->entries + (written & ring->mask) * ring->entry_bytes, entry, ring->entry_bytes);
	atomic_store_explicit(&ring->written, written + 1, memory_order_release);
	return true;
}

bool ring_pop(struct ring *ring, void *entry)
{
	size_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);

	if (read == atomic_load_explicit(&ring->written, memory_order_acquire))
		return false;
	memcpy(entry, ring->entries + (read & ring->mask) * ring->entry_bytes, ring->entry_bytes);
	atomic_store_explicit(&ring->read, read + 1, memory_order_release);
	return true;
}

uint64_t ring_dropped(const struct ring *ring)
{
	return atomic_load_explicit(&ring->dropped, memory_order_relaxed);
}
