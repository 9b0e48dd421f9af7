/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/rtdip_flow.h"

#include <errno.h>
#include <string.h>

#include "base/big_endian.h"
#include "numbers.h"

void rtdip_grant_pack(const struct rtdip_grant *grant, uint8_t bytes[RTDIP_GRANT_BYTES])
{
	big_endian_put(bytes, 4, grant->run);
	big_endian_put(bytes + 4, 4, grant->message);
	big_endian_put(bytes + 8, 4, grant->limit_bytes);
}

int rtdip_grant_parse(const uint8_t *bytes, size_t size_bytes, struct rtdip_grant *grant)
{
	if (size_bytes != RTDIP_GRANT_BYTES)
		return -EBADMSG;
	*grant = (struct rtdip_grant){ (uint32_t)big_endian_get(bytes, 4), (uint32_t)big_endian_get(bytes + 4, 4),
				       (uint32_t)big_endian_get(bytes + 8, 4) };
	return 0;
}

/* ---- the sender ---------------------------------------------------------------------------------------------------- */

void rtdip_credit_init(struct rtdip_credit *credit, uint32_t run, uint32_t size_bytes)
{
	*credit = (struct rtdip_credit){ .run = run, .size_bytes = size_bytes };
	rtdip_credit_begin(credit, 0);
}

void rtdip_credit_begin(struct rtdip_credit *credit, uint32_t message)
{
	credit->message = message;
	credit->limit_bytes = 1;
	credit->ask_at_monotonic_ns = INT64_MAX;
}

int rtdip_credit_take(struct rtdip_credit *credit, const uint8_t *bytes, size_t size_bytes)
{
	struct rtdip_grant grant;

	if (rtdip_grant_parse(bytes, size_bytes, &grant) != 0 || grant.run != credit->run ||
	    grant.limit_bytes > credit->size_bytes || (int32_t)(grant.message - credit->message) > 0) {
		credit->refused++;
		return -EBADMSG;
	}
	if (grant.message != credit->message || grant.limit_bytes <= credit->limit_bytes)
		return -EALREADY;
	credit->limit_bytes = grant.limit_bytes;
	credit->granted++;
	return 0;
}

void rtdip_credit_wait(struct rtdip_credit *credit, int64_t now_monotonic_ns)
{
	if (credit->ask_at_monotonic_ns == INT64_MAX)
		credit->ask_at_monotonic_ns = now_monotonic_ns + RTDIP_FLOW_ASK_NS;
}

bool rtdip_credit_ask(struct rtdip_credit *credit, int64_t now_monotonic_ns)
{
	if (now_monotonic_ns < credit->ask_at_monotonic_ns)
		return false;
	credit->ask_at_monotonic_ns = now_monotonic_ns + RTDIP_FLOW_ASK_NS;
	credit->asked++;
	return true;
}

/* ---- the receiver -------------------------------------------------------------------------------------------------- */

void rtdip_flow_init(struct rtdip_flow *flow, uint32_t run)
{
	memset(flow, 0, sizeof(*flow));
	flow->run = run;
}

int rtdip_flow_add(struct rtdip_flow *flow, uint32_t size_bytes, int64_t budget_ns)
{
	if (flow->stream_count == RTDIP_FLOW_STREAMS_MAX)
		return -ENOSPC;
	flow->streams[flow->stream_count] = (struct rtdip_flow_stream){ .size_bytes = size_bytes, .budget_ns = budget_ns };
	return (int)flow->stream_count++;
}

static void hold(struct rtdip_flow *flow, struct rtdip_flow_stream *stream, uint32_t bytes)
{
	flow->held_bytes += bytes - stream->held_bytes;
	stream->held_bytes = bytes;
}

/* Whether a fragment is of a message that begins by it. An older one comes late, unless nothing else has come for long: who counts
 * anew is a sender that began anew. */
static bool begins(const struct rtdip_flow_stream *stream, const struct rtdip_address *from, uint32_t message,
		   int64_t now_monotonic_ns)
{
	int32_t further = (int32_t)(message - stream->message);

	return !stream->known || !rtdip_same_address(&stream->from, from) || further > 0 ||
	       (further < 0 && now_monotonic_ns - stream->stirred_monotonic_ns >= RTDIP_FLOW_SILENCE_NS);
}

