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

int64_t numbers_heard(struct numbers *numbers, const struct rtdip_message *message)
{
	struct place_numbers *from;
	int64_t further;
	bool known;

	if (message->from.port == 0)
		return 0; /* it does not number them */
	from = find(numbers, message->to_port, &message->from, &known);
	further = (int32_t)(message->sequence - from->number);
	if (known && further <= 0) {
		bool overtaken = message->priority > from->priority || -further <= (int64_t)from->missing;

		if (further == 0)
			return 0; /* twice */
		if (overtaken && from->missing == 0)
			return 0;
		if (overtaken) {
			from->missing--;
			return -1;
		}
		known = false; /* the sender has begun anew */
		from->missing = 0;
	}
	from->number = message->sequence;
	from->priority = message->priority;
	if (!known)
		return 0;
	from->missing += (uint32_t)(further - 1);
	return further - 1;
}
