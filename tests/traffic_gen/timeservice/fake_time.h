/* SPDX-License-Identifier: Apache-2.0 */
/** A counter that a test sets, and a page with one service's lines. */
#ifndef BW_TEST_FAKE_TIME_H
#define BW_TEST_FAKE_TIME_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "port/port_clock.h"
#include "port/port_timeservice.h"
#include "timeservice/bwtime.h"
#include "timeservice/fixed_mul.h"
#include "timeservice/page.h"

#define UTC_NS INT64_C(1800000000000000000)
#define RATE (UINT64_C(1) << 47)             /* half a nanosecond a tick */
#define SECOND_TICKS UINT64_C(2000000000)
#define RETRY_TICKS (UINT64_C(1) << 29)

static uint64_t fake_ticks = UINT64_C(1) << 40;
static uint32_t fake_kind = PORT_COUNTER_TSC;
static void (*fake_hook)(void); /* called once, while the counter is read */

uint64_t fake_counter_read(void);
uint32_t fake_counter_kind(void);

uint64_t fake_counter_read(void)
{
	void (*hook)(void) = fake_hook;

	fake_hook = NULL;
	if (hook)
		hook();
	return fake_ticks;
}

uint32_t fake_counter_kind(void)
{
	return fake_kind;
}

/** A line that begins now, with UTC_NS at 2^40 ticks and no slew. */
static inline struct timepage_line line_now(void)
{
	return (struct timepage_line){
		.base_ticks = fake_ticks,
		.base_utc_ns = UTC_NS + (int64_t)fixed_mul(fake_ticks - (UINT64_C(1) << 40), RATE),
		.mult = RATE,
		.settled_ticks = fake_ticks,
		.settled_mult = RATE,
		.low_ns = 800,
		.high_ns = 1000,
		.growth_ppb = 2000,
		.scatter = { .offset_ns2 = 10000, .rate_ns2_per_s2 = 4 },
		.heard_ticks = fake_ticks - SECOND_TICKS,
		.usable_until_ticks = fake_ticks + 100 * SECOND_TICKS,
		.epoch = 1,
		.state = TIMEPAGE_SYNCHRONISED,
		.stratum = 2,
		.tai_utc_s = 37,
	};
}

static inline struct timepage *service(const char *path)
{
	struct timepage *page = NULL;
	int err = timepage_create(path, fake_kind, 2000000000, &page);

	CHECK_INT(err, 0);
	if (err)
		exit(check_result());
	return page;
}

static inline struct bwtime *reader(const char *path, unsigned int flags)
{
	struct bwtime *handle = NULL;

	CHECK_INT(bwtime_open(path, flags, &handle), 0);
	return handle;
}

/** Begin with no page. */
static inline void remove_page(const char *path)
{
	char lock[1024];

	snprintf(lock, sizeof(lock), "%s.lock", path);
	remove(lock);
	remove(path);
}

#endif
