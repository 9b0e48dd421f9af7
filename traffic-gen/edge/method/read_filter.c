/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/method/read_filter.h"

#include <stdlib.h>

static int compare_brackets(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

uint64_t read_filter_threshold(uint64_t *brackets, size_t count, int64_t percent)
{
	size_t rank = (count * (size_t)percent + 99) / 100;

	qsort(brackets, count, sizeof(brackets[0]), compare_brackets);
	return brackets[(rank ? rank : 1) - 1];
}
