/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over a connection in bulk: bytes that nothing compresses, and a sum by which both ends know them. Pure. */
#ifndef BW_BULK_DATA_H
#define BW_BULK_DATA_H

#include <stddef.h>
#include <stdint.h>

/** Fletcher's sum of bytes in order, modulo 2^64: a byte that differs, lacks or lies elsewhere shows. Begin with {0}. */
struct bulk_sum {
	uint64_t bytes, sums; /* of the bytes; of that after each of them */
};

/** Add bytes; in how many pieces they come makes no difference. */
void bulk_sum_add(struct bulk_sum *sum, const uint8_t *data, size_t size_bytes);

/** Fill a buffer with random bytes (xorshift64*, Vigna 2016). @param state  not 0; it goes on */
void bulk_fill(uint64_t *state, uint8_t *data, size_t size_bytes);

#endif
