/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/send/sender.h"

#include <errno.h>
#include <stdlib.h>

#include "events/bwevents.h"
#include "plan/phase.h"

#define IDLE_ENOUGH_NS INT64_C(200000)   /* 200 us to the next deadline: time to read transmit stamps */
#define SLEEP_MAX_NS INT64_C(100000000)  /* 100 ms: how soon a stop is seen */

enum { EVENTS_MAX = SENDER_STREAMS_MAX };

BW_EVENT_POINT(message_begun, "send", "begun", "the first byte of a message is handed to the transport; tag: stream * 2^32 + number");
BW_EVENT_POINT(message_written, "send", "written", "its last byte is; tag: stream * 2^32 + number");

/* Names the message that is being written, as the receiver does. */
static inline int64_t tag_of(const struct sender_stream *s)
{
	return (int64_t)s->slots.stream->id << 32 | s->slots.head;
}

static int create_stream(struct sender *sender, const struct stream *stream)
{
	struct sender_stream *s = &sender->streams[sender->stream_count++];

	slots_init(&s->slots, sender->plan, sender->producer, stream);
	link_init(&s->link, sender->plan, sender->producer, stream, sender->poller, s);
	s->sent_minus_scheduled = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	if (!s->sent_minus_scheduled)
		return -ENOMEM;
	if (!sender->plan->capture_stamps)
		return 0;
	s->transmit_stack = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	return s->transmit_stack ? 0 : -ENOMEM;
}

/* Nominal end of the run in the producer's clock. */
static int64_t end_tai_ns(const struct plan *plan, const struct plan_producer *producer)
{
	struct stream run = { .period_ns = plan->warmup_ns + plan->duration_ns };

	return phase_scheduled_tai_ns(producer, &run, 1);
}

int sender_create(const struct plan *plan, const struct plan_producer *producer, const struct port_tai *tai,
		  const uint8_t *fill, atomic_bool *stop, struct sender **sender_out)
{
	struct sender *sender = calloc(1, sizeof(*sender));
	int err;

	if (!sender)
		return -ENOMEM;
	sender->plan = plan;
	sender->producer = producer;
	sender->tai = tai;
	sender->fill = fill;
	sender->stop = stop;
	sender->end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + end_tai_ns(plan, producer) -
				   port_tai_now_ns(tai) + plan->grace_ns;
	err = port_poller_create(SENDER_STREAMS_MAX, &sender->poller);
	for (size_t i = 0; !err && i < plan->pattern->stream_count; i++) {
		const struct stream *stream = &plan->pattern->streams[i];

		if (stream->producer == producer->number)
			err = create_stream(sender, stream);
	}
	if (err) {
		sender_destroy(sender);
		return err;
	}
	*sender_out = sender;
	return 0;
}

void sender_destroy(struct sender *sender)
{
	for (int i = 0; i < sender->stream_count; i++) {
		link_close(&sender->streams[i].link);
		histogram_destroy(sender->streams[i].sent_minus_scheduled);
		histogram_destroy(sender->streams[i].transmit_stack);
	}
	port_poller_destroy(sender->poller);
	free(sender);
}

uint64_t sender_unsent(const struct sender_stream *stream)
{
	return tally_get(&stream->scheduled) - tally_get(&stream->sent);
}

static bool counted(const struct sender_stream *s)
{
	return s->slots.head >= s->slots.warmup_end;
}

/* Admit due slots and advance links. Returns how many links are established now. */
static int admit(struct sender *sender, int64_t now_tai_ns, int64_t now_monotonic_ns)
{
	int established = 0;

	for (int i = 0; i < sender->stream_count; i++) {
		struct sender_stream *s = &sender->streams[i];
		uint32_t before, first_counted;

		if (s->link.state != LINK_UP || s->link.awaits_grant)
			link_advance(&s->link, now_monotonic_ns);
		established += link_established(&s->link);
		if (s->slots.next_due_tai_ns > now_tai_ns)
			continue;
		before = s->slots.next;
		slots_admit(&s->slots, now_tai_ns, !link_ready(&s->link));
		first_counted = before > s->slots.warmup_end ? before : s->slots.warmup_end;
		if (s->slots.next > first_counted)
			tally_add(&s->scheduled, s->slots.next - first_counted);
	}
	return established;
}

/* Order of service: smaller is sooner (see sender.h). */
static int rank(const struct sender_stream *s)
{
	if (s->link.hello_left_bytes || s->slots.stream->low_latency)
		return 0;
	return s->position == 0 ? 1 : 2;
}