void rtdip_flow_take(struct rtdip_flow *flow, uint32_t number, const struct rtdip_address *from,
		     const struct rtdip_fragment *fragment, uint32_t length_bytes, int64_t now_monotonic_ns)
{
	struct rtdip_flow_stream *stream = &flow->streams[number];
	uint64_t reached_bytes = (uint64_t)fragment->offset + length_bytes;

	if (reached_bytes > stream->size_bytes)
		return;
	if (begins(stream, from, fragment->message, now_monotonic_ns)) {
		stream->known = true;
		stream->due = false;
		stream->from = *from;
		stream->message = fragment->message;
		stream->taken_bytes = stream->granted_bytes = 0;
		stream->deadline_monotonic_ns = now_monotonic_ns + stream->budget_ns;
	} else if (fragment->message != stream->message) {
		return;
	}
	if (reached_bytes > stream->taken_bytes)
		stream->taken_bytes = (uint32_t)reached_bytes;
	if (stream->granted_bytes < stream->taken_bytes)
		stream->granted_bytes = stream->taken_bytes;
	if (length_bytes == 0 && stream->granted_bytes > fragment->offset)
		stream->due = true; /* it asks for what it was granted: that was lost */
	stream->silent = false;
	stream->stirred_monotonic_ns = now_monotonic_ns;
	hold(flow, stream, stream->granted_bytes - stream->taken_bytes);
}

static bool is_waiting(const struct rtdip_flow_stream *stream)
{
	return stream->known && !stream->silent && stream->granted_bytes < stream->size_bytes;
}

static uint32_t share_bytes(const struct rtdip_flow_stream *stream)
{
	uint32_t left_bytes = stream->size_bytes - stream->granted_bytes;

	return left_bytes < RTDIP_FLOW_SHARE_BYTES ? left_bytes : RTDIP_FLOW_SHARE_BYTES;
}

/* The message that has to be there first; of two, the one of which less is left. */
static bool precedes(const struct rtdip_flow_stream *a, const struct rtdip_flow_stream *b)
{
	if (a->deadline_monotonic_ns != b->deadline_monotonic_ns)
		return a->deadline_monotonic_ns < b->deadline_monotonic_ns;
	return a->size_bytes - a->granted_bytes < b->size_bytes - b->granted_bytes;
}

/* Whom to grant something; NULL: nobody. While others wait too, nobody has more than half: one that dies does not stop them. */
static struct rtdip_flow_stream *choose(struct rtdip_flow *flow)
{
	struct rtdip_flow_stream *best = NULL;
	uint32_t waiting = 0, most_bytes;

	if (flow->held_bytes >= RTDIP_FLOW_WINDOW_BYTES)
		return NULL;
	for (uint32_t i = 0; i < flow->stream_count; i++)
		waiting += is_waiting(&flow->streams[i]);
	most_bytes = waiting > 1 ? RTDIP_FLOW_WINDOW_BYTES / 2 : RTDIP_FLOW_WINDOW_BYTES;
	for (uint32_t i = 0; waiting && i < flow->stream_count; i++) {
		struct rtdip_flow_stream *stream = &flow->streams[i];

		if (is_waiting(stream) && stream->held_bytes + share_bytes(stream) <= most_bytes &&
		    (!best || precedes(stream, best)))
			best = stream;
	}
	/* Who comes first waits for its room: smaller shares of others would take it. */
	return best && flow->held_bytes + share_bytes(best) <= RTDIP_FLOW_WINDOW_BYTES ? best : NULL;
}

bool rtdip_flow_grant(struct rtdip_flow *flow, int64_t now_monotonic_ns, uint32_t *number, struct rtdip_grant *grant)
{
	struct rtdip_flow_stream *stream;

	while ((stream = choose(flow)) != NULL) {
		uint32_t share = share_bytes(stream);

		stream->granted_bytes += share;
		stream->stirred_monotonic_ns = now_monotonic_ns;
		stream->due = true;
		hold(flow, stream, stream->held_bytes + share);
	}
	for (uint32_t i = 0; i < flow->stream_count; i++) {
		stream = &flow->streams[i];
		if (!stream->due)
			continue;
		stream->due = false;
		*number = i;
		*grant = (struct rtdip_grant){ flow->run, stream->message, stream->granted_bytes };
		flow->grants++;
		return true;
	}
	return false;
}

void rtdip_flow_tend(struct rtdip_flow *flow, int64_t now_monotonic_ns)
{
	for (uint32_t i = 0; i < flow->stream_count; i++) {
		struct rtdip_flow_stream *stream = &flow->streams[i];

		if (!stream->held_bytes || now_monotonic_ns - stream->stirred_monotonic_ns < RTDIP_FLOW_SILENCE_NS)
			continue;
		hold(flow, stream, 0);
		stream->silent = true;
		flow->silences++;
	}
}

int64_t rtdip_flow_deadline_monotonic_ns(const struct rtdip_flow *flow)
{
	int64_t deadline_monotonic_ns = INT64_MAX;

	for (uint32_t i = 0; i < flow->stream_count; i++) {
		const struct rtdip_flow_stream *stream = &flow->streams[i];

		if (stream->held_bytes && stream->stirred_monotonic_ns + RTDIP_FLOW_SILENCE_NS < deadline_monotonic_ns)
			deadline_monotonic_ns = stream->stirred_monotonic_ns + RTDIP_FLOW_SILENCE_NS;
	}
	return deadline_monotonic_ns;
}
