/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock that the consumer stamps with: the system's, or another one by its name (clock/source.h), such as that of the time
 * service, which steers none.
 *
 * Receivers read the system's clock, for kernel stamps are of it; where another one is wanted, a low-priority thread
 * holds the two against each other ten times a second and publishes the line from one to the other (time/clockline.h), which
 * each arrival goes through. All that the consumer reports is then TAI by that clock.
 */
#ifndef BW_OWN_CLOCK_H
#define BW_OWN_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"
#include "port/port.h"
#include "time/clockline.h"

struct source;

enum { OWN_CLOCK_WHY_BYTES = 256 };

/* What was seen of another clock. Read it after own_clock_stop. */
struct own_clock_account {
	uint64_t readings, refused;  /* refused: it gave no time any more */
	uint64_t steps;              /* that it told of */
	int64_t last_step_ns;
	int64_t bound_max_ns;        /* that it told; negative: none */
	int64_t line_error_max_ns;   /* what a line was off at the next reading, with half of that reading's bracket */
	char why[OWN_CLOCK_WHY_BYTES];  /* of the last refusal; empty: none */
	char unfit[OWN_CLOCK_WHY_BYTES]; /* why the whole measurement does not count; empty: it does */
};

struct own_clock {
	const char *name;            /* as the plan has it */
	const struct port_tai *tai;
	struct source *source;       /* NULL: the system's clock */
	struct clockline line;
	atomic_bool seen, stop;
	struct port_thread *thread;
	struct own_clock_account account;
};

/** Open the clock of a plan. @return exit code, with its reason on stderr unless it is EXIT_DONE; own_clock_close frees it */
int own_clock_open(struct own_clock *clock, const struct plan *plan, const struct port_tai *tai);
void own_clock_close(struct own_clock *clock);
/** Start to follow another clock; nothing to do for the system's clock. @return 0 or -errno */
int own_clock_start(struct own_clock *clock);
void own_clock_stop(struct own_clock *clock);

/** True when times can be turned. */
bool own_clock_seen(const struct own_clock *clock);
/** A time of the system's clock, by this one; as it is while there is no line. Real-time safe. */
static inline int64_t own_clock_from_system_tai_ns(const struct own_clock *clock, int64_t system_tai_ns)
{
	struct twoway_line line;

	if (!clock->source)
		return system_tai_ns;
	line = clockline_read(&clock->line);
	return line.valid ? twoway_line_to_peer_ns(&line, system_tai_ns) : system_tai_ns;
}

#endif
