/* SPDX-License-Identifier: Apache-2.0 */
/* Counters that one thread writes and any thread reads while it runs. Without locks and without locked instructions. */
#ifndef BW_COUNTER_H
#define BW_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

struct counter {
	_Atomic uint64_t value;
};

/** Add to a counter; its one writing thread only. */
static inline void counter_add(struct counter *counter, uint64_t amount)
{
	uint64_t value = atomic_load_explicit(&counter->value, memory_order_relaxed);

	atomic_store_explicit(&counter->value, value + amount, memory_order_relaxed);
}

/** Raise a counter to a value, if it is lower; its one writing thread only. */
static inline void counter_raise(struct counter *counter, uint64_t value)
{
	if (value > atomic_load_explicit(&counter->value, memory_order_relaxed))
		atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

static inline uint64_t counter_get(const struct counter *counter)
{
	return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

#endif
