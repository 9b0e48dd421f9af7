/* SPDX-License-Identifier: Apache-2.0 */
#include "descriptor_table.h"

#include <errno.h>
#include <stdlib.h>

enum { DESCRIPTORS_MAX = DESCRIPTOR_CHUNK * DESCRIPTOR_CHUNKS };

static void **chunk_of(const struct descriptor_table *table, int fd)
{
	return __atomic_load_n(&table->chunks[fd / DESCRIPTOR_CHUNK], __ATOMIC_ACQUIRE);
}

void *descriptor_table_find(const struct descriptor_table *table, int fd)
{
	void **chunk = fd >= 0 && fd < DESCRIPTORS_MAX ? chunk_of(table, fd) : NULL;

	return chunk ? __atomic_load_n(&chunk[fd % DESCRIPTOR_CHUNK], __ATOMIC_ACQUIRE) : NULL;
}

int descriptor_table_set(struct descriptor_table *table, int fd, void *object)
{
	void **chunk;

	if (fd < 0 || fd >= DESCRIPTORS_MAX)
		return -EMFILE;
	chunk = chunk_of(table, fd);
	if (!chunk) {
		chunk = calloc(DESCRIPTOR_CHUNK, sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		__atomic_store_n(&table->chunks[fd / DESCRIPTOR_CHUNK], chunk, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&chunk[fd % DESCRIPTOR_CHUNK], object, __ATOMIC_RELEASE);
	return 0;
}

int descriptor_table_next(const struct descriptor_table *table, int fd)
{
	for (fd++; fd < DESCRIPTORS_MAX; fd++) {
		if (!chunk_of(table, fd))
			fd += DESCRIPTOR_CHUNK - 1 - fd % DESCRIPTOR_CHUNK; /* nothing in this chunk */
		else if (descriptor_table_find(table, fd))
			return fd;
	}
	return -1;
}
