/* SPDX-License-Identifier: Apache-2.0 */
#include "clock/card/page.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define FUTURE_NS INT64_C(1000000) /* a line may be this much younger than the reader thinks: bounds of calibrations */
#define AGE_MAX_NS 1.1e18
#define FIGURE_MAX INT64_C(1000000000)
#define TAI_MAX_NS (INT64_C(1) << 61)

enum {
	READ_RETRIES = 64,
	TAI_UTC_MAX_S = 1000,
	SOURCE_WORDS = CARD_SOURCE_BYTES / 8,
};

/* Order of the words of a line. */
enum {
	WORD_UNIT_AND_TAI_UTC,
	WORD_COUNTER,
	WORD_TAI,
	WORD_NS_PER_UNIT,
	WORD_BOUND,
	WORD_BOUND_GROWTH,
	WORD_WANDER,
	WORD_PUBLISHED,
	WORD_STEPS,
	WORD_SOURCE,
	WORDS_USED = WORD_SOURCE + SOURCE_WORDS,
};

_Static_assert((int)WORDS_USED <= (int)CARD_LINE_WORDS, "words of a line");

static void pack(const struct card_line *line, uint64_t words[CARD_LINE_WORDS])
{
	memset(words, 0, CARD_LINE_WORDS * sizeof(words[0]));
	words[WORD_UNIT_AND_TAI_UTC] = (uint64_t)line->unit | (uint64_t)line->tai_utc_s << 32;
	words[WORD_COUNTER] = line->counter;
	words[WORD_TAI] = (uint64_t)line->tai_ns;
	memcpy(&words[WORD_NS_PER_UNIT], &line->ns_per_unit, sizeof(line->ns_per_unit));
	words[WORD_BOUND] = (uint64_t)line->bound_ns;
	words[WORD_BOUND_GROWTH] = (uint64_t)line->bound_growth_ppb;
	words[WORD_WANDER] = (uint64_t)line->wander_ppb_per_s;
	words[WORD_PUBLISHED] = line->published;
	words[WORD_STEPS] = line->steps;
	memcpy(&words[WORD_SOURCE], line->source, sizeof(line->source));
}

static bool figure_valid(int64_t value)
{
	return value >= 0 && value <= FIGURE_MAX;
}

static bool source_valid(const char source[CARD_SOURCE_BYTES])
{
	size_t length = strnlen(source, CARD_SOURCE_BYTES);

	for (size_t i = 0; i < length; i++) {
		if (source[i] < 0x21 || source[i] > 0x7e)
			return false;
	}
	return length > 0 && length < CARD_SOURCE_BYTES;
}

static bool line_valid(const struct card_line *line)
{
	return (line->unit == CARD_UNIT_TSC || line->unit == CARD_UNIT_NS) && line->tai_ns > 0 && line->tai_ns < TAI_MAX_NS &&
	       isfinite(line->ns_per_unit) && line->ns_per_unit >= 0.05 && line->ns_per_unit <= 1000 &&
	       figure_valid(line->bound_ns) && figure_valid(line->bound_growth_ppb) && figure_valid(line->wander_ppb_per_s) &&
	       line->tai_utc_s <= TAI_UTC_MAX_S && source_valid(line->source);
}

static bool unpack(const uint64_t words[CARD_LINE_WORDS], struct card_line *line)
{
	line->unit = (enum card_unit)(words[WORD_UNIT_AND_TAI_UTC] & 3);
	line->tai_utc_s = (int64_t)(words[WORD_UNIT_AND_TAI_UTC] >> 32);
	line->counter = words[WORD_COUNTER];
	line->tai_ns = (int64_t)words[WORD_TAI];
	memcpy(&line->ns_per_unit, &words[WORD_NS_PER_UNIT], sizeof(line->ns_per_unit));
	line->bound_ns = (int64_t)words[WORD_BOUND];
	line->bound_growth_ppb = (int64_t)words[WORD_BOUND_GROWTH];
	line->wander_ppb_per_s = (int64_t)words[WORD_WANDER];
	line->published = words[WORD_PUBLISHED];
	line->steps = words[WORD_STEPS];
	memcpy(line->source, &words[WORD_SOURCE], sizeof(line->source));
	return (words[WORD_UNIT_AND_TAI_UTC] & 0xfffffffc) == 0 && line_valid(line);
}

static void write_copy(struct card_posting *posting, int index, const uint64_t words[CARD_LINE_WORDS])
{
	for (int i = 0; i < CARD_LINE_WORDS; i++)
		atomic_store_explicit(&posting->copies[index][i], words[i], memory_order_relaxed);
}

/* The writer keeps the parity itself: after a writer that was killed half-way both copies are written anew. */
static void turn(struct card_posting *posting, uint32_t parity)
{
	uint32_t sequence = atomic_load_explicit(&posting->sequence, memory_order_relaxed);

	atomic_thread_fence(memory_order_release); /* the copy that is turned to is whole before the turn */
	atomic_store_explicit(&posting->sequence, sequence + 1 + ((sequence + 1) % 2 != parity), memory_order_release);
	atomic_thread_fence(memory_order_seq_cst); /* the writes that follow stay behind the turn */
}

void card_posting_write(struct card_posting *posting, const struct card_line *line)
{
	uint64_t words[CARD_LINE_WORDS];

	pack(line, words);
	turn(posting, 1); /* readers use copy 1 */
	write_copy(posting, 0, words);
	turn(posting, 0); /* readers use copy 0 */
	write_copy(posting, 1, words);
}

int card_posting_read(const struct card_posting *posting, struct card_line *line)
{
	for (int retry = 0; retry < READ_RETRIES; retry++) {
		uint32_t before = atomic_load_explicit(&posting->sequence, memory_order_acquire);
		uint64_t words[CARD_LINE_WORDS];
		struct card_line read;

		for (int i = 0; i < CARD_LINE_WORDS; i++)
			words[i] = atomic_load_explicit(&posting->copies[before & 1][i], memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&posting->sequence, memory_order_relaxed) != before)
			continue;
		if (words[WORD_PUBLISHED] == 0)
			return -ENODATA;
		if (!unpack(words, &read))
			return -EBADMSG;
		*line = read;
		return 0;
	}
	return -EAGAIN;
}

int64_t card_line_age_ns(const struct card_line *line, uint64_t counter)
{
	double age_ns = (double)(int64_t)(counter - line->counter) * line->ns_per_unit;

	if (age_ns > AGE_MAX_NS)
		age_ns = AGE_MAX_NS;
	if (age_ns < -AGE_MAX_NS)
		age_ns = -AGE_MAX_NS;
	return (int64_t)nearbyint(age_ns);
}

int card_line_at(const struct card_line *line, uint64_t counter, int64_t *tai_ns, int64_t *bound_ns)
{
	int64_t age_ns = card_line_age_ns(line, counter);

	if (age_ns > CARD_STALE_NS)
		return -ETIME;
	if (age_ns < -FUTURE_NS)
		return -EBADMSG;
	if (tai_ns)
		*tai_ns = line->tai_ns + age_ns;
	if (bound_ns) {
		double age_s = fabs((double)age_ns) * 1e-9;

		*bound_ns = line->bound_ns + 1 + /* of the rounding */
			    (int64_t)ceil(age_s * ((double)line->bound_growth_ppb +
						   age_s * (double)line->wander_ppb_per_s / 2));
	}
	return 0;
}
