/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At which rate a connection's data arrives at its peer, by what each acknowledgement says (draft-cheng-iccrg-delivery-rate-estimation-02):
 * what arrived between the sending of a segment and its acknowledgement, over the longer of the times in which that was sent and
 * acknowledged.
 */
#ifndef BW_DELIVERY_RATE_H
#define BW_DELIVERY_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Of a segment: how the connection stood when it was sent. */
struct delivery_mark {
	uint64_t delivered_bytes, delivered_at_us; /* what had arrived, and when the last of it was acknowledged */
	uint64_t flight_sent_us;                   /* when that had been sent */
	bool limited;                              /* the program had nothing more to send */
};

/* Of a connection; zeros are its beginning. */
struct delivery {
	uint64_t delivered_bytes, delivered_at_us, flight_sent_us;
	uint64_t limited_until_bytes; /* the program had nothing more to send; over when so much has arrived. 0: it has */

	/* Of the acknowledgement that is handled: the segment of it that was sent last. */
	struct delivery_mark newest;
	uint64_t newest_sent_us; /* 0: none */
};

struct delivery_sample {
	double bytes_per_s;       /* 0: the acknowledgement tells none */
	uint64_t delivered_bytes; /* what had arrived when its segment was sent */
	bool limited;
};

/** A segment goes out. @param idle nothing else is in flight */
void delivery_on_sent(struct delivery *delivery, struct delivery_mark *mark, bool idle, uint64_t now_us);
/** A segment arrived. @param sent_us when it was sent last */
void delivery_on_arrival(struct delivery *delivery, const struct delivery_mark *mark, uint32_t size_bytes, uint64_t sent_us,
			 uint64_t now_us);
/** The program has nothing more to send, though more could be. */
void delivery_is_limited(struct delivery *delivery, uint32_t in_flight_bytes);
/** What the acknowledgement says. @param min_rtt_us what is faster is no rate of the path */
struct delivery_sample delivery_take_sample(struct delivery *delivery, uint64_t min_rtt_us);

#endif
