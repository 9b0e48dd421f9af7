/* SPDX-License-Identifier: Apache-2.0 */
#include "numbers.h"

#include <stdbool.h>
#include <string.h>

/* The entry of a place, *known: whether it was there; else the one that was not used for longest is the place's now. */
static struct place_numbers *find(struct numbers *numbers, uint16_t own_port, const struct rtdip_address *place, bool *known)
{
	struct place_numbers *found = &numbers->places[0];

	*known = false;
	for (int i = 0; i < NUMBERS_PLACES_MAX && !*known; i++) {
		struct place_numbers *each = &numbers->places[i];

		*known = each->own_port == own_port && rtdip_same_address(&each->place, place);
		if (*known || each->used < found->used)
			found = each;
	}
	if (!*known)
		*found = (struct place_numbers){ .place = *place, .own_port = own_port };
	found->used = ++numbers->uses;
	return found;
}

uint32_t *numbers_next(struct numbers *numbers, uint16_t own_port, const struct rtdip_address *to)
{
	bool known;

	return &find(numbers, own_port, to, &known)->number;
}

/* Go on at a frame that has come. Return how many are missing before it. */
static int64_t go_on(struct place_numbers *from, const struct rtdip_message *message, int64_t skipped)
{
	from->number = message->sequence;
	from->priority = message->priority;
	from->doubted = false;
	from->missing += (uint32_t)skipped;
	return skipped;
}

/*
 * A number that is far off, or before what has come: forged or damaged, or the sender has begun anew or was not heard for long. That is
 * known by the next one: it counts nothing until one follows it. Return as numbers_heard.
 */
static int64_t heard_far_off(struct place_numbers *from, const struct rtdip_message *message)
{
	int64_t skipped = from->doubtful - from->number - INT64_C(1), since = (int32_t)(message->sequence - from->doubtful);
	bool anew = (int32_t)(from->doubtful - from->number) < 0;

	if (!from->doubted || since < 0 || since > NUMBERS_NEAR) {
		from->doubted = true;
		from->doubtful = message->sequence;
	}
	if (from->doubtful == message->sequence)
		return 0;
	if (anew)
		skipped = from->missing = 0;
	return go_on(from, message, skipped + since - 1);
}

int64_t numbers_heard(struct numbers *numbers, const struct rtdip_message *message)
{
	struct place_numbers *from;
	int64_t further;
	bool known;

	if (message->from.port == 0)
		return 0; /* it does not number them */
	from = find(numbers, message->to_port, &message->from, &known);
	if (!known)
		return go_on(from, message, 0);
	further = (int32_t)(message->sequence - from->number);
	if (further > 0 && further <= NUMBERS_NEAR)
		return go_on(from, message, further - 1);
	if (further == 0)
		return 0; /* twice */
	if (further < 0 && (message->priority > from->priority || -further <= (int64_t)from->missing)) {
		if (from->missing == 0)
			return 0;
		from->missing--; /* it was overtaken */
		return -1;
	}
	return heard_far_off(from, message);
}
