/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/receive/account.h"

#include <errno.h>
#include <string.h>

#include "events/bwevents.h"
#include "plan/phase.h"

/* A message cannot arrive before it is sent. One that seems to, by more than any clock error, is of no honest sender. */
#define IMPOSSIBLE_NS INT64_C(-1000000000)

BW_EVENT_POINT(message_read, "receive", "message", "the last byte of a message was read; tag: stream * 2^32 + number");
BW_DATA_POINT(message_late, "receive", "late", "q", "a message is over its budget; tag: stream * 2^32 + number; its latency in ns");

static inline int64_t tag_of(const struct account *account, uint32_t sequence)
{
	return (int64_t)account->stream->id << 32 | sequence;
}

int account_open(struct account *account, const struct plan *plan, const struct stream *stream,
		 const struct clockline *clock, struct recorder *recorder, int lane)
{
	struct slot_range range = phase_slot_range(plan, stream);

	memset(account, 0, sizeof(*account));
	account->stream = stream;
	account->producer = plan_find_producer(plan, stream->producer);
	account->clock = clock;
	account->recorder = recorder;
	account->lane = lane;
	account->warmup_end = range.warmup_end;
	account->end = range.end;
	sequence_init(&account->window);
	account->received_minus_scheduled = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	account->received_minus_sent = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	account->sent_minus_scheduled = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	if (plan->capture_stamps)
		account->receive_stack = histogram_create(HISTOGRAM_LOWEST_NS, HISTOGRAM_HIGHEST_NS);
	if (!account->received_minus_scheduled || !account->received_minus_sent || !account->sent_minus_scheduled ||
	    (plan->capture_stamps && !account->receive_stack)) {
		account_close(account);
		return -ENOMEM;
	}
	return 0;
}

void account_close(struct account *account)
{
	histogram_destroy(account->received_minus_scheduled);
	histogram_destroy(account->received_minus_sent);
	histogram_destroy(account->sent_minus_scheduled);
	histogram_destroy(account->receive_stack);
	account->received_minus_scheduled = account->received_minus_sent = NULL;
	account->sent_minus_scheduled = account->receive_stack = NULL;
}

uint64_t account_expected(const struct account *account)
{
	return account->end - account->warmup_end;
}

uint64_t account_missing_so_far(const struct account *account)
{
	uint64_t received = tally_get(&account->received); /* first: it only grows, and never past the horizon */
	uint64_t horizon = tally_get(&account->horizon);

	return horizon > received ? horizon - received : 0;
}

int64_t account_late_above_ns(const struct stream *stream)
{
	return stream->budget_ns - stream->budget_ns / 4;
}

static void count_miss(struct account *account, const struct recorder_entry *entry)
{
	if (entry->received_minus_scheduled_ns > account->stream->budget_ns) {
		BW_EVENT_DATA(message_late, tag_of(account, entry->sequence), &entry->received_minus_scheduled_ns,
			      sizeof(entry->received_minus_scheduled_ns));
		tally_add(&account->misses, 1);
	}
	recorder_put(account->recorder, account->lane, entry,
		     entry->received_minus_scheduled_ns > account_late_above_ns(account->stream));
}

/* Enter the latencies of a counted message. */
static void measure(struct account *account, const struct recorder_entry *entry)
{
	int64_t received_minus_scheduled_ns = entry->received_minus_scheduled_ns;

	histogram_record(account->received_minus_scheduled, received_minus_scheduled_ns);
	if (received_minus_scheduled_ns > 0)
		tally_raise(&account->max_ns, (uint64_t)received_minus_scheduled_ns);
	if (frame_lateness_valid(entry->lateness_ns)) {
		int64_t received_minus_sent_ns = received_minus_scheduled_ns - entry->lateness_ns;

		histogram_record(account->sent_minus_scheduled, entry->lateness_ns);
		histogram_record(account->received_minus_sent, received_minus_sent_ns);
		if (received_minus_sent_ns > account->stream->budget_ns)
			tally_add(&account->misses_sent, 1);
	} else {
		tally_add(&account->invalid_samples, 1);
	}
	if (account->receive_stack && entry->kernel_stamp_local_tai_ns)
		histogram_record(account->receive_stack,
				 entry->received_local_tai_ns - entry->kernel_stamp_local_tai_ns);
	count_miss(account, entry);
}

/* Count a slot as received. @return false when it is to be left out of the latencies */
static bool enter(struct account *account, uint32_t sequence, struct hostile *hostile)
{
	enum sequence_class class = sequence_enter(&account->window, sequence);
	bool is_counted = sequence >= account->warmup_end;

	if (class == SEQUENCE_OLD) {
		tally_add(&hostile->stale, 1);
		return false;
	}
	if (!is_counted)
		return false;
	if (class == SEQUENCE_DUPLICATE) {
		tally_add(&account->duplicates, 1);
		return false;
	}
	if (class == SEQUENCE_REORDERED)
		tally_add(&account->reordered, 1);
	tally_raise(&account->horizon, (uint64_t)sequence + 1 - account->warmup_end);
	tally_add(&account->received, 1);
	return true;
}

void account_take(struct account *account, const struct frame_header *header, const struct arrival *arrival,
		  struct hostile *hostile)
{
	struct recorder_entry entry = {
		.stream_id = account->stream->id,
		.sequence = header->sequence,
		.lateness_ns = header->lateness_ns,
		.received_local_tai_ns = arrival->now_tai_ns,
		.received_reference_tai_ns = arrival->now_tai_ns,
		.kernel_stamp_local_tai_ns = arrival->stamp_tai_ns,
	};
	bool has_clock = true;

	BW_EVENT(message_read, tag_of(account, header->sequence));
	if (header->sequence >= account->end) {
		tally_add(&hostile->stale, 1);
		return;
	}
	entry.scheduled_tai_ns = phase_scheduled_tai_ns(account->producer, account->stream, header->sequence);
	if (account->clock) {
		struct twoway_line line = clockline_read(account->clock);

		has_clock = line.valid;
		if (has_clock)
			entry.received_reference_tai_ns = twoway_line_to_peer_ns(&line, arrival->now_tai_ns);
	}
	entry.received_minus_scheduled_ns = entry.received_reference_tai_ns - entry.scheduled_tai_ns;
	if (account->clock && has_clock && entry.received_minus_scheduled_ns < IMPOSSIBLE_NS) {
		tally_add(&hostile->stale, 1);
		return;
	}
	if (!enter(account, header->sequence, hostile))
		return;
	if (has_clock)
		measure(account, &entry);
	else
		tally_add(&account->invalid_samples, 1);
}
