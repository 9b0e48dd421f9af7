/* SPDX-License-Identifier: Apache-2.0 */
/* The page of the time service as text and JSON: of bw-timectl. */
#ifndef BW_TIMESERVICE_TIMECTL_SHOW_H
#define BW_TIMESERVICE_TIMECTL_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "timeservice/page.h"

enum { TIMECTL_WHY_BYTES = 256 };

/* One look at the page. */
struct timectl {
	struct timepage_line line;
	struct timepage_status status;
	uint64_t now_ticks;
	bool process_seen;     /* the service's process, from here: waiter_is_seen() */
	bool synchronised;     /* there is a time right now */
	int64_t utc_ns;        /* then: it, how far the truth may be below and above it, and its U */
	int64_t low_ns, high_ns, u_ns;
	char why[TIMECTL_WHY_BYTES]; /* it could not be read */
};

/** Read the page. @param path  NULL: the system's place. @return 0, or -errno with why filled */
int timectl_read(struct timectl *ctl, const char *path);

void timectl_tracking(const struct timectl *ctl, bool json);
void timectl_sources(const struct timectl *ctl, bool json);
void timectl_sourcestats(const struct timectl *ctl, bool json);
void timectl_history(const struct timectl *ctl, bool json, int last);

#endif
