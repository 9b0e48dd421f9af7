/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the kernel's stamps, which are of a clock of its own (port_stamp_clock), to the counter: that clock is read between two
 * readings of the counter before and after an exchange, and stamps in between are interpolated. A clock that was stepped or slewed
 * fast meanwhile gives nothing.
 */
#ifndef BW_TIMESERVICE_BRACKET_H
#define BW_TIMESERVICE_BRACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "timeservice/local.h"

struct bracket {
	int64_t local_ns;    /* middle of the two readings of the counter */
	int64_t error_ns;    /* half of what lies between them, and what a stamp is cut off by */
	int64_t kernel_ns;   /* the stamps' clock, read in between */
};

/** Read the clocks: the tightest of some readings. */
void bracket_read(const struct local_time *local, struct bracket *bracket);

/**
 * Map a stamp. Pure.
 *
 * @param error_ns  what *local_ns may be wrong by
 * @return false: the clock was stepped between the brackets, or the stamp is not between them
 */
bool bracket_map(const struct bracket *before, const struct bracket *after, int64_t stamp_kernel_ns, int64_t *local_ns,
		 int64_t *error_ns);

#endif
