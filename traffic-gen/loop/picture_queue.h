/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures that wait, of one thread that makes them, for one that sends them. What finds the queue full is counted, and goes no further. */
#ifndef BW_LOOP_PICTURE_QUEUE_H
#define BW_LOOP_PICTURE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port/port_sync.h"

enum { PICTURE_QUEUE_MAX = 256 };

struct picture_queue {
	uint8_t *bytes;
	size_t picture_bytes; /* header and pixels */
	uint32_t length;      /* pictures, that which is being sent among them */
	struct port_bell *bell;
	_Atomic uint32_t written, read; /* modulo 2^32 */
	atomic_bool has_ended;
	uint32_t most;    /* that waited at once; of the writer */
	uint64_t overrun; /* of the writer */
};

/** @param length  1..PICTURE_QUEUE_MAX @return 0 or -ENOMEM; picture_queue_destroy is allowed in either case */
int picture_queue_create(struct picture_queue *queue, uint32_t length, size_t picture_bytes);
void picture_queue_destroy(struct picture_queue *queue);

/** Where the next picture goes. @return NULL: the queue is full, which is counted */
uint8_t *picture_queue_room(struct picture_queue *queue);
/** It is there now. */
void picture_queue_put(struct picture_queue *queue);
/** No picture comes any more. */
void picture_queue_end(struct picture_queue *queue);

/** Wait for the oldest picture. @return NULL: there is none yet, or none any more: is_over says which */
uint8_t *picture_queue_next(struct picture_queue *queue, int64_t timeout_ns);
/** The oldest one was sent; its room is free. */
void picture_queue_done(struct picture_queue *queue);
/** Whether it has ended and nothing waits. */
bool picture_queue_is_over(const struct picture_queue *queue);

#endif
