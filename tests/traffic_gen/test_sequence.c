/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"
#include "random.h"
#include "traffic/receive/sequence.h"

static void test_classes(void)
{
	struct sequence_window window;

	sequence_init(&window);
	CHECK_INT(sequence_enter(&window, 0), SEQUENCE_NEW);
	CHECK_INT(sequence_enter(&window, 0), SEQUENCE_DUPLICATE);
	CHECK_INT(sequence_enter(&window, 2), SEQUENCE_NEW);
	CHECK_INT(sequence_enter(&window, 1), SEQUENCE_REORDERED);
	CHECK_INT(sequence_enter(&window, 1), SEQUENCE_DUPLICATE);
	CHECK_INT(sequence_enter(&window, SEQUENCE_WINDOW + 1), SEQUENCE_NEW);
	CHECK_INT(sequence_enter(&window, 2), SEQUENCE_DUPLICATE); /* the oldest in the window */
	CHECK_INT(sequence_enter(&window, 1), SEQUENCE_OLD);
	CHECK_INT(sequence_enter(&window, UINT32_MAX), SEQUENCE_NEW);
	CHECK_INT(sequence_enter(&window, UINT32_MAX - 1), SEQUENCE_REORDERED);
	CHECK_INT(sequence_enter(&window, 2), SEQUENCE_OLD);
}

/* Against a plain list of all numbers, with jumps, repetitions and reordering. */
static void test_against_list(void)
{
	enum { NUMBERS = 100000, STEPS = 400000 };
	struct sequence_window window;
	bool *seen = calloc(NUMBERS, sizeof(*seen));
	struct random random = { 7 };
	int64_t highest = -1;
	int wrong = 0;

	sequence_init(&window);
	for (int i = 0; seen && i < STEPS; i++) {
		int64_t next = highest + 1 - random_between(&random, 0, 63) + random_between(&random, 0, 65);
		enum sequence_class expected;

		if (random_bits(&random) % 2000 == 0)
			next -= 5000;
		if (next < 0 || next >= NUMBERS)
			continue;
		expected = highest - next >= SEQUENCE_WINDOW ? SEQUENCE_OLD : seen[next] ? SEQUENCE_DUPLICATE
			   : next > highest		     ? SEQUENCE_NEW
							     : SEQUENCE_REORDERED;
		wrong += sequence_enter(&window, (uint32_t)next) != expected;
		if (expected != SEQUENCE_OLD)
			seen[next] = true;
		if (next > highest)
			highest = next;
	}
	CHECK_INT(wrong, 0);
	CHECK(highest > INT64_C(2) * SEQUENCE_WINDOW);
	free(seen);
}

int main(void)
{
	test_classes();
	test_against_list();
	return check_result();
}
