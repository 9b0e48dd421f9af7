/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Means of blocks of values that follow each other, in their order: they show for how long values depend on each other.
 * Blocks begin with one value and double whenever there would be too many, so that memory is bounded.
 */
#ifndef BW_BLOCKS_H
#define BW_BLOCKS_H

#include <stdint.h>

enum { BLOCKS_MAX = 1024 };

struct blocks {
	int64_t size;   /* values of each; 0: as 1 */
	int64_t filled; /* values of the block that is not whole yet */
	double sum;     /* of these */
	int count;      /* whole blocks, less than BLOCKS_MAX */
	double means[BLOCKS_MAX];
};

/** Take a value; a structure of zeros has none. */
void blocks_add(struct blocks *blocks, int64_t value);

struct json;
/** Write an object: size, and the means of whole blocks. */
void blocks_json(struct json *json, const char *key, const struct blocks *blocks);

#endif
