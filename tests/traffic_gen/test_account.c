/* SPDX-License-Identifier: Apache-2.0 */
/* What one message adds to the account of its stream: its latencies, and what is late. */
#include "check.h"
#include "traffic/receive/account.h"

#define MS INT64_C(1000000)
#define START_TAI_NS INT64_C(1800000000000000000)

static struct recorder_entry noted;
static bool noted_late;

void recorder_put(struct recorder *recorder, int lane, const struct recorder_entry *entry, bool late)
{
	(void)recorder;
	(void)lane;
	noted = *entry;
	noted_late = late;
}

static const struct stream stream = {
	.id = 10, .producer = 1, .size_bytes = 100, .period_ns = 10 * MS, .budget_ns = 8 * MS,
};
static struct plan_producer producer = { .number = 1, .start_tai_ns = START_TAI_NS };
static const struct plan plan = {
	.warmup_ns = 20 * MS, .duration_ns = 100 * MS, .capture_stamps = true, .producers = &producer, .producer_count = 1,
};
static struct account account;
static struct hostile hostile;

/* A message of slot 5 comes so late after its slot, sent so late. */
static void take(int64_t received_late_ns, int64_t sent_late_ns, int64_t in_stack_ns)
{
	const struct frame_header header = { .sequence = 5, .lateness_ns = sent_late_ns };
	const int64_t now_tai_ns = START_TAI_NS + 5 * stream.period_ns + received_late_ns;
	const struct arrival arrival = { now_tai_ns, now_tai_ns - in_stack_ns };

	memset(&hostile, 0, sizeof(hostile));
	CHECK_INT(account_open(&account, &plan, &stream, NULL, NULL, 0), 0);
	account_take(&account, &header, &arrival, &hostile);
	CHECK_INT(tally_get(&account.received), 1);
	CHECK_INT(noted.received_minus_scheduled_ns, received_late_ns);
	CHECK_INT(noted.lateness_ns, sent_late_ns);
}

static void test_a_latency_is_split_where_the_message_was_sent(void)
{
	take(7 * MS, 3 * MS, 1000);
	CHECK_INT(histogram_max_ns(account.received_minus_scheduled), 7 * MS);
	CHECK_INT(histogram_max_ns(account.sent_minus_scheduled), 3 * MS);
	CHECK_INT(histogram_max_ns(account.received_minus_sent), 4 * MS);
	CHECK_INT(histogram_max_ns(account.receive_stack), 1000);
	CHECK_INT(tally_get(&account.max_ns), 7 * MS);
	CHECK_INT(tally_get(&account.misses), 0);
	CHECK_INT(noted_late, true); /* over three quarters of its budget */
	account_close(&account);
}

/* It missed its budget: by the generator alone, or under way too. */
static void test_whose_a_miss_is(void)
{
	take(9 * MS, 5 * MS, 0);
	CHECK_INT(tally_get(&account.misses), 1);
	CHECK_INT(tally_get(&account.misses_sent), 0);
	account_close(&account);
	take(9 * MS, 0, 0);
	CHECK_INT(tally_get(&account.misses), 1);
	CHECK_INT(tally_get(&account.misses_sent), 1);
	account_close(&account);
	take(8 * MS, 0, 0);
	CHECK_INT(tally_get(&account.misses), 0);
	CHECK_INT(tally_get(&account.misses_sent), 0);
	account_close(&account);
	take(6 * MS, 0, 0);
	CHECK_INT(noted_late, false);
	account_close(&account);
}

static void test_a_lateness_that_cannot_be_said_is_no_sample(void)
{
	take(9 * MS, FRAME_LATENESS_MAX_NS, 0);
	CHECK_INT(tally_get(&account.invalid_samples), 1);
	CHECK_INT(histogram_count(account.received_minus_scheduled), 1);
	CHECK_INT(histogram_count(account.received_minus_sent), 0);
	CHECK_INT(histogram_count(account.sent_minus_scheduled), 0);
	account_close(&account);
}

