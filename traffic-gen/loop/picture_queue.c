/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/picture_queue.h"

#include <errno.h>
#include <stdlib.h>

int picture_queue_create(struct picture_queue *queue, uint32_t length, size_t picture_bytes)
{
	*queue = (struct picture_queue){ .length = length, .picture_bytes = picture_bytes };
	queue->bytes = malloc(length * picture_bytes);
	return queue->bytes ? port_bell_create(&queue->bell) : -ENOMEM;
}

void picture_queue_destroy(struct picture_queue *queue)
{
	port_bell_destroy(queue->bell);
	free(queue->bytes);
	queue->bell = NULL;
	queue->bytes = NULL;
}

static uint32_t waiting(const struct picture_queue *queue)
{
	return atomic_load(&queue->written) - atomic_load(&queue->read);
}

static uint8_t *at(const struct picture_queue *queue, uint64_t place)
{
	return queue->bytes + place % queue->length * queue->picture_bytes;
}

uint8_t *picture_queue_room(struct picture_queue *queue)
{
	if (waiting(queue) < queue->length)
		return at(queue, atomic_load(&queue->written));
	queue->overrun++;
	return NULL;
}

void picture_queue_put(struct picture_queue *queue)
{
	uint32_t now;

	atomic_fetch_add(&queue->written, 1);
	now = waiting(queue);
	if (now > queue->most)
		queue->most = now;
	port_bell_ring(queue->bell);
}

void picture_queue_end(struct picture_queue *queue)
{
	atomic_store(&queue->has_ended, true);
	port_bell_ring(queue->bell);
}

uint8_t *picture_queue_next(struct picture_queue *queue, int64_t timeout_ns)
{
	if (!waiting(queue))
		port_bell_wait(queue->bell, timeout_ns);
	return waiting(queue) ? at(queue, atomic_load(&queue->read)) : NULL;
}

void picture_queue_done(struct picture_queue *queue)
{
	atomic_fetch_add(&queue->read, 1);
}

bool picture_queue_is_over(const struct picture_queue *queue)
{
	return atomic_load(&queue->has_ended) && !waiting(queue);
}
