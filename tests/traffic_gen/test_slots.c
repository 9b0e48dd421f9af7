/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "check.h"
#include "traffic/frame.h"
#include "traffic/send/slots.h"

#define MS INT64_C(1000000)
#define START INT64_C(1000000000000)

static const struct stream stream = {
	.id = 13, .producer = 1, .message_type = 3, .size_bytes = 10, .period_ns = 10 * MS, .budget_ns = 10 * MS,
};
static const struct plan_producer producer = { .number = 1, .start_tai_ns = START };
static const struct plan plan = { .warmup_ns = 20 * MS, .duration_ns = 100 * MS };

static struct slot_queue *fresh(void)
{
	struct slot_queue *queue = malloc(sizeof(*queue));

	if (queue)
		slots_init(queue, &plan, &producer, &stream);
	return queue;
}

static void test_in_time(void)
{
	struct slot_queue *queue = fresh();

	CHECK_INT(queue->warmup_end, 2);
	CHECK_INT(queue->end, 12);
	CHECK_INT(slots_admit(queue, START - 1, false), 0);
	CHECK(!slots_waiting(queue));
	CHECK_INT(slots_admit(queue, START, false), 1);
	CHECK(slots_waiting(queue));
	CHECK_INT(slots_next_due_tai_ns(queue), START + 10 * MS);
	CHECK_INT(slots_attempt(queue, START + 700), 700);
	slots_written(queue);
	CHECK(!slots_waiting(queue));
	free(queue);
}

/* Slots are never skipped: after a pause all of them are there, in order, each as late as it is. */
static void test_late(void)
{
	struct slot_queue *queue = fresh();

	CHECK_INT(slots_admit(queue, START + 35 * MS, false), 4);
	for (int k = 0; k < 4; k++) {
		CHECK_INT(queue->head, k);
		CHECK_INT(slots_attempt(queue, START + 36 * MS), 36 * MS - k * (10 * MS));
		slots_written(queue);
	}
	CHECK_INT(slots_admit(queue, START + 1000 * MS, false), 8);
	CHECK_INT(slots_next_due_tai_ns(queue), INT64_MAX);
	free(queue);
}

/* The first attempt of a slot that finds its stream blocked is when it came due, not when the network let go. */
static void test_blocked(void)
{
	struct slot_queue *queue = fresh();

	slots_admit(queue, START + 100, false);
	CHECK_INT(slots_attempt(queue, START + 200), 200);
	slots_admit(queue, START + 10 * MS + 300, true);
	CHECK_INT(slots_attempt(queue, START + 50 * MS), 200); /* the earlier message keeps its own */
	slots_written(queue);
	CHECK_INT(slots_attempt(queue, START + 50 * MS), 300);
	slots_written(queue);
	slots_admit(queue, START + 20 * MS, false); /* not blocked, but not written either: the producer is late */
	CHECK_INT(slots_attempt(queue, START + 50 * MS), 30 * MS);
	free(queue);
}

/* Slots that were due before the socket let the producer notice that it blocks: attempted when it did. */
static void test_blocked_later(void)
{
	struct slot_queue *queue = fresh();

	slots_admit(queue, START + 100, false);
	CHECK_INT(slots_attempt(queue, START + 200), 200);
	slots_admit(queue, START + 20 * MS, false);
	slots_blocked(queue, START + 21 * MS);
	slots_admit(queue, START + 30 * MS, true);
	slots_blocked(queue, START + 900 * MS);
	CHECK_INT(slots_attempt(queue, START + 950 * MS), 200);
	slots_written(queue);
	CHECK_INT(slots_attempt(queue, START + 950 * MS), 11 * MS);
	slots_written(queue);
	CHECK_INT(slots_attempt(queue, START + 950 * MS), MS);
	slots_written(queue);
	CHECK_INT(slots_attempt(queue, START + 950 * MS), 0);
	slots_written(queue);
	CHECK(!slots_waiting(queue));
	slots_blocked(queue, START + 960 * MS);
	free(queue);
}

static void test_full_queue(void)
{
	struct stream fast = stream;
	struct plan lasting = { .duration_ns = 10000 * MS };
	struct slot_queue *queue = malloc(sizeof(*queue));

	fast.period_ns = MS;
	slots_init(queue, &lasting, &producer, &fast);
	CHECK_INT(slots_admit(queue, START + 9000 * MS, true), SLOTS_QUEUE_MAX);
	CHECK_INT(slots_next_due_tai_ns(queue), INT64_MAX); /* nothing to wake up for */
	CHECK_INT(slots_attempt(queue, 0), INT64_C(8999999488)); /* 9 s late, in steps of 1.024 us */
	slots_written(queue);
	CHECK_INT(slots_next_due_tai_ns(queue), START + SLOTS_QUEUE_MAX * MS);
	CHECK_INT(slots_admit(queue, START + 9000 * MS, true), 1);
	free(queue);
}

int main(void)
{
	test_in_time();
	test_late();
	test_blocked();
	test_blocked_later();
	test_full_queue();
	return check_result();
}
