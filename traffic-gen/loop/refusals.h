/* SPDX-License-Identifier: Apache-2.0 */
/* How often what was refused, by its reason. Pure. */
#ifndef BW_LOOP_REFUSALS_H
#define BW_LOOP_REFUSALS_H

#include <stdint.h>
#include <string.h>

#include "base/json.h"

enum { REFUSALS_MAX = 16 }; /* reasons; there are fewer */

struct refusals {
	uint64_t all;
	struct refusal {
		const char *reason; /* a text that stays */
		uint64_t count;
	} by_reason[REFUSALS_MAX];
};

static inline void refusals_add(struct refusals *refusals, const char *reason)
{
	struct refusal *each = refusals->by_reason;

	refusals->all++;
	while (each->reason && strcmp(each->reason, reason) != 0 && each + 1 < refusals->by_reason + REFUSALS_MAX)
		each++;
	if (!each->reason)
		each->reason = reason;
	each->count++;
}

/** Write an object: reason and count. */
static inline void refusals_write(struct json *json, const char *key, const struct refusals *refusals)
{
	json_object_open(json, key);
	for (const struct refusal *each = refusals->by_reason; each < refusals->by_reason + REFUSALS_MAX && each->reason; each++)
		json_uint(json, each->reason, each->count);
	json_object_close(json);
}

#endif
