/* SPDX-License-Identifier: Apache-2.0 */
/* Tallies that one thread writes and any thread reads while it runs. Without locks and without locked instructions. */
#ifndef BW_TALLY_H
#define BW_TALLY_H

#include <stdatomic.h>
#include <stdint.h>

struct tally {
	_Atomic uint64_t value;
};

/** Add to a tally; its one writing thread only. */
static inline void tally_add(struct tally *tally, uint64_t amount)
{
	uint64_t value = atomic_load_explicit(&tally->value, memory_order_relaxed);

	atomic_store_explicit(&tally->value, value + amount, memory_order_relaxed);
}

/** Raise a tally to a value, if it is lower; its one writing thread only. */
static inline void tally_raise(struct tally *tally, uint64_t value)
{
	if (value > atomic_load_explicit(&tally->value, memory_order_relaxed))
		atomic_store_explicit(&tally->value, value, memory_order_relaxed);
}

static inline uint64_t tally_get(const struct tally *tally)
{
	return atomic_load_explicit(&tally->value, memory_order_relaxed);
}

#endif
