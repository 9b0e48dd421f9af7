/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BW_CONGESTION_MODEL_H
#define BW_CONGESTION_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* Of a connection; zeros are its beginning. */
struct congestion_model_state {
	enum { MODEL_STARTUP, MODEL_DRAIN, MODEL_CRUISE, MODEL_PROBE_RTT } phase;
	uint64_t round_end_bytes; /* a round trip ends when what is sent with so much delivered arrives */
	bool round_begins;

	/* The path: the largest rate of the last round trips and of as many before, the least round trip. */
	double rates_bytes_per_s[2];
	unsigned int rate_rounds;
	uint64_t min_rtt_us, min_rtt_at_us, last_rtt_us;
	bool began_idle; /* nothing was in flight before what is not yet acknowledged */

	/* Startup ends when the rate has not grown for some round trips. */
	double full_bytes_per_s;
	unsigned int full_rounds;
	bool full;

	unsigned int gain; /* which one of the cycle */
	uint64_t gain_at_us;

	uint64_t probe_until_us, probe_round_end_bytes, probe_min_rtt_us; /* 0: not yet */

	/* What was acknowledged at once beyond the rate: the most of the last rounds, and of those before. */
	uint64_t extra_since_us, extra_delivered_bytes;
	double extra_bytes[2];
	unsigned int extra_rounds;

	double pace_bytes_per_s;
	double paced_until_us;      /* when what was sent has gone at that pace */
	uint32_t kept_window_bytes; /* of before a time-out, or a probe of the round trip */
};

#endif
