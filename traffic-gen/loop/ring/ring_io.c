/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages in and out, over TCP or UDP, in one write or two; nothing blocks longer than the stop flag may wait. */
#include "loop/ring/ring.h"

#include <errno.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/time_units.h"
#include "events/bwevents.h"
#include "traffic/connection.h"

BW_EVENT_POINT(ring_read_header, "ring", "read_header", "a header was read whole; tag: messages that were read before");
BW_EVENT_POINT(ring_read, "ring", "read", "a message was read whole; tag: its number");
BW_EVENT_POINT(ring_write, "ring", "write", "a message is written; tag: its number");
BW_EVENT_POINT(ring_write_content, "ring", "write_content", "its content is written, by a write of its own; tag: its number");
BW_DATA_POINT(ring_kernel_read, "ring", "kernel_read", "<q",
	      "a message's last frame came, by the kernel; tag: its number; data: CLOCK_REALTIME in ns");
BW_DATA_POINT(ring_kernel_written, "ring", "kernel_written", "<q",
	      "a message's last frame left, by the kernel; tag: its number; data: CLOCK_REALTIME in ns");

int ring_fail(struct ring *ring, const char *why, int err)
{
	ring->failed = why;
	ring->error = err;
	return err;
}

static int connect_udp(struct ring *ring)
{
	const struct address any = { .is_ipv6 = ring->to.is_ipv6 };
	int err = port_udp_open(&any, &ring->out);

	if (err)
		ring->out = PORT_SOCKET_NONE;
	return err ? err : port_udp_connect(ring->out, &ring->to);
}

int ring_connect(struct ring *ring)
{
	int err;

	if (!ring->has_to)
		return 0;
	err = ring->is_udp ? connect_udp(ring) : connection_reach(&ring->to, ring->timeout_ns, &ring->out);
	if (!err && ring->has_nagle)
		err = port_socket_set_nagle(ring->out);
	if (!err)
		ring->stamps.asked = ring->wants_stamps && port_socket_stamp_transmit(ring->out) == 0;
	return err ? ring_fail(ring, "the next one could not be reached", err) : 0;
}

/* Wait until there may be something to read. Return 0 or -EINTR, -ETIMEDOUT. */
static int wait_readable(struct ring *ring, int64_t deadline_monotonic_ns)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), left_ns = deadline_monotonic_ns - now_monotonic_ns;

	if (port_stop_requested())
		return -EINTR;
	if (left_ns <= 0)
		return -ETIMEDOUT;
	if (ring->poll_ns)
		port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, (now_monotonic_ns / ring->poll_ns + 1) * ring->poll_ns);
	else
		port_socket_wait_readable(ring->in, left_ns < LOOK_NS ? left_ns : LOOK_NS);
	return 0;
}

/* Read what is there, at most so many bytes; the kernel's stamp is kept. Return as port_recv(), waiting. */
static int64_t read_some(struct ring *ring, uint8_t *into, size_t size_bytes, int64_t deadline_monotonic_ns)
{
	for (;;) {
		struct port_received received = { 0 };
		int64_t length = port_recv(ring->in, into, size_bytes, ring->wants_stamps ? &received : NULL);
		int err;

		if (length != -EAGAIN) {
			if (received.stamp_realtime_ns)
				ring->kernel_realtime_ns = received.stamp_realtime_ns;
			return length;
		}
		err = wait_readable(ring, deadline_monotonic_ns);
		if (err)
			return err;
	}
}

/* Return 0 or -errno. */
static int read_whole(struct ring *ring, size_t begin_bytes, size_t end_bytes, int64_t deadline_monotonic_ns)
{
	while (begin_bytes < end_bytes) {
		int64_t length = read_some(ring, ring->wire + begin_bytes, end_bytes - begin_bytes, deadline_monotonic_ns);

		if (length == 0 || length == -ECONNRESET)
			return begin_bytes ? -EBADMSG : -ECONNRESET;
		if (length < 0)
			return (int)length;
		begin_bytes += (size_t)length;
	}
	return 0;
}

static int receive_tcp(struct ring *ring, int64_t deadline_monotonic_ns, uint32_t *content_bytes)
{
	int err = read_whole(ring, 0, RING_HEADER_BYTES, deadline_monotonic_ns);

	if (err)
		return err;
	if (ring_header_parse(ring->wire, content_bytes))
		return -EPROTO;
	BW_EVENT(ring_read_header, (int64_t)tally_get(&ring->read));
	return read_whole(ring, RING_HEADER_BYTES, RING_HEADER_BYTES + *content_bytes, deadline_monotonic_ns);
}

