/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/send/slots.h"

#include <string.h>

#include "traffic/frame.h"
#include "plan/phase.h"

#define NOT_ATTEMPTED INT64_MIN /* no slot is sent before its time: never a lateness here */

static int64_t due_tai_ns(const struct slot_queue *queue, uint32_t slot)
{
	return slot < queue->end ? phase_scheduled_tai_ns(queue->producer, queue->stream, slot) : INT64_MAX;
}

void slots_init(struct slot_queue *queue, const struct plan *plan, const struct plan_producer *producer,
		const struct stream *stream)
{
	struct slot_range range = phase_slot_range(plan, stream);

	memset(queue, 0, sizeof(*queue));
	queue->producer = producer;
	queue->stream = stream;
	queue->warmup_end = range.warmup_end;
	queue->end = range.end;
	queue->head_due_tai_ns = queue->next_due_tai_ns = due_tai_ns(queue, 0);
}

uint32_t slots_admit(struct slot_queue *queue, int64_t now_tai_ns, bool blocked)
{
	uint32_t admitted = 0;

	while (slots_next_due_tai_ns(queue) <= now_tai_ns) {
		int64_t *lateness_ns = &queue->lateness_ns[queue->next % SLOTS_QUEUE_MAX];

		*lateness_ns = blocked ? frame_lateness_ns(now_tai_ns - queue->next_due_tai_ns) : NOT_ATTEMPTED;
		queue->next_due_tai_ns = due_tai_ns(queue, ++queue->next);
		admitted++;
	}
	return admitted;
}

int64_t slots_next_due_tai_ns(const struct slot_queue *queue)
{
	return queue->next - queue->head < SLOTS_QUEUE_MAX ? queue->next_due_tai_ns : INT64_MAX;
}

int64_t slots_attempt(struct slot_queue *queue, int64_t now_tai_ns)
{
	int64_t *lateness_ns = &queue->lateness_ns[queue->head % SLOTS_QUEUE_MAX];

	if (*lateness_ns == NOT_ATTEMPTED)
		*lateness_ns = frame_lateness_ns(now_tai_ns - queue->head_due_tai_ns);
	return *lateness_ns;
}

void slots_blocked(struct slot_queue *queue, int64_t now_tai_ns)
{
	/* attempted slots are the oldest ones: go back to the youngest of them */
	for (uint32_t slot = queue->next; slot != queue->head; slot--) {
		int64_t *lateness_ns = &queue->lateness_ns[(slot - 1) % SLOTS_QUEUE_MAX];

		if (*lateness_ns != NOT_ATTEMPTED)
			return;
		*lateness_ns = frame_lateness_ns(now_tai_ns - due_tai_ns(queue, slot - 1));
	}
}

void slots_written(struct slot_queue *queue)
{
	queue->head_due_tai_ns = due_tai_ns(queue, ++queue->head);
}
