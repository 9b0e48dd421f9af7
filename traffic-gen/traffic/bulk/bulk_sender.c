/* SPDX-License-Identifier: Apache-2.0 */
/* The end that connects and sends. */
#include "traffic/bulk/bulk.h"

#include <errno.h>

#include "base/time_units.h"
#include "events/bwevents.h"
#include "time/heard_sleep.h"
#include "traffic/connection.h"

BW_DATA_POINT(bulk_written, "bulk", "written", "<I", "the connection has taken a piece; tag: where it begins in the stream; its bytes");

/* Return when the byte at an offset is due. */
static int64_t due_monotonic_ns(const struct bulk_sender *sender, uint64_t offset_bytes)
{
	/* Mbit/s are bits a microsecond. */
	return sender->end.begin_monotonic_ns + (int64_t)((double)offset_bytes * 8 * (double)NS_PER_US / (double)sender->rate_mbit);
}

/* Wait for room in the connection. Return 0, -EINTR, -ETIMEDOUT or -errno. */
static int wait_room(struct bulk_end *end, struct port_poller *poller)
{
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), now_monotonic_ns = begin_monotonic_ns;
	struct port_event event;
	int found = 0;

	while (!found && now_monotonic_ns - begin_monotonic_ns < end->timeout_ns && !port_stop_requested()) {
		found = port_poller_wait(poller, &event, 1, LOOK_NS);
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	}
	end->blocked_ns += now_monotonic_ns - begin_monotonic_ns;
	if (found)
		return found < 0 ? found : 0;
	return port_stop_requested() ? -EINTR : -ETIMEDOUT;
}

/* Hand a block over, however many calls it takes. Return 0 or -errno. */
static int send_block(struct bulk_sender *sender, struct port_poller *poller, size_t size_bytes)
{
	struct bulk_end *end = &sender->end;
	size_t sent_bytes = 0;

	while (sent_bytes < size_bytes) {
		const struct port_slice slice = { end->block + sent_bytes, size_bytes - sent_bytes };
		uint64_t offset_bytes = tally_get(&end->moved_bytes);
		int64_t length = port_send(end->side.sock, &slice, 1, false);
		uint32_t piece_bytes = (uint32_t)length;
		int err;

		if (length > 0) {
			BW_EVENT_DATA(bulk_written, (int64_t)offset_bytes, &piece_bytes, sizeof(piece_bytes));
			bulk_moved(end, end->block + sent_bytes, (size_t)length);
			sent_bytes += (size_t)length;
			continue;
		}
		err = length == -EAGAIN ? wait_room(end, poller) : (int)length;
		if (err)
			return err;
	}
	return 0;
}

/* Return when it ends, whatever was sent. */
static int64_t end_monotonic_ns(const struct bulk_sender *sender)
{
	return sender->duration_ns ? sender->end.begin_monotonic_ns + sender->duration_ns : INT64_MAX;
}

/* Return how many bytes the next block has; 0: it was the last. */
static size_t next_bytes(const struct bulk_sender *sender)
{
	const struct bulk_end *end = &sender->end;
	int64_t left_bytes = sender->bytes - (int64_t)tally_get(&end->moved_bytes);

	if (port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= end_monotonic_ns(sender))
		return 0;
	if (!sender->bytes || left_bytes > end->block_bytes)
		return (size_t)end->block_bytes;
	return (size_t)left_bytes;
}

/* Wait until the block at an offset is due. Return 0, -EINTR, or -ETIMEDOUT: it ends before. */
static int wait_due(const struct bulk_sender *sender, uint64_t offset_bytes)
{
	int64_t block_monotonic_ns = due_monotonic_ns(sender, offset_bytes), last_monotonic_ns = end_monotonic_ns(sender);
	int err = heard_sleep_until_monotonic_ns(block_monotonic_ns < last_monotonic_ns ? block_monotonic_ns : last_monotonic_ns);

	return err || block_monotonic_ns < last_monotonic_ns ? err : -ETIMEDOUT;
}

static int send_all(struct bulk_sender *sender, struct port_poller *poller)
{
	struct bulk_end *end = &sender->end;
	uint64_t state;
	size_t size_bytes;
	int err = port_random(&state);

	if (err)
		return err;
	state |= 1;
	while ((size_bytes = next_bytes(sender)) > 0) {
		bulk_fill(&state, end->block, size_bytes);
		err = sender->rate_mbit ? wait_due(sender, tally_get(&end->moved_bytes)) : 0;
		if (err)
			return err == -ETIMEDOUT ? 0 : err;
		err = send_block(sender, poller, size_bytes);
		if (err)
			return err;
		if (port_stop_requested())
			return -EINTR;
	}
	return 0;
}

void bulk_sender_run(void *argument)
{
	struct bulk_sender *sender = argument;
	struct bulk_end *end = &sender->end;
	struct port_poller *poller = NULL;
	int err = connection_open(&sender->peer, end->timeout_ns, &end->side.sock);

	end->begin_monotonic_ns = end->end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	if (err) {
		bulk_end_with(end, "the receiver could not be reached", err);
		return;
	}
	err = port_poller_create(1, &poller);
	if (!err)
		err = port_poller_add(poller, end->side.sock, PORT_POLL_OUT, NULL);
	if (!err)
		err = send_all(sender, poller);
	if (poller) {
		port_poller_remove(poller, end->side.sock);
		port_poller_destroy(poller);
	}
	bulk_end_with(end, err == -ETIMEDOUT ? "the receiver has taken nothing in time" : "the connection failed", err);
}
