/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line out of those of several servers. Pure.
 *
 * Where more than half of the servers are right, the truth lies where more than half of their intervals overlap: the hull of all
 * such places (after Marzullo; RFC 5905, section 11.2.1, but without taking fewer falsetickers for granted than there may
 * be). The line is the weighted mean of the servers whose offset lies in it, and its bound reaches to the hull's far end: whatever a
 * minority says, the clock is not further off than its bound.
 */
#ifndef BW_TIMESERVICE_SELECT_H
#define BW_TIMESERVICE_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "timeservice/estimate.h"

enum { SELECT_MAX = 16 };

enum select_role {
	SELECT_UNUSED,      /* no candidate */
	SELECT_BEST,        /* smallest bound of those that are combined */
	SELECT_COMBINED,
	SELECT_OUTLYING,    /* its interval reaches into the hull, its offset does not */
	SELECT_FALSETICKER, /* outside the hull */
};

struct select_candidate {
	bool usable;           /* answers, synchronised, confirmed */
	struct estimate_line line;
	enum select_role role; /* set by select_line() */
};

/**
 * Find the line.
 *
 * @param at_local_ns  where its figures are to hold
 * @param line         receives it; valid: false where too few agree
 * @return number of servers that were combined; 0: none
 */
int select_line(struct select_candidate *candidates, int count, int64_t at_local_ns, struct estimate_line *line);

#endif