static bool precedes(const struct sender_stream *a, const struct sender_stream *b)
{
	int rank_a = rank(a), rank_b = rank(b);

	if (rank_a != rank_b)
		return rank_a < rank_b;
	if (a->slots.head_due_tai_ns != b->slots.head_due_tai_ns)
		return a->slots.head_due_tai_ns < b->slots.head_due_tai_ns;
	return a->slots.stream->size_bytes < b->slots.stream->size_bytes;
}

static struct sender_stream *choose(struct sender *sender)
{
	struct sender_stream *best = NULL;

	for (int i = 0; i < sender->stream_count; i++) {
		struct sender_stream *s = &sender->streams[i];

		if (!link_ready(&s->link) || (!s->link.hello_left_bytes && !slots_waiting(&s->slots)))
			continue;
		if (!best || precedes(s, best))
			best = s;
	}
	return best;
}

/* Make the header of the oldest waiting slot. Its first attempt is now, unless it was blocked before. */
static void begin_message(struct sender *sender, struct sender_stream *s, int64_t now_tai_ns)
{
	struct frame_header header = { .sequence = s->slots.head };

	s->lateness_ns = header.lateness_ns = slots_attempt(&s->slots, now_tai_ns);
	frame_pack(&header, sender->plan->nonce, s->slots.stream->id, s->header);
	s->position = 0;
	s->begun = true;
	BW_EVENT(message_begun, tag_of(s));
}

static void finish_message(struct sender_stream *s)
{
	BW_EVENT(message_written, tag_of(s));
	if (s->link.stamps && s->transmit_stack && counted(s)) {
		if (s->generation != s->link.reconnects)
			txstamps_reset(&s->stamps);
		s->generation = s->link.reconnects;
		txstamps_ask(&s->stamps, s->link.written - 1, s->slots.head_due_tai_ns + s->lateness_ns);
	}
	if (counted(s)) {
		tally_add(&s->sent, 1);
		if (s->lateness_ns > s->slots.stream->period_ns)
			tally_add(&s->late_slots, 1);
		histogram_record(s->sent_minus_scheduled, s->lateness_ns);
	}
	slots_written(&s->slots);
	s->begun = false;
	s->position = 0;
}

/* Write one piece of the oldest waiting slot of a stream. */
static void write_piece(struct sender *sender, struct sender_stream *s, int64_t now_tai_ns, int64_t now_monotonic_ns)
{
	uint32_t size_bytes = s->slots.stream->size_bytes;
	uint32_t piece_bytes, header_left_bytes, fill_position;
	struct port_slice slices[PORT_SLICES_MAX];
	int count = 0;
	int64_t written;

	if (!s->begun)
		begin_message(sender, s, now_tai_ns);
	piece_bytes = size_bytes - s->position;
	if (s->link.piece_max_bytes && piece_bytes > s->link.piece_max_bytes)
		piece_bytes = s->link.piece_max_bytes;
	header_left_bytes = s->position < FRAME_HEADER_BYTES ? FRAME_HEADER_BYTES - s->position : 0;
	fill_position = s->position + header_left_bytes;
	if (header_left_bytes)
		slices[count++] = (struct port_slice){ s->header + s->position, header_left_bytes };
	if (piece_bytes > header_left_bytes)
		slices[count++] = (struct port_slice){ sender->fill + fill_position % FRAME_FILL_PERIOD,
						       piece_bytes - header_left_bytes };
	written = link_write(&s->link, slices, count, s->position + piece_bytes == size_bytes, now_monotonic_ns);
	if (!link_ready(&s->link))
		slots_blocked(&s->slots, now_tai_ns);
	if (written < 0) {
		s->position = 0; /* the whole message again, on the next connection */
		return;
	}
	s->position += (uint32_t)written;
	if (s->position == size_bytes)
		finish_message(s);
}

/* Read transmit stamps of all streams that wait for some. */
static void drain_stamps(struct sender *sender)
{
	for (int i = 0; i < sender->stream_count; i++) {
		struct sender_stream *s = &sender->streams[i];

		if (s->stamps.open && s->link.state == LINK_UP && s->generation == s->link.reconnects)
			txstamps_drain(&s->stamps, s->link.sock, sender->tai, s->transmit_stack);
	}
}

/* Read the stamps of a stream, also those that nobody waits for any more: they keep the error bit of its socket set. */
static bool read_stamps(struct sender *sender, struct sender_stream *s)
{
	if (s->link.state != LINK_UP || !s->link.stamps || !s->transmit_stack)
		return false;
	if (s->generation != s->link.reconnects)
		txstamps_reset(&s->stamps);
	return txstamps_drain(&s->stamps, s->link.sock, sender->tai, s->transmit_stack) > 0;
}

