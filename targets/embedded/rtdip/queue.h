/* SPDX-License-Identifier: Apache-2.0 */
/* Records of one priority that were taken out of the rings and are not read yet, one behind the other. Pure. */
#ifndef RTDIP_QUEUE_H
#define RTDIP_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUEUE_ALIGN_BYTES = 8 }; /* of records: in rings, too */

struct queue {
	uint8_t *bytes;
	size_t room, begin, end; /* begin == end: empty; begin < end: begin..end; else begin..wrapped and 0..end */
	size_t wrapped;
};

static inline size_t queue_aligned(size_t bytes)
{
	return (bytes + QUEUE_ALIGN_BYTES - 1) & ~(size_t)(QUEUE_ALIGN_BYTES - 1);
}

/** Give a queue this room; one with records keeps what it has. Return false where there is no memory: it stays as it was. */
bool queue_fit(struct queue *queue, size_t room);

/** Put a record behind the others. Return false where there is no room. */
bool queue_put(struct queue *queue, const uint8_t *record, size_t size_bytes);

/** The oldest record, or NULL. */
const uint8_t *queue_oldest(struct queue *queue);

/** Take the oldest record out. */
static inline void queue_take(struct queue *queue, size_t size_bytes)
{
	queue->begin += queue_aligned(size_bytes);
}

#endif
