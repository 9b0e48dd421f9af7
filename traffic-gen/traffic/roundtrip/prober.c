/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/roundtrip/roundtrip.h"

#include "ntp/ntp_packet.h"
#include "time/heard_sleep.h"

enum {
	JITTER_PARTS = 10, /* a request is late on its grid by up to the tenth part of the interval */
	RATE_PARTS = 1000, /* the clocks of both ends agree on a duration to one in so many, in any case */
};

enum whose { OF_NOW, LATE, DUPLICATE, FOREIGN };

/* Find out which request a datagram answers: each has to bear what only the peer was told. */
static enum whose whose_reply(const struct prober *prober, const struct port_received *received, size_t length,
			      struct stamp_reply *reply)
{
	const struct trip *trip;

	if (received->truncated || length != prober->size_bytes || !address_same_ip(&received->source, &prober->peer) ||
	    received->source.port != prober->peer.port || stamp_reply_parse(prober->reply, length, reply) ||
	    reply->ssid != prober->ssid || reply->sender_sequence >= prober->next_sequence)
		return FOREIGN;
	trip = &prober->trips[reply->sender_sequence];
	if (!trip->sent || reply->sender_format != STAMP_NTP || reply->sender_sent != ntp_from_realtime_ns(trip->t1_realtime_ns))
		return FOREIGN;
	if (trip->answered)
		return DUPLICATE;
	return prober->open && reply->sender_sequence == prober->next_sequence - 1 ? OF_NOW : LATE;
}

/* Count a reply that is not used. */
static void count_stray(struct prober *prober, enum whose whose, const struct stamp_reply *reply)
{
	switch (whose) {
	case LATE:
		prober->trips[reply->sender_sequence].answered = true;
		prober->late++;
		break;
	case DUPLICATE:
		prober->duplicates++;
		break;
	default:
		prober->foreign++;
		break;
	}
}

/* Read one datagram. Return 0 (the reply that is waited for, and its known delay), 1 (another one), or -errno. */
static int receive(struct prober *prober, struct stamp_reply *reply, struct moment *t4, int64_t *stamp_ns)
{
	struct side *side = &prober->side;
	struct port_received received = { 0 };
	int64_t length = port_recv(side->sock, prober->reply, sizeof(prober->reply), &received);
	int64_t known_delay_ns = 0;
	enum whose whose;

	if (length < 0)
		return (int)length;
	if (prober->open)
		known_delay_ns = side_delay(&side->receive);
	t4->monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	t4->realtime_ns = port_clock_now_ns(PORT_CLOCK_REALTIME);
	*stamp_ns = side_stamp_ns(received.stamp_realtime_ns, received.stamp_monotonic_ns);
	whose = whose_reply(prober, &received, (size_t)length, reply);
	if (whose == OF_NOW) {
		if (reply->known_delay_ns != STAMP_UNKNOWN_NS)
			reply->known_delay_ns += known_delay_ns;
		return 0;
	}
	count_stray(prober, whose, reply);
	return 1;
}

/* Count what has come between two trips. */
static void receive_strays(struct prober *prober)
{
	struct stamp_reply reply;
	struct moment now;
	int64_t stamp_ns;

	for (int i = 0; i < BATCH && receive(prober, &reply, &now, &stamp_ns) >= 0; i++)
		;
}

/* The parts that the kernel's stamps divide the round trip into. */
static void record_parts(struct prober *prober, struct trip *trip, int64_t whole_ns, int64_t send_ns, int64_t receive_ns)
{
	bool send_known = send_ns != TRIP_UNKNOWN_NS && send_ns >= 0 && send_ns <= whole_ns;
	bool receive_known = receive_ns != TRIP_UNKNOWN_NS && receive_ns >= 0 && receive_ns <= whole_ns;

	if (send_known) {
		trip->own_send_ns = send_ns;
		histogram_record(prober->own_send, send_ns);
	}
	if (receive_known) {
		trip->own_receive_ns = receive_ns;
		histogram_record(prober->own_receive, receive_ns);
	}
	if (send_known && receive_known)
		histogram_record(prober->below_stamps, whole_ns - send_ns - receive_ns - trip->residence_ns);
}

/* Record what a reply says. Return false when it cannot be. */
static bool record(struct prober *prober, struct trip *trip, const struct stamp_reply *reply, int64_t round_trip_ns)
{
	int64_t residence_ns = stamp_difference_ns(reply->format, reply->sent, reply->received);

	trip->answered = true;
	if (!trip->counts)
		return false;
	if (residence_ns < 0 || residence_ns > round_trip_ns + round_trip_ns / RATE_PARTS) {
		prober->invalid++;
		return false;
	}
	trip->round_trip_ns = round_trip_ns;
	trip->residence_ns = residence_ns;
	tally_add(&prober->received, 1);
	histogram_record(prober->round_trip, round_trip_ns);
	histogram_record(prober->residence, residence_ns);
	histogram_record(prober->round_trip_without_residence, round_trip_ns - residence_ns);
	return true;
}