/* One datagram: a header, the content behind it, or both. Return whether a message is whole. */
static bool take_datagram(struct ring *ring, uint8_t datagram[], size_t size_bytes, uint32_t *content_bytes)
{
	uint32_t wanted_bytes = ring->header_bytes;

	ring->header_bytes = 0;
	if (wanted_bytes && size_bytes == wanted_bytes) {
		memmove(ring->wire + RING_HEADER_BYTES, datagram, size_bytes);
		big_endian_put(ring->wire, RING_HEADER_BYTES, wanted_bytes);
		*content_bytes = wanted_bytes;
		return true;
	}
	ring->account.broken += wanted_bytes != 0;
	if (size_bytes < RING_HEADER_BYTES || ring_header_parse(datagram, content_bytes)) {
		ring->account.broken++;
		return false;
	}
	if (size_bytes == RING_HEADER_BYTES) {
		ring->header_bytes = *content_bytes;
		BW_EVENT(ring_read_header, (int64_t)tally_get(&ring->read));
		return false;
	}
	if (size_bytes == RING_HEADER_BYTES + *content_bytes)
		return true;
	ring->account.broken++;
	return false;
}

static int receive_udp(struct ring *ring, int64_t deadline_monotonic_ns, uint32_t *content_bytes)
{
	for (;;) {
		int64_t length = read_some(ring, ring->wire, sizeof(ring->wire), deadline_monotonic_ns);

		if (length < 0)
			return (int)length;
		if (take_datagram(ring, ring->wire, (size_t)length, content_bytes))
			return 0;
	}
}

int ring_receive(struct ring *ring, struct ring_message *message)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + ring->timeout_ns;

	for (;;) {
		uint32_t content_bytes;
		int err;

		ring->kernel_realtime_ns = 0;
		err = ring->is_udp ? receive_udp(ring, deadline_monotonic_ns, &content_bytes) :
				     receive_tcp(ring, deadline_monotonic_ns, &content_bytes);
		if (err)
			return err;
		if (ring_content_parse(ring->wire + RING_HEADER_BYTES, content_bytes, message)) {
			if (!ring->is_udp)
				return -EPROTO;
			ring->account.broken++; /* a datagram of somebody else, or two halves that are none */
			continue;
		}
		if (message->is_end)
			return 0;
		BW_EVENT(ring_read, message->number);
		tally_add(&ring->read, 1);
		if (ring->kernel_realtime_ns)
			BW_EVENT_DATA(ring_kernel_read, message->number, &ring->kernel_realtime_ns, sizeof(ring->kernel_realtime_ns));
		return 0;
	}
}

static int write_whole(struct ring *ring, const uint8_t *from, size_t size_bytes, bool wants_stamp)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + ring->timeout_ns;
	size_t written_bytes = 0;

	while (written_bytes < size_bytes) {
		const struct port_slice slice = { from + written_bytes, size_bytes - written_bytes };
		int64_t length = port_send(ring->out, &slice, 1, wants_stamp);

		if (length == -ECONNREFUSED && ring->is_udp) /* reports an earlier datagram */
			length = port_send(ring->out, &slice, 1, wants_stamp);
		if (length == -EAGAIN) {
			if (port_stop_requested())
				return -EINTR;
			if (port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= deadline_monotonic_ns)
				return -ETIMEDOUT;
			port_sleep_ns(NS_PER_MS);
			continue;
		}
		if (length < 0)
			return (int)length;
		written_bytes += (size_t)length;
	}
	return 0;
}

static void ask_stamp(struct ring *ring, uint32_t number, size_t size_bytes)
{
	struct ring_stamps *stamps = &ring->stamps;
	uint32_t key = ring->is_udp ? stamps->key++ : (stamps->key += (uint32_t)size_bytes) - 1;

	stamps->open[stamps->count++ % RING_STAMPS_MAX] = (struct ring_stamp){ key, number, true };
}

int ring_send(struct ring *ring, const struct ring_message *message)
{
	size_t size_bytes = RING_HEADER_BYTES + message->content_bytes;
	bool wants_stamp = ring->stamps.asked && !message->is_end;
	int err;

	if (!message->is_end)
		BW_EVENT(ring_write, message->number);
	if (ring->writes == 1) {
		err = write_whole(ring, ring->wire, size_bytes, wants_stamp);
	} else {
		err = write_whole(ring, ring->wire, RING_HEADER_BYTES, false);
		if (err)
			return err;
		if (!message->is_end)
			BW_EVENT(ring_write_content, message->number);
		err = write_whole(ring, ring->wire + RING_HEADER_BYTES, message->content_bytes, wants_stamp);
	}
	if (err || message->is_end)
		return err;
	if (wants_stamp)
		ask_stamp(ring, message->number, size_bytes);
	tally_add(&ring->written, 1);
	return 0;
}

void ring_read_stamps(struct ring *ring)
{
	struct ring_stamps *stamps = &ring->stamps;

	for (int i = 0; stamps->asked && i < RING_STAMPS_MAX; i++) {
		struct port_transmitted transmitted;
		int err = port_recv_transmitted(ring->out, &transmitted);

		if (err == -EBADMSG)
			continue; /* another kind of report */
		if (err)
			return;
		for (struct ring_stamp *each = stamps->open; each < stamps->open + RING_STAMPS_MAX; each++) {
			if (!each->is_open || each->key != transmitted.key)
				continue;
			each->is_open = false;
			if (transmitted.stamp_realtime_ns)
				BW_EVENT_DATA(ring_kernel_written, each->number, &transmitted.stamp_realtime_ns,
					      sizeof(transmitted.stamp_realtime_ns));
		}
	}
}
