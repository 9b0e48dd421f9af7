/* SPDX-License-Identifier: Apache-2.0 */
/* A queue against a list: what was put comes out, whole and in its order, until nothing is left, however full it gets. */
#include <string.h>

#include "check.h"
#include "queue.h"
#include "random.h"

enum { ROOM_BYTES = 96, RECORD_MAX_BYTES = 40, LISTED = 256, STEPS = 200000 };

static uint8_t listed[LISTED][RECORD_MAX_BYTES];
static size_t sizes[LISTED];
static unsigned int first, next; /* of the list, going round */

static bool is_oldest(struct queue *queue)
{
	const uint8_t *oldest = queue_oldest(queue);

	if (!oldest || first == next)
		return !oldest && first == next;
	return !memcmp(oldest, listed[first % LISTED], sizes[first % LISTED]);
}

static size_t bytes_listed(void)
{
	size_t bytes = 0;

	for (unsigned int i = first; i != next; i++)
		bytes += queue_aligned(sizes[i % LISTED]);
	return bytes;
}

static void test_as_a_list(uint64_t seed)
{
	struct random random = { seed };
	struct queue queue = { 0 };
	unsigned int refused = 0, emptied = 0;
	bool is_sound = true;

	first = next = 0;
	CHECK(queue_fit(&queue, ROOM_BYTES));
	for (int step = 0; step < STEPS && is_sound; step++) {
		if (random_unit(&random) < 0.55) {
			size_t size = (size_t)random_between(&random, 1, RECORD_MAX_BYTES);
			uint8_t *record = listed[next % LISTED];

			for (size_t i = 0; i < size; i++)
				record[i] = (uint8_t)random_bits(&random);
			if (queue_put(&queue, record, size)) {
				sizes[next++ % LISTED] = size;
				is_sound = bytes_listed() <= ROOM_BYTES;
			} else {
				refused++;
				is_sound = first != next; /* an empty one has room */
			}
		} else if (first != next) {
			queue_oldest(&queue);
			queue_take(&queue, sizes[first++ % LISTED]);
			emptied += first == next;
		}
		is_sound = is_sound && is_oldest(&queue);
		CHECK_THAT(is_sound, "seed %d, step %d: not as a list", (int)seed, step);
	}
	CHECK_THAT(refused > STEPS / 100 && emptied > STEPS / 1000, "full %u times, empty %u times", refused, emptied);
	for (; first != next; first++) {
		CHECK(is_oldest(&queue));
		queue_take(&queue, sizes[first % LISTED]);
	}
	CHECK(queue_oldest(&queue) == NULL);
	CHECK(queue_fit(&queue, 0) && queue.bytes == NULL);
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		test_as_a_list(seed);
	return check_result();
}
