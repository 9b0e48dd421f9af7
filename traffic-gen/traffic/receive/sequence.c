/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/receive/sequence.h"

#include <stdbool.h>
#include <string.h>

void sequence_init(struct sequence_window *window)
{
	memset(window, 0, sizeof(*window));
	window->highest = -1;
}

static uint64_t *word_of(struct sequence_window *window, int64_t sequence)
{
	return &window->seen[sequence % SEQUENCE_WINDOW / 64];
}

static uint64_t bit_of(int64_t sequence)
{
	return UINT64_C(1) << (sequence % 64);
}

/* Make room up to a new highest number. */
static void advance(struct sequence_window *window, int64_t sequence)
{
	if (sequence - window->highest >= SEQUENCE_WINDOW)
		memset(window->seen, 0, sizeof(window->seen));
	else
		for (int64_t s = window->highest + 1; s <= sequence; s++)
			*word_of(window, s) &= ~bit_of(s);
	window->highest = sequence;
}

enum sequence_class sequence_enter(struct sequence_window *window, uint32_t sequence)
{
	bool in_order = (int64_t)sequence > window->highest;

	if (in_order)
		advance(window, sequence);
	else if (window->highest - sequence >= SEQUENCE_WINDOW)
		return SEQUENCE_OLD;
	else if (*word_of(window, sequence) & bit_of(sequence))
		return SEQUENCE_DUPLICATE;
	*word_of(window, sequence) |= bit_of(sequence);
	return in_order ? SEQUENCE_NEW : SEQUENCE_REORDERED;
}