/* A message of a slot, when it is due: is it counted, is it stale? */
static void take_slot(uint32_t sequence, unsigned int counted, unsigned int stale)
{
	const struct frame_header header = { .sequence = sequence };
	const struct arrival arrival = { .now_tai_ns = START_TAI_NS + sequence * stream.period_ns };

	memset(&hostile, 0, sizeof(hostile));
	CHECK_INT(account_open(&account, &plan, &stream, NULL, NULL, 0), 0);
	account_take(&account, &header, &arrival, &hostile);
	CHECK_INT(tally_get(&account.received), counted);
	CHECK_INT(histogram_count(account.received_minus_scheduled), counted);
	CHECK_INT(tally_get(&hostile.stale), stale);
	CHECK_INT(account_expected(&account), 10);
	account_close(&account);
}

/* Two slots of warm-up, ten that count: 2 to 11. */
static void test_which_slots_count(void)
{
	take_slot(1, 0, 0);
	take_slot(2, 1, 0);
	take_slot(11, 1, 0);
	take_slot(12, 0, 1);
	take_slot(UINT32_MAX, 0, 1);
}

/* The same message again is a duplicate, and no second sample; an earlier one that comes late is one. */
static void test_a_duplicate_is_no_sample(void)
{
	static const uint32_t sequences[] = { 5, 5, 4, 4, 5 };

	memset(&hostile, 0, sizeof(hostile));
	CHECK_INT(account_open(&account, &plan, &stream, NULL, NULL, 0), 0);
	for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
		const struct frame_header header = { .sequence = sequences[i] };
		const struct arrival arrival = { .now_tai_ns = START_TAI_NS + 5 * stream.period_ns };

		account_take(&account, &header, &arrival, &hostile);
	}
	CHECK_INT(tally_get(&account.received), 2);
	CHECK_INT(histogram_count(account.received_minus_scheduled), 2);
	CHECK_INT(tally_get(&account.duplicates), 3);
	CHECK_INT(tally_get(&account.reordered), 1);
	CHECK_INT(account_missing_so_far(&account), 2); /* slots 2 and 3 */
	account_close(&account);
}

/* A message of slot 5, so late by the producer's clock, which is ahead of ours: is it counted, and measured? */
static void take_by_line(bool valid, int64_t received_late_ns, unsigned int counted, unsigned int measured)
{
	enum { AHEAD_NS = 3000000 };
	const struct frame_header header = { .sequence = 5 };
	const int64_t due_tai_ns = START_TAI_NS + 5 * stream.period_ns - AHEAD_NS;
	const struct twoway_line line = { .valid = valid, .at_local_ns = due_tai_ns, .offset_ns = AHEAD_NS };
	const struct arrival arrival = { .now_tai_ns = due_tai_ns + received_late_ns };
	const struct arrival honest = { .now_tai_ns = due_tai_ns };
	struct clockline clock;

	clockline_init(&clock);
	clockline_publish(&clock, &line);
	memset(&hostile, 0, sizeof(hostile));
	CHECK_INT(account_open(&account, &plan, &stream, &clock, NULL, 0), 0);
	account_take(&account, &header, &arrival, &hostile);
	CHECK_INT(tally_get(&account.received), counted);
	CHECK_INT(histogram_count(account.received_minus_scheduled), measured);
	CHECK_INT(tally_get(&account.invalid_samples), counted - measured);
	CHECK_INT(tally_get(&hostile.stale), 1 - counted);
	account_take(&account, &header, &honest, &hostile); /* what was not counted leaves its slot free */
	CHECK_INT(tally_get(&account.received), 1);
	CHECK_INT(tally_get(&account.duplicates), counted);
	account_close(&account);
}

/* Before it was sent, by more than any clock error, no message arrives; without a line nobody can say so. */
static void test_a_message_that_arrives_impossibly_early_is_stale(void)
{
	take_by_line(true, -1000 * MS, 1, 1);
	take_by_line(true, -1000 * MS - 1, 0, 0);
	take_by_line(true, -3600000 * MS, 0, 0);
	take_by_line(false, -1000 * MS - 1, 1, 0);
}

int main(void)
{
	test_a_latency_is_split_where_the_message_was_sent();
	test_whose_a_miss_is();
	test_a_lateness_that_cannot_be_said_is_no_sample();
	test_which_slots_count();
	test_a_duplicate_is_no_sample();
	test_a_message_that_arrives_impossibly_early_is_stale();
	return check_result();
}
