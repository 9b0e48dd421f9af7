/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One server's clock against this machine's counter, from many batches of exchanges. Pure.
 *
 * Two answers are found side by side. The hard one is an interval (timeservice/interval.h): what every exchange allows, whatever the
 * two ways took, as long as the counter's rate stays within its limit of drift: of the server's clock, which shows whether it contradicts
 * itself, and of UTC, which each exchange allows as far from the server as the server itself said then. So whatever spans time, a rate for one,
 * has the root distance of each of its ends. The likely one is a Kalman filter of offset and
 * rate (timeservice/weighted_fit.h): of each batch the fastest way there and the fastest way back count, trusted the less the longer
 * both together took than the fastest of late, and the more the batch's exchanges scatter; what it does not expect is believed only in part.
 * The line that is told is the likely one, held inside the interval, with the filter's own variance.
 *
 * Offsets here are of the server against the counter (server - local; positive: the server is ahead), as in time/twoway.h.
 */
#ifndef BW_TIMESERVICE_ESTIMATE_H
#define BW_TIMESERVICE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "timeservice/ntp_exchange.h"
#include "timeservice/scatter.h"

enum {
	ESTIMATE_BATCH_MAX = 64,
	ESTIMATE_USER_PERCENT = 50, /* asymmetry_percent at least, of exchanges without the kernel's stamps */
};

struct estimate_settings {
	int64_t min_way_ns;         /* each way takes at least that; 0: not known */
	int64_t drift_limit_ppb;    /* the counter's rate stays that near to its mean over the last minutes: carries the interval */
	int64_t rate_limit_ppb;     /* largest rate between server and counter */
	int64_t asymmetry_percent;  /* of the round trip, by which the ways may differ: a part of U, never of the interval */
};

struct estimate_line {
	bool valid;
	int64_t at_local_ns;
	int64_t heard_local_ns;     /* of the last exchange that agrees */
	int64_t offset_ns;
	double rate_ppb;
	int64_t low_ns, high_ns;    /* UTC's offset is within offset_ns - low_ns .. offset_ns + high_ns at at_local_ns, */
	int64_t growth_ppb;         /* and both grow by that with the distance from there, */
	struct scatter scatter;     /* variance of offset_ns against the truth, and its growth */
};

enum estimate_outcome {
	ESTIMATE_NOTHING,       /* no usable exchange */
	ESTIMATE_UPDATED,
	ESTIMATE_CONTRADICTION, /* outside the interval: the server has stepped, or the counter; it starts anew from this batch */
};

struct estimate; /* opaque */

/** 15 ppm, 500 ppm, 10 %. */
struct estimate_settings estimate_default_settings(void);

/** @return NULL with errno EINVAL or ENOMEM */
struct estimate *estimate_create(const struct estimate_settings *settings);
void estimate_destroy(struct estimate *estimate);

/** Forget everything. */
void estimate_restart(struct estimate *estimate);

/** Take a sample of the open batch, in the order of time. @return 0, or -ERANGE: faster than min_way_ns allows */
int estimate_add(struct estimate *estimate, const struct exchange_sample *sample);

/**
 * End the batch.
 *
 * @param step_ns  of a contradiction: what the server's clock has gained against the old line; may be NULL
 */
enum estimate_outcome estimate_end_batch(struct estimate *estimate, int64_t *step_ns);

/** The line after the last batch. */
struct estimate_line estimate_current(const struct estimate *estimate);

/** Round trip of the last batch: of its fastest ways together. */
int64_t estimate_delay_ns(const struct estimate *estimate);

/** Batches since the beginning, or since the last contradiction. */
uint64_t estimate_batches(const struct estimate *estimate);

/**
 * Take an exchange that is in no batch: it says what the offset can be, not what is fit.
 *
 * @param local_ns          within the exchange
 * @param root_distance_ns  from the server to UTC, then
 * @return false: that lies outside the interval; nothing was taken
 */
bool estimate_check(struct estimate *estimate, int64_t local_ns, int64_t low_ns, int64_t high_ns, int64_t root_distance_ns);

/** Offset by a line at another time. */
int64_t estimate_offset_at(const struct estimate_line *line, int64_t local_ns);
/** What low_ns and high_ns have grown by at another time. */
double estimate_growth_at(const struct estimate_line *line, int64_t local_ns);

/** What a sample allows of the server's offset in the middle of it, by itself. */
void estimate_interval(const struct exchange_sample *sample, const struct estimate_settings *settings, int64_t *local_ns, int64_t *low_ns,
		       int64_t *high_ns);

#endif