/* Wait for the reply to the open request. Return 0, or -ETIMEDOUT. */
static int wait_reply(struct prober *prober, const struct moment *t1, struct stamp_reply *reply, struct moment *t4,
		      int64_t *transmitted_ns, int64_t *received_ns)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + prober->timeout_ns;

	while (!port_stop_requested()) {
		int64_t left_ns;
		int took = 1;

		/* Before the wait: while a stamp of sending is there, it ends at once. */
		if (!*transmitted_ns)
			*transmitted_ns = side_transmitted_ns(&prober->side, t1);
		left_ns = deadline_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		if (left_ns <= 0)
			break;
		port_socket_wait_readable(prober->side.sock, left_ns < LOOK_NS ? left_ns : LOOK_NS);
		for (int i = 0; i < BATCH && took > 0; i++)
			took = receive(prober, reply, t4, received_ns);
		if (took == 0)
			return 0;
	}
	return -ETIMEDOUT;
}

static void make_trip(struct prober *prober, bool counts)
{
	struct side *side = &prober->side;
	struct trip *trip = &prober->trips[prober->next_sequence];
	const struct stamp_request request = { .sequence = prober->next_sequence, .ssid = prober->ssid };
	int64_t transmitted_ns = 0, received_ns = 0, known_delay_ns, t1_ns, t4_ns;
	struct stamp_reply reply;
	struct moment t1, t4;

	receive_strays(prober);
	stamp_request_pack(&request, prober->request, prober->size_bytes);
	prober->next_sequence++;
	t1.realtime_ns = port_clock_now_ns(PORT_CLOCK_REALTIME);
	stamp_request_set_sent(prober->request, ntp_from_realtime_ns(t1.realtime_ns));
	t1.monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	known_delay_ns = side_delay(&side->send);
	if (port_send_to(side->sock, prober->request, prober->size_bytes, &prober->peer, side->kernel_stamps) < 0) {
		prober->unsent += counts;
		return;
	}
	trip->t1_realtime_ns = t1.realtime_ns;
	trip->sent = true;
	trip->counts = counts;
	tally_add(&prober->sent, counts);
	prober->open = true;
	if (wait_reply(prober, &t1, &reply, &t4, &transmitted_ns, &received_ns) == 0 &&
	    record(prober, trip, &reply, t4.monotonic_ns - t1.monotonic_ns)) {
		if (reply.known_delay_ns != STAMP_UNKNOWN_NS)
			trip->known_delay_ns = reply.known_delay_ns + known_delay_ns;
		if (!transmitted_ns)
			transmitted_ns = side_transmitted_ns(side, &t1);
		t1_ns = side_stamp_clock_ns(side, &t1);
		t4_ns = side_stamp_clock_ns(side, &t4);
		record_parts(prober, trip, t4_ns - t1_ns, transmitted_ns ? transmitted_ns - t1_ns : TRIP_UNKNOWN_NS,
			     received_ns ? t4_ns - received_ns : TRIP_UNKNOWN_NS);
	}
	prober->open = false;
}

/* When a request is due after the first one, on the grid of the turns. */
static int64_t slot_after_ns(const struct prober *prober, size_t slot)
{
	const struct turns *turns = &prober->turns;

	if (!turns->trips)
		return (int64_t)slot * prober->interval_ns;
	return (int64_t)(slot / turns->trips) * turns->every_ns + (int64_t)(slot % turns->trips) * prober->interval_ns;
}

/* The first request's instant; the grid has passed where that is over already. */
static int64_t first_monotonic_ns(const struct prober *prober)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	if (!prober->turns.first_tai_ns)
		return now_monotonic_ns;
	return now_monotonic_ns + prober->turns.first_tai_ns - port_tai_now_ns(&prober->side.tai);
}

/* Where turns are taken each slot is for one request; else those that are late do not count. */
static bool is_complete(const struct prober *prober, size_t slot)
{
	return slot_after_ns(prober, slot) > prober->duration_ns || prober->next_sequence == prober->count ||
	       (prober->turns.trips && slot >= prober->count);
}

void prober_run(struct prober *prober)
{
	int64_t begin_monotonic_ns = first_monotonic_ns(prober);
	size_t slot = 0;

	while (!port_stop_requested()) {
		int64_t elapsed_ns, jitter_ns = pause_next_ns(&prober->jitter, prober->interval_ns / JITTER_PARTS);

		if (is_complete(prober, slot)) {
			prober->complete = true;
			break;
		}
		if (heard_sleep_until_monotonic_ns(begin_monotonic_ns + slot_after_ns(prober, slot) + jitter_ns))
			break;
		make_trip(prober, !prober->turns.trips || slot % prober->turns.trips >= prober->turns.run_up);
		stepwatch_tai_now_ns(&prober->watch, &prober->side.tai);
		/* A trip that took longer than the interval delays the next one; none is made up for. */
		elapsed_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns;
		do
			slot++;
		while (slot_after_ns(prober, slot) < elapsed_ns);
	}
	receive_strays(prober);
	atomic_store(&prober->side.finished, true);
}
