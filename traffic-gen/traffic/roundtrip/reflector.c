/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/roundtrip/roundtrip.h"

#include "time/heard_sleep.h"

/* A part of the way that the kernel has stamped one end of; less than nothing comes of a step of the clock. */
static void record_part(struct histogram *histogram, int64_t part_ns)
{
	if (part_ns >= 0)
		histogram_record(histogram, part_ns);
}

static uint64_t wire_time(const struct reflector *reflector, enum stamp_format format, const struct moment *moment)
{
	return stamp_time(format, moment->realtime_ns, port_tai_from_realtime_ns(&reflector->side.tai, moment->realtime_ns));
}

/* Send one datagram back. Return 0, or -errno of receiving. */
static int reflect(struct reflector *reflector)
{
	struct side *side = &reflector->side;
	struct port_received received = { 0 };
	int64_t length = port_recv(side->sock, reflector->packet, sizeof(reflector->packet), &received);
	struct stamp_request request;
	struct moment t2, t3;
	int64_t stamp_ns, known_delay_ns = 0;

	if (length < 0)
		return (int)length;
	if (!reflector->delays_in_residence)
		known_delay_ns = side_delay(&side->receive);
	t2.monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	t2.realtime_ns = port_clock_now_ns(PORT_CLOCK_REALTIME);
	reflector->received++;
	if (reflector->delays_in_residence)
		side_delay(&side->receive);
	if (reflector->hold_ns &&
	    heard_sleep_until_monotonic_ns(port_clock_now_ns(PORT_CLOCK_MONOTONIC) + reflector->hold_ns))
		return -EINTR;
	if (received.truncated || stamp_request_parse(reflector->packet, (size_t)length, &request)) {
		reflector->malformed++;
		return 0;
	}
	stamp_reflect(reflector->packet, (size_t)length,
		      reflector->stateful ? (uint32_t)reflector->reflected : request.sequence,
		      wire_time(reflector, request.format, &t2));
	if (reflector->delays_in_residence)
		side_delay(&side->send);
	t3.monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	t3.realtime_ns = port_clock_now_ns(PORT_CLOCK_REALTIME);
	stamp_reply_set_sent(reflector->packet, wire_time(reflector, request.format, &t3));
	if (!reflector->delays_in_residence)
		known_delay_ns += side_delay(&side->send);
	stamp_reply_set_known_delay(reflector->packet, (size_t)length, known_delay_ns);
	if (port_send_to(side->sock, reflector->packet, (size_t)length, &received.source, side->kernel_stamps) < 0) {
		reflector->unsent++;
		return 0;
	}
	reflector->reflected++;
	histogram_record(reflector->residence, t3.monotonic_ns - t2.monotonic_ns);
	stamp_ns = side_stamp_ns(received.stamp_realtime_ns, received.stamp_monotonic_ns);
	if (stamp_ns)
		record_part(reflector->receive_stack, side_stamp_clock_ns(side, &t2) - stamp_ns);
	stamp_ns = side_transmitted_ns(side, &t3);
	if (stamp_ns)
		record_part(reflector->transmit_stack, stamp_ns - side_stamp_clock_ns(side, &t3));
	return 0;
}

void reflector_run(void *argument)
{
	struct reflector *reflector = argument;
	const struct moment end_of_time = { INT64_MAX, INT64_MAX };

	while (!port_stop_requested()) {
		int64_t left_ns = reflector->end_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int err = 0;

		if (left_ns <= 0)
			break;
		/* A stamp that came too late for its reply would end each wait at once. */
		side_transmitted_ns(&reflector->side, &end_of_time);
		err = port_socket_wait_readable(reflector->side.sock, left_ns < LOOK_NS ? left_ns : LOOK_NS);
		for (int i = 0; i < BATCH && !err && !port_stop_requested(); i++)
			err = reflect(reflector);
	}
	atomic_store(&reflector->side.finished, true);
}
