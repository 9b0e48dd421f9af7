/* SPDX-License-Identifier: Apache-2.0 */
/* Which pictures have begun to be sent: only those may be answered. Of one thread that sends them, for another that reads commands. Pure. */
#ifndef BW_LOOP_BEGUN_H
#define BW_LOOP_BEGUN_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { BEGUN_KEPT = 4096 /* pictures; of an older one nobody knows */ };

struct begun {
	_Atomic uint32_t beyond[BEGUN_KEPT]; /* at number % BEGUN_KEPT: number + 1; 0: none */
};

/** A picture's first byte is about to be written. Numbers rise, up to 2^32 - 2. */
static inline void begun_add(struct begun *begun, uint32_t number)
{
	atomic_store(&begun->beyond[number % BEGUN_KEPT], number + 1);
}

/** @return NULL: it has begun, or why a command that answers it is refused */
static inline const char *begun_refuse(const struct begun *begun, uint32_t number)
{
	uint32_t beyond = atomic_load(&begun->beyond[number % BEGUN_KEPT]);

	if (beyond > number + UINT64_C(1))
		return "answers a picture that is too old to be known";
	return beyond == number + UINT64_C(1) ? NULL : "answers a picture that was not sent";
}

#endif
