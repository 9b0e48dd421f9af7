/* SPDX-License-Identifier: Apache-2.0 */
/* The end that takes the first connection, and reads it to its end. */
#include "traffic/bulk/bulk.h"

#include <errno.h>

#include "events/bwevents.h"
#include "traffic/connection.h"

BW_DATA_POINT(bulk_read, "bulk", "read", "<I", "a piece was read; tag: where it begins in the stream; its bytes");

static bool is_over(const struct bulk_receiver *receiver)
{
	return port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= receiver->deadline_monotonic_ns;
}

/* Wait for bytes. Return 0, -EINTR or -ETIMEDOUT. */
static int wait_bytes(struct bulk_receiver *receiver)
{
	struct bulk_end *end = &receiver->end;
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), now_monotonic_ns = begin_monotonic_ns;
	int err = -ETIMEDOUT;

	while (err && now_monotonic_ns - begin_monotonic_ns < end->timeout_ns &&
	       now_monotonic_ns < receiver->deadline_monotonic_ns && !port_stop_requested()) {
		err = port_socket_wait_readable(end->side.sock, LOOK_NS);
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	}
	end->blocked_ns += now_monotonic_ns - begin_monotonic_ns;
	if (!err)
		return 0;
	return port_stop_requested() ? -EINTR : -ETIMEDOUT;
}

/* Return 0 at the end of the stream, or -errno. */
static int receive_all(struct bulk_receiver *receiver)
{
	struct bulk_end *end = &receiver->end;

	for (;;) {
		uint64_t offset_bytes = tally_get(&end->moved_bytes);
		int64_t length = port_recv(end->side.sock, end->block, (size_t)end->block_bytes, NULL);
		uint32_t piece_bytes = (uint32_t)length;
		int err;

		if (length > 0) {
			BW_EVENT_DATA(bulk_read, (int64_t)offset_bytes, &piece_bytes, sizeof(piece_bytes));
			bulk_moved(end, end->block, (size_t)length);
			if (port_stop_requested())
				return -EINTR;
			if (end->end_monotonic_ns >= receiver->deadline_monotonic_ns)
				return -ETIMEDOUT;
			continue;
		}
		if (length == 0)
			return 0;
		err = length == -EAGAIN ? wait_bytes(receiver) : (int)length;
		if (err)
			return err;
	}
}

void bulk_receiver_run(void *argument)
{
	struct bulk_receiver *receiver = argument;
	struct bulk_end *end = &receiver->end;
	int err;

	receiver->deadline_monotonic_ns =
		receiver->duration_ns ? port_clock_now_ns(PORT_CLOCK_MONOTONIC) + receiver->duration_ns : INT64_MAX;
	err = connection_accept(&receiver->listener, receiver->deadline_monotonic_ns, &end->side.sock);
	end->begin_monotonic_ns = end->end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	if (err) {
		bulk_end_with(end, err == -ETIMEDOUT ? "no sender came in time" : "no sender could be accepted", err);
		return;
	}
	err = receive_all(receiver);
	if (err == -ETIMEDOUT)
		bulk_end_with(end, is_over(receiver) ? "its time was over before its sender's" : "nothing came in time", err);
	else
		bulk_end_with(end, "the connection failed", err);
}
