/* SPDX-License-Identifier: Apache-2.0 */
/* What source, node and sink do with each message, and their account of them. */
#include "loop/ring/ring.h"

#include <errno.h>

#include "base/time_units.h"
#include "time/heard_sleep.h"
#include "traffic/connection.h"

#define LAST_STAMPS_NS (20 * NS_PER_MS)
#define END_PAUSE_NS (5 * NS_PER_MS)

enum { END_DATAGRAMS = 3 };

static void note(struct ring_account *account, uint32_t number, bool is_first)
{
	uint8_t bit = (uint8_t)(1U << number % 8);

	if (account->seen[number / 8] & bit)
		account->double_messages++;
	else if (!is_first && number < account->highest)
		account->disordered++;
	account->seen[number / 8] |= bit;
	if (is_first || number > account->highest)
		account->highest = number;
}

/* Busy, as a program that computes. */
static void work(const struct ring *ring)
{
	int64_t until_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + ring->work_ns;

	while (port_clock_now_ns(PORT_CLOCK_MONOTONIC) < until_monotonic_ns)
		;
}

/* The end goes on to the next one; of datagrams some, as one may be lost. */
static int send_end(struct ring *ring, uint32_t count)
{
	const struct ring_message end = { .content_bytes = RING_CONTENT_BYTES_MIN, .number = count, .is_end = true };

	ring->account.has_ended = true;
	ring->account.of = count;
	for (int i = 0; ring->has_to && i < (ring->is_udp ? END_DATAGRAMS : 1); i++) {
		int err;

		if (i)
			port_sleep_ns(END_PAUSE_NS);
		ring_message_pack(&end, ring->wire);
		err = ring_send(ring, &end);
		if (err && !(ring->is_udp && i))
			return err;
	}
	return 0;
}

static int run_source(struct ring *ring)
{
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	for (uint32_t number = 0; number < ring->count; number++) {
		const struct ring_message message = { .content_bytes = ring->content_bytes, .number = number };
		int err;

		ring_message_pack(&message, ring->wire);
		ring_read_stamps(ring);
		err = heard_sleep_until_monotonic_ns(begin_monotonic_ns + (int64_t)number * ring->interval_ns);
		if (!err)
			err = ring_send(ring, &message);
		if (err)
			return err;
		stepwatch_tai_now_ns(&ring->watch, &ring->side.tai);
	}
	return send_end(ring, ring->count);
}

/* Asleep, so that nothing else on the machine is held up with the message; what it took is kept. */
static void hold(struct ring *ring)
{
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, begin_monotonic_ns + ring->hold_ns);
	histogram_record(ring->held, port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns);
}

static int pass(struct ring *ring, const struct ring_message *message)
{
	if (ring->hold_ns && (!ring->hold_turn || message->number / ring->hold_turn % 2 == 1))
		hold(ring);
	if (ring->work_ns)
		work(ring);
	return ring->has_to ? ring_send(ring, message) : 0;
}

static int run_reader(struct ring *ring)
{
	for (;;) {
		bool is_first = !tally_get(&ring->read);
		struct ring_message message;
		int err = ring_receive(ring, &message);

		if (err)
			return err;
		if (message.is_end)
			return send_end(ring, message.number);
		note(&ring->account, message.number, is_first);
		err = pass(ring, &message);
		if (err)
			return err;
		stepwatch_tai_now_ns(&ring->watch, &ring->side.tai);
		ring_read_stamps(ring);
	}
}

static void explain(struct ring *ring, int err)
{
	if (err == -EINTR)
		ring_fail(ring, "stopped before its end", 0);
	else if (err == -ETIMEDOUT)
		ring_fail(ring, ring->has_from ? "no message came in time, or could be passed on" : "no message could be written in time", 0);
	else if (err == -EPROTO)
		ring_fail(ring, "what came was no message of a ring", 0);
	else if (err == -EBADMSG)
		ring_fail(ring, "the connection was closed within a message", 0);
	else if (err == -ECONNRESET && ring->has_from)
		ring_fail(ring, "the connection was closed before the last message", 0);
	else
		ring_fail(ring, "the connection failed", err);
}

void ring_run(void *argument)
{
	struct ring *ring = argument;
	int err = ring_connect(ring);

	if (!err && ring->has_from && !ring->is_udp) {
		err = connection_accept(&ring->listener, INT64_MAX, &ring->in);
		if (!err && ring->wants_stamps)
			port_socket_stamp_receive(ring->in);
	}
	if (!err)
		err = ring->has_from ? run_reader(ring) : run_source(ring);
	if (err && !ring->failed)
		explain(ring, err);
	if (ring->stamps.asked) {
		port_sleep_ns(LAST_STAMPS_NS);
		ring_read_stamps(ring);
	}
	atomic_store(&ring->side.finished, true);
}
