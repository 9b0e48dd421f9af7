/* SPDX-License-Identifier: Apache-2.0 */
/* What descriptors mean: an object each. Written by one thread at a time, read by any at any time. */
#ifndef BW_ACCEL_DESCRIPTOR_TABLE_H
#define BW_ACCEL_DESCRIPTOR_TABLE_H

enum { DESCRIPTOR_CHUNK = 1024, DESCRIPTOR_CHUNKS = 1024 };

/* All zero: no descriptor means anything. */
struct descriptor_table {
	void **chunks[DESCRIPTOR_CHUNKS];
};

/** @return what a descriptor means, or NULL */
void *descriptor_table_find(const struct descriptor_table *table, int fd);
/** @param object  NULL: nothing @return 0, -ENOMEM or -EMFILE (there is no such descriptor) */
int descriptor_table_set(struct descriptor_table *table, int fd, void *object);
/** @return the next descriptor behind `fd` that means something, or -1; -1 begins */
int descriptor_table_next(const struct descriptor_table *table, int fd);

#endif
