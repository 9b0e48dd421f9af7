/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/bulk/bulk_data.h"

#include <string.h>

void bulk_sum_add(struct bulk_sum *sum, const uint8_t *data, size_t size_bytes)
{
	uint64_t bytes = sum->bytes, sums = sum->sums;

	for (size_t i = 0; i < size_bytes; i++) {
		bytes += data[i];
		sums += bytes;
	}
	sum->bytes = bytes;
	sum->sums = sums;
}

void bulk_fill(uint64_t *state, uint8_t *data, size_t size_bytes)
{
	uint64_t x = *state;

	for (size_t at = 0; at < size_bytes; at += sizeof(x)) {
		size_t rest_bytes = size_bytes - at;
		uint64_t word;

		x ^= x >> 12;
		x ^= x << 25;
		x ^= x >> 27;
		word = x * UINT64_C(0x2545f4914f6cdd1d);
		memcpy(data + at, &word, rest_bytes < sizeof(word) ? rest_bytes : sizeof(word));
	}
	*state = x;
}
