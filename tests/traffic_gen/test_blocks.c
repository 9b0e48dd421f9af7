/* SPDX-License-Identifier: Apache-2.0 */
/** Means of blocks against the values that they are of, for numbers of values around each doubling. */
#include "base/blocks.h"

#include <stdlib.h>

#include "check.h"
#include "random.h"

static void check_blocks(int count)
{
	struct blocks *blocks = calloc(1, sizeof(*blocks));
	int64_t *values = calloc((size_t)count + 1, sizeof(*values));
	struct random random = {7};
	int64_t size = 1;

	CHECK(blocks && values);
	for (int i = 0; i < count; i++) {
		values[i] = random_between(&random, -1000, 1000);
		blocks_add(blocks, values[i]);
	}
	while (count / size >= BLOCKS_MAX)
		size *= 2;
	CHECK((blocks->size ? blocks->size : 1) == size);
	CHECK(blocks->count == count / size);
	CHECK(blocks->filled == count % size);
	for (int k = 0; k < blocks->count; k++) {
		int64_t sum = 0;

		for (int64_t i = k * size; i < (k + 1) * size; i++)
			sum += values[i];
		CHECK(blocks->means[k] == (double)sum / (double)size); /* exact: size is a power of two */
	}
	free(values);
	free(blocks);
}

int main(void)
{
	static const int counts[] = {0, 1, 2, 1023, 1024, 1025, 2047, 2048, 2049, 5000, 100000};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		check_blocks(counts[i]);
	return check_result();
}