/* Wait for sockets until a deadline. */
static void wait_events(struct sender *sender, int64_t timeout_ns)
{
	struct port_event events[EVENTS_MAX];
	int count = port_poller_wait(sender->poller, events, EVENTS_MAX, timeout_ns > 0 ? timeout_ns : 0);
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	for (int i = 0; i < count; i++) {
		struct sender_stream *s = events[i].user;

		/* A stamp alone is no room to write: trying would keep this real-time thread busy until there is some. */
		if ((events[i].events & PORT_POLL_ERROR) && read_stamps(sender, s) &&
		    !(events[i].events & PORT_POLL_OUT))
			continue;
		link_on_event(&s->link, events[i].events, now_monotonic_ns);
	}
}

/* Nothing can be written: sleep until the next slot is due, a socket is ready, or a link has something to do. */
static void wait_next(struct sender *sender)
{
	/* In this order: who is held up between the two readings wakes up too early, and looks again. */
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	int64_t now_tai_ns = stepwatch_tai_now_ns(&sender->watch, sender->tai);
	int64_t due_tai_ns = now_tai_ns + SLEEP_MAX_NS;
	int64_t wake_tai_ns, link_monotonic_ns = INT64_MAX;
	bool watched = false, is_slot = false;

	for (int i = 0; i < sender->stream_count; i++) {
		const struct sender_stream *s = &sender->streams[i];
		int64_t next_tai_ns = slots_next_due_tai_ns(&s->slots);

		watched |= s->link.watched_sock != PORT_SOCKET_NONE;
		if (link_deadline_monotonic_ns(&s->link) < link_monotonic_ns)
			link_monotonic_ns = link_deadline_monotonic_ns(&s->link);
		if (next_tai_ns < due_tai_ns) {
			due_tai_ns = next_tai_ns;
			is_slot = true;
		}
	}
	if (link_monotonic_ns < now_monotonic_ns + (due_tai_ns - now_tai_ns)) {
		due_tai_ns = now_tai_ns + link_monotonic_ns - now_monotonic_ns;
		is_slot = false;
	}
	if (due_tai_ns - now_tai_ns > IDLE_ENOUGH_NS)
		drain_stamps(sender);
	wake_tai_ns = is_slot ? due_tai_ns - sender->plan->spin_ns : due_tai_ns;
	if (watched)
		wait_events(sender, wake_tai_ns - now_tai_ns);
	else if (wake_tai_ns > now_tai_ns)
		port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, now_monotonic_ns + (wake_tai_ns - now_tai_ns));
	if (!is_slot || sender->plan->spin_ns == 0)
		return;
	/* Brings the point's words into the cache: between the end of the wait and the message, that would make it late. */
	(void)BW_POINT_IS_ON(message_begun);
	now_tai_ns = port_tai_now_ns(sender->tai);
	while (due_tai_ns > now_tai_ns && due_tai_ns - now_tai_ns <= sender->plan->spin_ns)
		now_tai_ns = port_tai_now_ns(sender->tai);
}

static bool all_written(const struct sender *sender)
{
	for (int i = 0; i < sender->stream_count; i++) {
		if (sender->streams[i].slots.head != sender->streams[i].slots.end)
			return false;
	}
	return true;
}

void sender_run(void *argument)
{
	struct sender *sender = argument;
	bool up = false;

	stepwatch_init(&sender->watch, sender->tai);
	while (!atomic_load_explicit(sender->stop, memory_order_relaxed)) {
		int64_t now_tai_ns = stepwatch_tai_now_ns(&sender->watch, sender->tai);
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int established = admit(sender, now_tai_ns, now_monotonic_ns);
		struct sender_stream *s = choose(sender);

		if (!up && established > atomic_load_explicit(&sender->established, memory_order_relaxed)) {
			atomic_store_explicit(&sender->established, established, memory_order_relaxed);
			up = established == sender->stream_count;
		}
		if (!s) {
			if (now_monotonic_ns > sender->end_monotonic_ns || all_written(sender))
				break;
			wait_next(sender);
		} else if (s->link.hello_left_bytes) {
			link_write_hello(&s->link, now_monotonic_ns);
		} else {
			write_piece(sender, s, now_tai_ns, now_monotonic_ns);
			if (s->position)
				port_thread_yield();
		}
	}
	drain_stamps(sender);
	atomic_store(&sender->finished, true);
}
