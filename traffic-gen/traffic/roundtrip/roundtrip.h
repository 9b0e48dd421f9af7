/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of STAMP round trips, each run to its end on the thread that calls it. */
#ifndef BW_ROUNDTRIP_H
#define BW_ROUNDTRIP_H

#include "base/histogram.h"
#include "base/pause.h"
#include "base/tally.h"
#include "time/stepwatch.h"
#include "traffic/roundtrip/side.h"
#include "traffic/roundtrip/stamp_packet.h"
#include "traffic/roundtrip/trips.h"

/** Sends requests back (a Session-Reflector). It holds one datagram at a time; what comes meanwhile waits in the socket. */
struct reflector {
	struct side side;
	bool stateful;            /* number replies by a count of its own, not as the requests */
	int64_t hold_ns;          /* asleep between receiving and sending, so that both ends have slept alike */
	bool delays_in_residence; /* its known delays lie between its stamps: it waits alike, and says so */
	int64_t end_monotonic_ns; /* when to end; INT64_MAX: when a stop is requested */
	uint64_t received;        /* datagrams, of which: */
	uint64_t reflected;
	uint64_t malformed;       /* were no request */
	uint64_t unsent;          /* replies that the system did not take */
	struct histogram *residence;                       /* T3 - T2 */
	struct histogram *receive_stack, *transmit_stack;  /* T2 - kernel receive stamp, kernel transmit stamp - T3 */
	uint8_t packet[STAMP_DATAGRAM_BYTES_MAX + 1];      /* one byte more tells what is too long */
};

/** Send back until the end. Memory and work a wake-up are bounded, and a reply is as long as its request. */
void reflector_run(void *reflector);

/** When it has the token: several senders take short turns on one grid, so that what changes meanwhile changes for all. */
struct turns {
	int64_t first_tai_ns; /* of the local clock; 0: at once */
	size_t trips;         /* of a turn; 0: there are no turns */
	size_t run_up;        /* the first of them, which do not count: who has not been asked for long is cold */
	int64_t every_ns;     /* from the beginning of one to the next */
};

/** Times round trips (a Session-Sender), one at a time. */
struct prober {
	struct side side;
	struct address peer;
	size_t size_bytes;
	uint16_t ssid;            /* random: tells its session's replies from others */
	struct pause_lengths jitter; /* of requests on their grid */
	int64_t interval_ns, timeout_ns;
	int64_t duration_ns;      /* INT64_MAX: none */
	size_t count;             /* requests at most: there is a trip for each */
	struct turns turns;
	struct trip *trips;
	uint32_t next_sequence;   /* of the next request, and the place of its trip */
	bool open;                /* the last request is waited for */
	struct tally sent, received;
	uint64_t unsent, late, duplicates, foreign;
	uint64_t invalid;         /* replies that stayed at the peer for a time that cannot be */
	struct stepwatch watch;   /* of the local clock */
	bool complete;
	struct histogram *round_trip, *residence, *round_trip_without_residence;
	struct histogram *own_send, *own_receive, *below_stamps;
	uint8_t request[STAMP_DATAGRAM_BYTES_MAX];
	uint8_t reply[STAMP_DATAGRAM_BYTES_MAX + 1];
};

/** Measure until the end, or until a stop is requested. */
void prober_run(struct prober *prober);

#endif
