/* SPDX-License-Identifier: Apache-2.0 */
#include "base/blocks.h"

#include <stddef.h>

#include "base/json.h"

static int64_t size_of(const struct blocks *blocks)
{
	return blocks->size ? blocks->size : 1;
}

void blocks_add(struct blocks *blocks, int64_t value)
{
	blocks->sum += (double)value;
	if (++blocks->filled < size_of(blocks))
		return;
	blocks->means[blocks->count++] = blocks->sum / (double)size_of(blocks);
	blocks->sum = 0;
	blocks->filled = 0;
	if (blocks->count < BLOCKS_MAX)
		return;
	blocks->count /= 2;
	blocks->size = 2 * size_of(blocks);
	for (ptrdiff_t i = 0; i < blocks->count; i++)
		blocks->means[i] = (blocks->means[2 * i] + blocks->means[2 * i + 1]) / 2;
}

void blocks_json(struct json *json, const char *key, const struct blocks *blocks)
{
	json_object_open(json, key);
	json_int(json, "size", size_of(blocks));
	json_array_open(json, "means_ns");
	for (int i = 0; i < blocks->count; i++)
		json_double(json, NULL, blocks->means[i]);
	json_array_close(json);
	json_object_close(json);
}
