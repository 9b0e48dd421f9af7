/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow control of RTDiP's low messages by their receiver: what is not asked for does not stand in front of its card. Pure: the
 * caller sends, receives and gives the time.
 *
 * The first fragment of a message goes as it is, and says that there is a message. Each further one waits until the receiver
 * has granted its place: a grant is "of this message all that begins below this limit", so that a later one stands for all
 * before it, and one that comes twice or late does nothing. Of all streams together the receiver has a window out, granted and
 * not yet come; it gives room in it to the message that has to be there first. Places are counted, not arrivals: what follows a
 * lost fragment gives its room back. A sender that hears nothing asks, by a fragment without data, and is told again; one that
 * is not heard of loses its room until it is. So neither lost fragments nor lost grants nor a dead sender stop anything for
 * good, and nothing is dropped.
 */
#ifndef BW_RTDIP_FLOW_H
#define BW_RTDIP_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtdip.h"
#include "traffic/rtdip_fragment.h"

#define RTDIP_FLOW_ASK_NS INT64_C(10000000)     /* 10 ms: a sender that waits asks so often */
#define RTDIP_FLOW_SILENCE_NS INT64_C(50000000) /* 50 ms, several questions: the receiver waits for nobody longer */

enum {
	RTDIP_GRANT_BYTES = 12,          /* run, message, limit: 32 bits each, network order */
	RTDIP_FLOW_WINDOW_BYTES = 65536, /* what the kernel hands a card at a time of TCP, too: two milliseconds of the slowest */
	RTDIP_FLOW_SHARE_BYTES = 16384,  /* granted at a time: a grant is a frame that has to be sent */
	RTDIP_FLOW_STREAMS_MAX = RTDIP_HANDLE_PORTS_MAX,
};

struct rtdip_grant {
	uint32_t run;         /* of both ends: a grant of another is none */
	uint32_t message;     /* struct rtdip_fragment */
	uint32_t limit_bytes; /* fragments that begin below it may be sent */
};

void rtdip_grant_pack(const struct rtdip_grant *grant, uint8_t bytes[RTDIP_GRANT_BYTES]);

/** Read a grant. @return 0, or -EBADMSG: it is none; grant untouched then */
int rtdip_grant_parse(const uint8_t *bytes, size_t size_bytes, struct rtdip_grant *grant);

/* What the sender of one stream may send. */
struct rtdip_credit {
	uint32_t run, size_bytes;
	uint32_t message, limit_bytes;
	int64_t ask_at_monotonic_ns; /* INT64_MAX: it waits for no grant */
	uint64_t granted, refused, asked;
};

void rtdip_credit_init(struct rtdip_credit *credit, uint32_t run, uint32_t size_bytes);

/** A message begins: its first fragment may be sent. */
void rtdip_credit_begin(struct rtdip_credit *credit, uint32_t message);

/** Whether the fragment that begins there may be sent now. */
static inline bool rtdip_credit_allows(const struct rtdip_credit *credit, uint32_t offset)
{
	return offset < credit->limit_bytes;
}

/**
 * Take what came as a grant.
 *
 * @return 0, -EALREADY: it tells nothing new, or -EBADMSG: it is none, or of what was never sent; it is counted and does nothing
 */
int rtdip_credit_take(struct rtdip_credit *credit, const uint8_t *bytes, size_t size_bytes);

/** The stream waits for a grant. */
void rtdip_credit_wait(struct rtdip_credit *credit, int64_t now_monotonic_ns);
/** The stream has sent a fragment. */
static inline void rtdip_credit_sent(struct rtdip_credit *credit)
{
	credit->ask_at_monotonic_ns = INT64_MAX;
}
/** Whether to ask now: a fragment without data, of the place that comes next. */
bool rtdip_credit_ask(struct rtdip_credit *credit, int64_t now_monotonic_ns);

/* One stream at its receiver. */
struct rtdip_flow_stream {
	uint32_t size_bytes;
	int64_t budget_ns;
	bool known;                    /* something of it has come */
	bool silent;                   /* it has not been heard of since it was granted something */
	bool due;                      /* a grant of it is to be sent */
	struct rtdip_address from;
	uint32_t message;              /* the current one */
	uint32_t taken_bytes;          /* of it: behind the furthest that came */
	uint32_t granted_bytes;        /* taken_bytes or more */
	uint32_t held_bytes;           /* of the window */
	int64_t deadline_monotonic_ns; /* of the message: its first sign and the budget */
	int64_t stirred_monotonic_ns;  /* when it was last heard of, or granted something */
};

/* All streams of a receiver. */
struct rtdip_flow {
	uint32_t run, held_bytes, stream_count;
	struct rtdip_flow_stream streams[RTDIP_FLOW_STREAMS_MAX];
	uint64_t grants, silences;
};

void rtdip_flow_init(struct rtdip_flow *flow, uint32_t run);

/** Add a stream of messages of a size, which have to be there within a budget. @return its number, or -ENOSPC */
int rtdip_flow_add(struct rtdip_flow *flow, uint32_t size_bytes, int64_t budget_ns);

/** A fragment of a stream has come. @param length_bytes  of the message; 0: its sender asks */
void rtdip_flow_take(struct rtdip_flow *flow, uint32_t number, const struct rtdip_address *from,
		     const struct rtdip_fragment *fragment, uint32_t length_bytes, int64_t now_monotonic_ns);

/**
 * Give out the room that there is; call until it returns false, after each rtdip_flow_take() and rtdip_flow_tend().
 *
 * @return true: send this grant to that stream's sender (`from`)
 */
bool rtdip_flow_grant(struct rtdip_flow *flow, int64_t now_monotonic_ns, uint32_t *number, struct rtdip_grant *grant);

/** Take the room of those back that are not heard of any more. Call when all that has come is taken. */
void rtdip_flow_tend(struct rtdip_flow *flow, int64_t now_monotonic_ns);

/** When rtdip_flow_tend() has something to do; INT64_MAX: never. */
int64_t rtdip_flow_deadline_monotonic_ns(const struct rtdip_flow *flow);

#endif
