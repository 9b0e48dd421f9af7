/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The due slots of one stream, in order. A slot is admitted when its time has come and leaves when its message is
 * written; nothing is skipped. Pure: the caller reads the clock.
 *
 * *Sent* is the first attempt to write. When a slot comes due while its stream cannot take a byte (an earlier
 * message blocks the socket, or the connection is down), that moment is its first attempt: an application would have
 * called write() there and been made to wait by the network. When the stream could take bytes but the producer has
 * not come to it yet (it is still busy writing earlier messages), the first attempt is the first write, or the
 * moment at which an earlier message of the stream blocks: until then the producer itself was late. At most
 * SLOTS_QUEUE_MAX slots of a stream are queued; further ones wait un-attempted, which shows as lateness of the
 * producer.
 */
#ifndef BW_SLOTS_H
#define BW_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"

enum { SLOTS_QUEUE_MAX = 4096 };

struct slot_queue {
	const struct plan_producer *producer;
	const struct stream *stream;
	uint32_t warmup_end;     /* slots before it are not counted */
	uint32_t end;            /* number of slots in all */
	uint32_t head;           /* oldest slot that is not written yet */
	uint32_t next;           /* first slot that is not admitted yet; head <= next <= end */
	int64_t head_due_tai_ns; /* schedule of head and next in the producer's clock; of end: INT64_MAX */
	int64_t next_due_tai_ns;
	int64_t lateness_ns[SLOTS_QUEUE_MAX]; /* of admitted slots: first attempt - scheduled, as frame.h can say it */
};

void slots_init(struct slot_queue *queue, const struct plan *plan, const struct plan_producer *producer,
		const struct stream *stream);

/**
 * Admit all slots that are due.
 *
 * @param blocked  the stream cannot take a byte now: this is the first attempt of those slots
 * @return how many
 */
uint32_t slots_admit(struct slot_queue *queue, int64_t now_tai_ns, bool blocked);

/** True when admitted slots are waiting. */
static inline bool slots_waiting(const struct slot_queue *queue)
{
	return queue->head != queue->next;
}

/** When the next slot can be admitted; INT64_MAX: not before a message is written, or never. */
int64_t slots_next_due_tai_ns(const struct slot_queue *queue);

/** Lateness of the oldest waiting slot, as frame.h can say it; this is its first attempt unless it had one. */
int64_t slots_attempt(struct slot_queue *queue, int64_t now_tai_ns);

/** The stream has blocked now: this is the first attempt of all waiting slots that had none. Amortised O(1) a slot. */
void slots_blocked(struct slot_queue *queue, int64_t now_tai_ns);

/** The oldest waiting slot is written. */
void slots_written(struct slot_queue *queue);

#endif
