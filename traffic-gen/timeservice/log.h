/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bw-timed says, as NDJSON: ready, sync, rejected, state, step, refused; each with time_tai_ns (of the system's clock),
 * monotonic_ns and state; and, where it is asked for, exchange, as short as can be (timeservice/recompute.h reads it). Functions return 0, or -EIO when the stream has failed.
 */
#ifndef BW_TIMESERVICE_LOG_H
#define BW_TIMESERVICE_LOG_H

#include <stdint.h>

#include "base/json.h"
#include "timeservice/counter_check.h"
#include "timeservice/page.h"
#include "timeservice/select.h"
#include "timeservice/server.h"
#include "timeservice/settings.h"

struct timed_log {
	struct json json;
	int tai_utc_s; /* of the stamps; a guess where nobody has told */
	int64_t root_distances_ns[SELECT_MAX]; /* of each server's last exchange that was told; 0 before */
};

/* A batch whose line was published. */
struct timed_sync {
	int64_t offset_ns;  /* what was published before less what is known now; positive: it was ahead */
	int64_t delay_ns, bound_ns, u_ns;
	double rate_ppb;    /* of the counter against nominal; positive: it is fast */
	bool kernel_stamps, interleaved;
	int servers;        /* combined */
	uint64_t epoch;
	/* Where exchanges are logged: what was selected from, and the line before it is slewed. */
	const struct select_candidate *candidates; /* NULL: they are not */
	int candidate_count;
	uint64_t at_ticks;
	struct estimate_line line;
};

void timed_log_init(struct timed_log *log, FILE *out, int tai_utc_s);
int timed_log_ready(struct timed_log *log, const char *state, const struct settings *settings, const struct local_time *local,
		    const char *page, const struct counter_check *counter);
int timed_log_sync(struct timed_log *log, const char *state, const struct timed_sync *sync);
/** A sample that goes into the estimate of a server. @param batch  its number; of each server another one */
int timed_log_sample(struct timed_log *log, int server, uint64_t batch, const struct exchange_sample *sample);
/** An exchange between batches. */
int timed_log_check(struct timed_log *log, int server, const struct exchange_stamps *stamps, int64_t t2_utc_ns,
		    int64_t root_distance_ns);
int timed_log_rejected(struct timed_log *log, const char *state, const struct server *server, unsigned int reject);
/** More was refused than is told one by one. */
int timed_log_more_rejected(struct timed_log *log, const char *state, int64_t count);
/** The page was taken away: made anew, or why it is not. */
int timed_log_page(struct timed_log *log, const char *state, const char *what);
/** A change of the state. */
int timed_log_state(struct timed_log *log, const char *state, uint32_t page_state, uint32_t reason);
int timed_log_step(struct timed_log *log, const char *state, int64_t step_ns, uint64_t epoch);
/** A server contradicts what it said before. */
int timed_log_contradiction(struct timed_log *log, const char *state, const struct server *server, int64_t step_ns);
/** The counter is not fit to serve. @param used  it is used all the same, as was asked for ("counter"); else "refused" */
int timed_log_counter(struct timed_log *log, const char *reason, bool used);

#endif
