/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Two-way time transfer: wire format, and an estimator of a peer's clock as a pure function of exchanges.
 *
 * An exchange has four stamps: t1 local send, t2 peer receive, t3 peer send, t4 local receive, each CLOCK_TAI ns of the
 * clock of its machine (in bw-clock's sampler local is a counter in ns, and the peer TAI): names end in _local_ns or
 * _peer_ns. A stamp of sending is taken before, one of receiving after the event, and no delay is negative;
 * so the offset of the peer (peer - local; positive: the peer is ahead) lies in the interval [t3 - t4, t2 - t1] whatever the
 * two paths take: its middle is the usual estimate, half its width, which is half the round trip, the hard bound of it.
 *
 * The line. The intervals of the shortest exchanges of the last bursts limit offset and rate of the peer together.
 * Every clock whose rate changes by at most `wander_ppb_per_s` has, in the age T before now, an offset within
 * wander/2 * T^2 of a straight line; the intervals are widened by that much, and the set of all lines that pass through all
 * of them is found exactly (a linear programme in two unknowns). The current line is the middle of that set; its bound
 * is half the set's width. The bound is never more than about half the round trip of the exchange that carries it, less when
 * paths vary in both directions, and it grows between bursts with the width of the set of rates. An empty set means
 * that the peer stepped (or broke the limits in the configuration): that is reported, and the window starts anew.
 *
 * The estimator reads no clock and is not thread-safe; publish copies of struct twoway_line to other threads.
 */
#ifndef BW_TWOWAY_H
#define BW_TWOWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TWOWAY_PACKET_BYTES 48
#define TWOWAY_VERSION 1
#define TWOWAY_SERIES_MAX 4096

enum twoway_kind { TWOWAY_REQUEST = 1, TWOWAY_REPLY = 2 };

/** A request (t2 = t3 = 0) or a reply. The server copies sequence, cookie and t1; the client matches all three. */
struct twoway_packet {
	enum twoway_kind kind;
	uint32_t sequence;
	uint64_t cookie;
	int64_t t1_local_ns;
	int64_t t2_peer_ns;
	int64_t t3_peer_ns;
};

struct twoway_exchange {
	int64_t t1_local_ns;
	int64_t t2_peer_ns;
	int64_t t3_peer_ns;
	int64_t t4_local_ns;
};

/** Offset of the peer as a straight line of local time. Plain data: copy it as you like. */
struct twoway_line {
	bool valid;
	int64_t at_local_ns;      /* local CLOCK_TAI at which offset and bound hold */
	int64_t offset_ns;        /* peer - local */
	int64_t rate_ppb;         /* d(offset)/d(local time); positive: the peer runs fast */
	int64_t bound_ns;         /* |true offset - offset_ns| at at_local_ns is at most this */
	int64_t bound_growth_ppb; /* growth of the bound with the distance from at_local_ns */
	int64_t wander_ppb_per_s; /* growth of that growth */
};

struct twoway_config {
	int64_t window_ns;        /* exchanges older than this no longer carry the line */
	int64_t wander_ppb_per_s; /* how fast the peer's rate against ours may change */
	int64_t rate_limit_ppb;   /* the largest rate of a peer against ours */
	int64_t min_way_ns;       /* each way takes at least so long, as was measured; 0: nothing is known of it */
	int64_t slack_ns;         /* by so much an interval is widened either way: what the stamps may be wrong by */
};

/** What a burst did to the line. */
enum twoway_outcome {
	TWOWAY_NOTHING, /* the burst had no valid exchange: the line is as before */
	TWOWAY_UPDATED, /* the line follows the exchange */
	TWOWAY_STEPPED, /* the exchange contradicts the line beyond both bounds: the line starts anew from it */
};

/** The kept (shortest) exchange of a burst and the line that was published after it. */
struct twoway_sample {
	int64_t local_ns;  /* middle of t1 and t4 */
	int64_t offset_ns; /* middle of the exchange's interval */
	int64_t bound_ns;  /* half its round trip */
	struct twoway_line line;
};

/** The run as a whole. Every figure but the counts is 0 while kept is 0. */
struct twoway_summary {
	uint64_t exchanges;   /* complete ones */
	uint64_t kept;        /* one a burst */
	uint64_t invalid;     /* refused: negative round trip or stamps out of order */
	uint64_t steps;
	int64_t at_local_ns;  /* where offset and rate hold: the end of the interval asked for */
	int64_t offset_ns;    /* of the fit there */
	int64_t rate_ppb;     /* of the fit there */
	int64_t bound_ns;     /* largest bound of a used line while it was in use in the interval */
	int64_t residual_ns;  /* largest distance between a used line, while in use in the interval, and the fit */
	int64_t rtt_min_ns;   /* of all valid exchanges */
	int64_t rtt_p50_ns;
};

struct twoway;

/** Write the packet in its wire format. */
void twoway_pack(const struct twoway_packet *packet, uint8_t wire[TWOWAY_PACKET_BYTES]);

/**
 * Read a packet from the wire. Return 0; -EMSGSIZE (length is not 48); -EBADMSG (magic, kind, reserved not 0);
 * -EPROTONOSUPPORT (version). *packet is written only on success.
 */
int twoway_parse(const void *wire, size_t length, struct twoway_packet *packet);

/** Round trip without the peer's own time, (t4 - t1) - (t3 - t2), and middle of the interval, in ns. For valid exchanges. */
int64_t twoway_rtt_ns(const struct twoway_exchange *exchange);
int64_t twoway_offset_ns(const struct twoway_exchange *exchange);

/**
 * True when stamps are positive and in order (t1 <= t4, t2 <= t3), the round trip is not negative, the whole takes less
 * than 2^40 ns (18 minutes), and the clocks differ by less than 2^61 ns (73 years). Whatever a peer sends, no sum of
 * the estimator's overflows then.
 */
bool twoway_exchange_valid(const struct twoway_exchange *exchange);

/** 30 s window, 500 ppb/s wander, 500 ppm rate. */
struct twoway_config twoway_default_config(void);

/** Make an estimator; memory is fixed (about 0.7 MiB). Return NULL with errno EINVAL or ENOMEM. The caller owns it. */
struct twoway *twoway_create(const struct twoway_config *config);

void twoway_destroy(struct twoway *twoway);

/**
 * Add one exchange of the current burst. Return 0, or -EINVAL for an invalid one, or one that is faster than min_way_ns allows,
 * which is counted and not used.
 */
int twoway_add(struct twoway *twoway, const struct twoway_exchange *exchange);

/**
 * End the burst: keep its shortest exchange, and renew the line. Bursts come in the order of local time.
 * When TWOWAY_STEPPED is returned, *step_ns (may be NULL) is the kept exchange's offset less the old line there.
 */
enum twoway_outcome twoway_end_burst(struct twoway *twoway, int64_t *step_ns);

/** The current line; not valid before the first burst. */
struct twoway_line twoway_current(const struct twoway *twoway);

/**
 * Fit the whole run, from before and after each moment, and compare the lines that were used in the local time
 * [from_local_ns, to_local_ns] with it. A line is in use from its own burst to the next one. May be called
 * repeatedly.
 */
void twoway_summarise(const struct twoway *twoway, int64_t from_local_ns, int64_t to_local_ns,
		      struct twoway_summary *summary);

/**
 * The kept exchanges in order of time, at most TWOWAY_SERIES_MAX: when the store is full, of each two neighbours the
 * one with the shorter round trip stays, and from then on every second burst, fourth, … enters.
 */
size_t twoway_series(const struct twoway *twoway, const struct twoway_sample **samples);

/** Offset of the peer at a local time, in ns, by the line. Real-time safe. */
static inline int64_t twoway_line_offset_ns(const struct twoway_line *line, int64_t local_ns)
{
	double age_s = (double)(local_ns - line->at_local_ns) * 1e-9; /* exact enough, and no product overflows */

	return line->offset_ns + (int64_t)(age_s * (double)line->rate_ppb);
}

/** The same moment in the peer's clock, in ns. Real-time safe. */
static inline int64_t twoway_line_to_peer_ns(const struct twoway_line *line, int64_t local_ns)
{
	return local_ns + twoway_line_offset_ns(line, local_ns);
}

/** Bound of twoway_line_offset_ns() there, in ns. Real-time safe. */
int64_t twoway_line_bound_ns(const struct twoway_line *line, int64_t local_ns);

#endif
