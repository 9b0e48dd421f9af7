/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

bool queue_fit(struct queue *queue, size_t room)
{
	uint8_t *bytes = NULL;

	if (queue->begin != queue->end)
		return true;
	if (room > 0) {
		bytes = realloc(queue->bytes, room);
		if (!bytes)
			return false;
	} else {
		free(queue->bytes);
	}
	*queue = (struct queue){ .bytes = bytes, .room = room };
	return true;
}

bool queue_put(struct queue *queue, const uint8_t *record, size_t size_bytes)
{
	size_t bytes = queue_aligned(size_bytes), at = queue->end;

	if (queue->begin == queue->end)
		queue->begin = queue->end = at = 0;
	if (queue->end >= queue->begin && queue->room - queue->end < bytes) {
		if (queue->begin <= bytes)
			return false;
		queue->wrapped = queue->end;
		at = 0;
	} else if (queue->end < queue->begin && queue->begin - queue->end <= bytes) {
		return false;
	}
	memcpy(queue->bytes + at, record, size_bytes);
	queue->end = at + bytes;
	return true;
}

const uint8_t *queue_oldest(struct queue *queue)
{
	if (queue->begin == queue->end)
		return NULL;
	if (queue->end < queue->begin && queue->begin == queue->wrapped)
		queue->begin = 0;
	return queue->begin == queue->end ? NULL : queue->bytes + queue->begin;
}
