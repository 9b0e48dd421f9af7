/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time service: batches of exchanges with each server at an interval, a check in between, and after each the page. The counter
 * is watched all the while, in batches too. One thread; it waits for a time, a signal or a datagram, and for nothing else.
 */
#ifndef BW_TIMESERVICE_SERVICE_H
#define BW_TIMESERVICE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "port/port_feed.h"
#include "port/port_wait.h"
#include "timeservice/counter_check.h"
#include "timeservice/log.h"
#include "timeservice/page.h"
#include "timeservice/server.h"
#include "timeservice/settings.h"

struct service {
	const struct settings *settings;
	struct timepage *page;
	struct timed_log *log;
	struct counter_check *counter;
	struct port_feed *feed;         /* NULL: nobody is fed; the caller's */
	struct server_context context;
	struct server servers[SELECT_MAX];
	struct select_candidate candidates[SELECT_MAX];
	struct estimate_line line;      /* what was published last, as an estimate; not valid: nothing to go on from */
	struct timepage_line before;    /* of the page; state TIMEPAGE_NONE: nothing yet */
	uint32_t state, reason;         /* of the page */
	int combined;                   /* servers in the line */
	int32_t leaps_s;                /* leap seconds since the start: what TAI - UTC has grown by */
	bool held, ended;
	int page_err;                   /* why the page could not be made anew, as was told; 0: it is there */
	bool answer_told;               /* the status' text is of a server's answer */
	uint64_t batches_begun;         /* of each server */
	int64_t quick_left;             /* batches that come soon */
	int64_t pace_ns;                /* from one batch to the next; grows to the interval */
	int64_t next_batch_monotonic_ns, next_check_monotonic_ns;
	int64_t next_watch_monotonic_ns; /* of the counter; in batches too */
	int64_t leap_over_monotonic_ns; /* when an announced leap second has passed, whatever the interval; 0: none is announced */
	int next_check_server;
	int64_t refusals_told, refusals_untold; /* since the last batch or check */
	struct timepage_status status;
};

/**
 * Prepare.
 *
 * @param page, waiter, log, counter  stay the caller's; service_close does not close them
 * @return 0 or -errno
 */
int service_init(struct service *service, const struct settings *settings, struct timepage *page, struct waiter *waiter,
		 struct timed_log *log, const struct local_time *local, struct counter_check *counter);
/** Ask until the end. @return 0; -EXDEV: the counter runs at another rate, as after a move to another machine; or -errno */
int service_run(struct service *service);
void service_close(struct service *service);

/** Word of a log line: init, locked, hold or unsynchronised. */
const char *service_state_word(const struct service *service);

#endif
