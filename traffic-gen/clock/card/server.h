/* SPDX-License-Identifier: Apache-2.0 */
/* The timecard's server: answers calibrations of every page, and publishes the source's time on each (card_serve.c). */
#ifndef BW_CLOCK_SERVER_H
#define BW_CLOCK_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "clock/card/page.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "clock/card/sampler.h"
#include "clock/card/spin.h"

enum { SERVER_PAGES_MAX = 64, SERVER_UNITS = 2 };

struct served {
	char name[CARD_SOURCE_BYTES];
	const char *path;
	struct port_page mapping;
	struct card_page *page;
	uint32_t answered_number;
	enum card_unit unit;
	uint64_t answered, published;
};

struct server {
	struct port_tai tai;
	size_t page_count;
	struct served pages[SERVER_PAGES_MAX];
	const struct served *source; /* NULL: this machine's TAI */
	uint64_t hz;
	struct sampler samplers[SERVER_UNITS];
	struct card_line source_line;
	uint64_t source_missing; /* publications without a fresh line of the source */
	uint64_t source_refused; /* of them, lines that cannot be */
	struct spin spin;
	int64_t end_monotonic_ns;
	int cpu;
	struct port_scheduling scheduling;
};

/**
 * Serve until end_monotonic_ns or until the process is to end; the body of a thread.
 *
 * @param argument  struct server, filled in
 */
void server_run(void *argument);

#endif
