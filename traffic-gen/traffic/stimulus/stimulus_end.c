/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages over a connection that never blocks, and what both ends note of them. */
#include "traffic/stimulus/stimulus.h"

#include <errno.h>

#include "base/time_units.h"

void stimulus_fail(struct stimulus_end *end, const char *why, int err)
{
	end->failed = why;
	end->error = err;
}

int stimulus_receive(struct stimulus_end *end, int64_t timeout_ns, struct stimulus *received)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + timeout_ns;
	size_t wanted_bytes = STIMULUS_BYTES_MIN, got_bytes = 0;

	while (got_bytes < wanted_bytes) {
		int64_t length = port_recv(end->side.sock, end->in + got_bytes, wanted_bytes - got_bytes, NULL);

		if (length == -EAGAIN) {
			int64_t left_ns = deadline_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);

			if (port_stop_requested())
				return -EINTR;
			if (left_ns <= 0)
				return -ETIMEDOUT;
			port_socket_wait_readable(end->side.sock, left_ns < LOOK_NS ? left_ns : LOOK_NS);
			continue;
		}
		if (length == 0)
			return got_bytes ? -EPROTO : -ECONNRESET;
		if (length < 0)
			return (int)length;
		got_bytes += (size_t)length;
		if (got_bytes == STIMULUS_BYTES_MIN && wanted_bytes == STIMULUS_BYTES_MIN) {
			if (stimulus_parse(end->in, received))
				return -EPROTO;
			wanted_bytes = received->size_bytes;
		}
	}
	return 0;
}

int stimulus_send(struct stimulus_end *end, const struct stimulus *stimulus, int64_t stamped_monotonic_ns)
{
	bool delayed = stimulus_is_delayed(end, stimulus->number);
	int64_t now_monotonic_ns;
	size_t sent_bytes = 0;

	stimulus_pack(stimulus, end->out);
	if (delayed)
		side_delay(&end->side.send);
	now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	histogram_record(end->sending[delayed], now_monotonic_ns - stamped_monotonic_ns);
	while (sent_bytes < stimulus->size_bytes) {
		const struct port_slice slice = { end->out + sent_bytes, stimulus->size_bytes - sent_bytes };
		int64_t length = port_send(end->side.sock, &slice, 1, false);

		if (length == -EAGAIN) {
			if (port_stop_requested())
				return -EINTR;
			if (port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= now_monotonic_ns + end->timeout_ns)
				return -ETIMEDOUT;
			port_sleep_ns(NS_PER_MS);
			continue;
		}
		if (length < 0)
			return (int)length;
		sent_bytes += (size_t)length;
	}
	tally_add(&end->sent, 1);
	return 0;
}

void stimulus_record_leg(struct stimulus_end *end, const struct stimulus *received, int64_t received_tai_ns)
{
	int64_t leg_ns = received_tai_ns - received->sent_tai_ns;

	histogram_record(end->leg.received_minus_sent, leg_ns);
	if (leg_ns < 0 && !end->leg.negative++) {
		end->leg.first_negative = received->number;
		end->leg.first_negative_ns = leg_ns;
	}
	tally_add(&end->received, 1);
}
