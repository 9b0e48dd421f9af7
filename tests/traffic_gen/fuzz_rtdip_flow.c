/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: the flow control of RTDiP's low messages at both ends. The input is a script of what comes to a receiver of four
 * streams, and to a sender as a grant. What is out, granted and not come, is the sum of the streams'; new room is given within the
 * window alone, and never beyond a message; a sender sends nothing that no sound grant allows.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "base/big_endian.h"
#include "traffic/rtdip_flow.h"

enum { STREAMS = 4, RUN = 7 };

static const uint32_t sizes_bytes[STREAMS] = { 10, 4000, 100000, UINT32_MAX };

static uint32_t take_number(const uint8_t **data, size_t *size, unsigned int bytes)
{
	uint32_t value;

	if (*size < bytes) {
		*size = 0;
		return 0;
	}
	value = (uint32_t)big_endian_get(*data, bytes);
	*data += bytes;
	*size -= bytes;
	return value;
}

static void check_sums(const struct rtdip_flow *flow)
{
	uint64_t held_bytes = 0;

	for (uint32_t i = 0; i < flow->stream_count; i++) {
		const struct rtdip_flow_stream *stream = &flow->streams[i];

		promise(stream->taken_bytes <= stream->granted_bytes && stream->granted_bytes <= stream->size_bytes);
		promise(stream->held_bytes == 0 || stream->held_bytes == stream->granted_bytes - stream->taken_bytes);
		held_bytes += stream->held_bytes;
	}
	promise(held_bytes == flow->held_bytes);
}

static void hand_out(struct rtdip_flow *flow, int64_t now_monotonic_ns)
{
	uint32_t before_bytes = flow->held_bytes, number;
	struct rtdip_grant grant;
	int rounds = 0;

	while (rtdip_flow_grant(flow, now_monotonic_ns, &number, &grant)) {
		promise(++rounds <= STREAMS && number < STREAMS && grant.run == RUN);
		promise(grant.limit_bytes <= sizes_bytes[number] && grant.limit_bytes == flow->streams[number].granted_bytes);
	}
	promise(flow->held_bytes == before_bytes || flow->held_bytes <= RTDIP_FLOW_WINDOW_BYTES);
	check_sums(flow);
}

static void give_grant(struct rtdip_credit *credit, const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1); /* exactly as long: what is read beyond it is noticed */
	struct rtdip_credit before = *credit;
	int result;

	promise(bytes != NULL);
	memcpy(bytes, data, size);
	result = rtdip_credit_take(credit, bytes, size);
	if (result == 0) {
		promise(size == 12 && big_endian_get(bytes, 4) == RUN && big_endian_get(bytes + 4, 4) == before.message);
		promise(credit->limit_bytes == big_endian_get(bytes + 8, 4) && credit->limit_bytes > before.limit_bytes);
		promise(credit->limit_bytes <= credit->size_bytes);
	} else {
		promise(credit->limit_bytes == before.limit_bytes);
		promise(credit->refused - before.refused == (result == -EBADMSG));
	}
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rtdip_credit credit;
	struct rtdip_flow flow;
	int64_t now_monotonic_ns = 0;

	rtdip_credit_init(&credit, RUN, 100000);
	rtdip_flow_init(&flow, RUN);
	for (int i = 0; i < STREAMS; i++)
		rtdip_flow_add(&flow, sizes_bytes[i], INT64_C(1000000) * (i + 1));
	while (size > 0) {
		uint32_t what = take_number(&data, &size, 1);
		struct rtdip_address from = { { 2 }, (uint16_t)(1 + (what >> 7)) };
		struct rtdip_fragment fragment;
		size_t length;

		if ((what & 3) == 0) {
			now_monotonic_ns += INT64_C(1000000) * (what >> 2);
			rtdip_flow_tend(&flow, now_monotonic_ns);
			promise(rtdip_flow_deadline_monotonic_ns(&flow) > now_monotonic_ns);
		} else if ((what & 3) == 1) {
			length = what >> 2 < size ? what >> 2 : size;
			give_grant(&credit, data, length);
			data += length;
			size -= length;
		} else if ((what & 3) == 2) {
			rtdip_credit_begin(&credit, credit.message + take_number(&data, &size, 4) % 3);
		} else {
			fragment.message = take_number(&data, &size, what & 64 ? 4 : 1);
			fragment.offset = take_number(&data, &size, what & 32 ? 4 : 2);
			rtdip_flow_take(&flow, what >> 2 & 3, &from, &fragment, take_number(&data, &size, 2), now_monotonic_ns);
			check_sums(&flow);
		}
		hand_out(&flow, now_monotonic_ns);
	}
	return 0;
}
