/* SPDX-License-Identifier: Apache-2.0 */
#include "delivery_rate.h"

void delivery_on_sent(struct delivery *delivery, struct delivery_mark *mark, bool idle, uint64_t now_us)
{
	if (idle)
		delivery->flight_sent_us = delivery->delivered_at_us = now_us;
	*mark = (struct delivery_mark){delivery->delivered_bytes, delivery->delivered_at_us, delivery->flight_sent_us,
				       delivery->limited_until_bytes > 0};
}

void delivery_on_arrival(struct delivery *delivery, const struct delivery_mark *mark, uint32_t size_bytes, uint64_t sent_us,
			 uint64_t now_us)
{
	delivery->delivered_bytes += size_bytes;
	delivery->delivered_at_us = now_us;
	if (delivery->newest_sent_us == 0 || sent_us >= delivery->newest_sent_us) {
		delivery->newest = *mark;
		delivery->newest_sent_us = sent_us;
	}
}

void delivery_is_limited(struct delivery *delivery, uint32_t in_flight_bytes)
{
	delivery->limited_until_bytes = delivery->delivered_bytes + in_flight_bytes;
	if (delivery->limited_until_bytes == 0)
		delivery->limited_until_bytes = 1;
}

struct delivery_sample delivery_take_sample(struct delivery *delivery, uint64_t min_rtt_us)
{
	const struct delivery_mark *mark = &delivery->newest;
	struct delivery_sample sample = {0, mark->delivered_bytes, mark->limited};
	uint64_t sent_us, acknowledged_us, interval_us;

	if (delivery->limited_until_bytes > 0 && delivery->delivered_bytes > delivery->limited_until_bytes)
		delivery->limited_until_bytes = 0;
	if (delivery->newest_sent_us == 0)
		return sample;
	sent_us = delivery->newest_sent_us - mark->flight_sent_us;
	acknowledged_us = delivery->delivered_at_us - mark->delivered_at_us;
	interval_us = sent_us > acknowledged_us ? sent_us : acknowledged_us;
	if (interval_us > 0 && interval_us >= min_rtt_us)
		sample.bytes_per_s = (double)(delivery->delivered_bytes - mark->delivered_bytes) * 1e6 / (double)interval_us;
	delivery->flight_sent_us = delivery->newest_sent_us;
	delivery->newest_sent_us = 0;
	return sample;
}
