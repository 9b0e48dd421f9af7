/* SPDX-License-Identifier: Apache-2.0 */
/* Which bracketed readings of a clock are short enough: a quantile of the brackets of a warm-up. Pure. */
#ifndef BW_EDGE_READ_FILTER_H
#define BW_EDGE_READ_FILTER_H

#include <stddef.h>
#include <stdint.h>

/**
 * The bracket that so many per cent of the readings do not exceed, by nearest rank.
 *
 * @param brackets  count >= 1 of them; they are sorted
 * @param percent   1..100
 */
uint64_t read_filter_threshold(uint64_t *brackets, size_t count, int64_t percent);

/** The middle of a bracket: the paper's virtual now. */
static inline uint64_t read_filter_middle(uint64_t before, uint64_t after)
{
	return before + (after - before) / 2;
}

#endif
