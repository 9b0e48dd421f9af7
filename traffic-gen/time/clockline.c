/* SPDX-License-Identifier: Apache-2.0 */
#include "time/clockline.h"

#include <string.h>

void clockline_init(struct clockline *clockline)
{
	struct twoway_line invalid = { .valid = false };

	memset(clockline, 0, sizeof(*clockline));
	clockline_publish(clockline, &invalid);
}

static void write_copy(struct clockline *clockline, int index, const int64_t words[CLOCKLINE_WORDS])
{
	for (int i = 0; i < CLOCKLINE_WORDS; i++)
		atomic_store_explicit(&clockline->copies[index][i], words[i], memory_order_relaxed);
}

static void turn(struct clockline *clockline)
{
	unsigned int sequence = atomic_load_explicit(&clockline->sequence, memory_order_relaxed);

	atomic_store_explicit(&clockline->sequence, sequence + 1, memory_order_release);
	atomic_thread_fence(memory_order_release); /* the writes that follow stay behind the turn */
}

void clockline_publish(struct clockline *clockline, const struct twoway_line *line)
{
	int64_t words[CLOCKLINE_WORDS] = { 0 };

	memcpy(words, line, sizeof(*line));
	turn(clockline); /* readers use copy 1 */
	write_copy(clockline, 0, words);
	turn(clockline); /* readers use copy 0 */
	write_copy(clockline, 1, words);
}

struct twoway_line clockline_read(const struct clockline *clockline)
{
	int64_t words[CLOCKLINE_WORDS];
	struct twoway_line line;
	unsigned int before;

	do {
		before = atomic_load_explicit(&clockline->sequence, memory_order_acquire);
		for (int i = 0; i < CLOCKLINE_WORDS; i++)
			words[i] = atomic_load_explicit(&clockline->copies[before & 1][i], memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
	} while (atomic_load_explicit(&clockline->sequence, memory_order_relaxed) != before);
	memcpy(&line, words, sizeof(line));
	return line;
}
