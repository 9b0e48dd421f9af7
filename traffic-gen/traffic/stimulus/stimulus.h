/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stimulus and response, as in "Distributed control loops on Linux", 3.2: a server sends small messages that bear its time, one at
 * a time, to the one client that has connected; the client sends each back at once. Each way from end to end of the two programs
 * is a leg; its ends are points of bw-events, and each end tells what its own clock makes of the leg, which is less than nothing
 * where the clocks disagree.
 */
#ifndef BW_STIMULUS_H
#define BW_STIMULUS_H

#include "base/histogram.h"
#include "base/tally.h"
#include "time/stepwatch.h"
#include "traffic/roundtrip/side.h"
#include "traffic/stimulus/stimulus_packet.h"

/* What an end makes of the leg towards it, by its own clock. Of the thread that measures, until that has ended. */
struct leg {
	struct histogram *received_minus_sent;
	uint64_t negative;          /* less than nothing */
	uint32_t first_negative;    /* its number */
	int64_t first_negative_ns;
};

/** Both ends have this. */
struct stimulus_end {
	struct side side;           /* its thread, clock and known delays; the socket is the connection */
	int64_t delay_turn;         /* in each second turn of so many stimuli the known delays lie within the leg; 0: always */
	int64_t timeout_ns;
	uint32_t size_bytes, count;
	struct leg leg;
	struct histogram *sending[2]; /* from the stamp to the call that sends: without and with the known delay */
	struct tally sent, received;
	struct stepwatch watch;
	const char *failed;         /* why it came to no end; NULL: it did */
	int error;                  /* -errno of that, or 0 */
	uint8_t in[STIMULUS_BYTES_MAX], out[STIMULUS_BYTES_MAX];
};

struct stimulus_server {
	struct stimulus_end end;
	port_socket listener;
	int64_t interval_ns;
	struct histogram *round_trip;
};

struct stimulus_client {
	struct stimulus_end end;
	struct address peer;
	struct histogram *residence; /* from the stimulus to its response */
};

/** Run an end until its last message, or until a stop is requested. */
void stimulus_server_run(void *server);
void stimulus_client_run(void *client);

/**
 * Whether the known delays lie within the leg of a stimulus. Else they lie on the other side of its stamp: the processors are as
 * busy, or as long asleep, in either turn.
 */
static inline bool stimulus_is_delayed(const struct stimulus_end *end, uint32_t number)
{
	return !end->delay_turn || (int64_t)number / end->delay_turn % 2 == 1;
}

/** Wait for a whole message and read it. @return 0; -ECONNRESET: the peer has closed; -EPROTO: it is none; -EINTR; -ETIMEDOUT; -errno */
int stimulus_receive(struct stimulus_end *end, int64_t timeout_ns, struct stimulus *received);
/**
 * Send a whole message, behind the known delay where it lies within the leg.
 *
 * @param stamped_monotonic_ns  when it was stamped
 * @return 0 or -errno
 */
int stimulus_send(struct stimulus_end *end, const struct stimulus *stimulus, int64_t stamped_monotonic_ns);
/** Note what the own clock makes of a leg. */
void stimulus_record_leg(struct stimulus_end *end, const struct stimulus *received, int64_t received_tai_ns);
/** Note why an end came to none. */
void stimulus_fail(struct stimulus_end *end, const char *why, int err);

#endif
