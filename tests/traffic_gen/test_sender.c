/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's thread over links that the test plays: which piece of which message goes when. All slots are long due. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"
#include "traffic/send/sender.h"

#define MS INT64_C(1000000)
#define NONCE UINT64_C(0x0123456789abcdef)

enum { PIECES_MAX = 256, NONE = 0 };

/* What was written, piece by piece. */
static struct piece {
	uint16_t stream_id;
	int64_t bytes; /* negative: the connection broke */
	bool begins;   /* a message: its header is parsed */
	uint32_t sequence;
	bool last;
} pieces[PIECES_MAX];
static unsigned int piece_count, breaks_at; /* breaks_at: number of the piece from 1; NONE: none */

static struct stream streams[2];
static struct pattern pattern = { .streams = streams };
static struct plan_producer producer = { .number = 1 };
static struct plan plan = {
	.nonce = NONCE, .duration_ns = 30 * MS, .grace_ns = 10000 * MS, .pattern = &pattern,
	.producers = &producer, .producer_count = 1,
};
static struct sender *sender;

/* The links are up from the start, and once more as soon as they break. */
void link_init(struct link *link, const struct plan *of, const struct plan_producer *from, const struct stream *stream,
	       struct port_poller *poller, void *poller_user)
{
	(void)of;
	(void)from;
	memset(link, 0, sizeof(*link));
	link->stream = stream;
	link->state = LINK_UP;
	link->piece_max_bytes = LINK_PIECE_BYTES;
	link->poller = poller;
	link->poller_user = poller_user;
	link->sock = link->watched_sock = link->rtdip_grants = PORT_SOCKET_NONE;
}

int64_t link_write(struct link *link, const struct port_slice *slices, int count, bool last, int64_t now_monotonic_ns)
{
	struct piece *piece = &pieces[piece_count++ % PIECES_MAX];
	struct frame_header header;

	(void)now_monotonic_ns;
	*piece = (struct piece){ .stream_id = link->stream->id, .last = last };
	for (int i = 0; i < count; i++)
		piece->bytes += (int64_t)slices[i].size_bytes;
	piece->begins = slices[0].size_bytes == FRAME_HEADER_BYTES &&
			frame_parse(slices[0].data, NONCE, link->stream->id, &header) == 0;
	if (piece->begins)
		piece->sequence = header.sequence;
	if (piece_count != breaks_at)
		return piece->bytes;
	link->reconnects++;
	piece->bytes = -ECONNRESET;
	return piece->bytes;
}

void link_write_hello(struct link *link, int64_t now_monotonic_ns)
{
	(void)now_monotonic_ns;
	link->hello_left_bytes = 0;
}

void link_advance(struct link *link, int64_t now_monotonic_ns)
{
	(void)link;
	(void)now_monotonic_ns;
}

void link_on_event(struct link *link, unsigned int events, int64_t now_monotonic_ns)
{
	(void)link;
	(void)events;
	(void)now_monotonic_ns;
}

int64_t link_deadline_monotonic_ns(const struct link *link)
{
	(void)link;
	return INT64_MAX;
}

void link_close(struct link *link)
{
	link->state = LINK_DOWN;
}

static struct stream stream_of(uint16_t id, uint32_t size_bytes)
{
	return (struct stream){
		.id = id, .producer = 1, .message_type = (uint8_t)(id % 10), .size_bytes = size_bytes,
		.period_ns = 10 * MS, .budget_ns = 10 * MS,
	};
}

/* Play the first streams of the table to their end; the sender stays for a look at it. */
static void play(size_t count)
{
	static uint8_t fill[SENDER_FILL_BYTES];
	static struct port_tai tai = { .tai_utc_s = 37 };
	static atomic_bool stop;

	frame_fill(fill, sizeof(fill));
	piece_count = 0;
	pattern.stream_count = count;
	producer.start_tai_ns = port_tai_now_ns(&tai) - 1000 * MS;
	CHECK_INT(sender_create(&plan, &producer, &tai, fill, &stop, &sender), 0);
	sender_run(sender);
	CHECK(atomic_load(&sender->finished));
	CHECK(piece_count <= PIECES_MAX);
}

static void test_earliest_first(void)
{
	static const struct {
		uint16_t stream_id;
		uint32_t sequence;
	} wanted[] = { { 10, 0 }, { 11, 0 }, { 10, 1 }, { 11, 1 }, { 10, 2 }, { 11, 2 } };

	streams[0] = stream_of(10, 100);
	streams[1] = stream_of(11, 50);
	streams[1].phase_ns = 5 * MS;
	play(2);
	CHECK_INT(piece_count, 6);
	for (unsigned int i = 0; i < 6; i++) {
		CHECK_INT(pieces[i].stream_id, wanted[i].stream_id);
		CHECK_INT(pieces[i].sequence, wanted[i].sequence);
		CHECK(pieces[i].begins && pieces[i].last);
	}
	sender_destroy(sender);
}

/* Of slots that are due at one time the smaller message goes first, and one of low latency before all that wait. */
static void test_small_and_low_latency_first(void)
{
	streams[0] = stream_of(10, 100);
	streams[1] = stream_of(11, 50);
	play(2);
	for (unsigned int i = 0; i < 6; i++)
		CHECK_INT(pieces[i].stream_id, i % 2 ? 10 : 11);
	sender_destroy(sender);
	streams[1].size_bytes = 5000;
	streams[1].low_latency = true;
	play(2);
	for (unsigned int i = 0; i < 6; i++)
		CHECK_INT(pieces[i].stream_id, i < 3 ? 11 : 10);
	sender_destroy(sender);
}

/* On a new connection the message begins anew, with its own number, and all of it goes. */
static void test_break_within_a_message(void)
{
	const int64_t size_bytes = 3 * LINK_PIECE_BYTES + 1000;

	streams[0] = stream_of(10, (uint32_t)size_bytes);
	for (breaks_at = 1; breaks_at <= 4; breaks_at++) {
		int64_t again_bytes = 0;

		play(1);
		CHECK_INT(piece_count, breaks_at + 3 * 4);
		CHECK(pieces[0].begins);
		CHECK_INT(pieces[breaks_at - 1].bytes, -ECONNRESET);
		CHECK(pieces[breaks_at].begins);
		CHECK_INT(pieces[breaks_at].sequence, 0);
		for (unsigned int i = breaks_at; i < breaks_at + 4; i++) {
			again_bytes += pieces[i].bytes;
			CHECK_INT(pieces[i].last, i == breaks_at + 3);
		}
		CHECK_INT(again_bytes, size_bytes);
		CHECK_INT(pieces[breaks_at + 4].sequence, 1);
		CHECK_INT(tally_get(&sender->streams[0].sent), 3);
		sender_destroy(sender);
	}
	breaks_at = NONE;
}

/* Counted is from the first slot after the warm-up on; all slots are sent. */
static void test_counted_after_warmup(void)
{
	streams[0] = stream_of(10, 100);
	for (int64_t warmup = 0; warmup <= 3; warmup++) {
		plan.warmup_ns = warmup * 10 * MS;
		play(1);
		CHECK_INT(piece_count, 3 + warmup);
		CHECK_INT(tally_get(&sender->streams[0].scheduled), 3);
		CHECK_INT(tally_get(&sender->streams[0].sent), 3);
		CHECK_INT(sender_unsent(&sender->streams[0]), 0);
		CHECK_INT(histogram_count(sender->streams[0].sent_minus_scheduled), 3);
		sender_destroy(sender);
	}
	plan.warmup_ns = 0;
}

int main(void)
{
	test_earliest_first();
	test_small_and_low_latency_first();
	test_break_within_a_message();
	test_counted_after_warmup();
	return check_result();
}
