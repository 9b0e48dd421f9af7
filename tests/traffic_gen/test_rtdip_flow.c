/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flow control of RTDiP's low messages: both ends by themselves, and twelve senders with a receiver behind a slow card, over a
 * network that loses and reorders. Time is simulated.
 */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "random.h"
#include "traffic/rtdip_flow.h"

#define STEP_NS INT64_C(50000) /* the card hands over one frame in each */
#define MS_NS INT64_C(1000000)

enum {
	RUN = 0x01020304,
	SENDERS = 12,
	MESSAGE_BYTES = 640000,
	PIECE_BYTES = 1480,
	MESSAGE_FRAMES = (MESSAGE_BYTES + PIECE_BYTES - 1) / PIECE_BYTES,
	WIRE_MAX = 8192,
	GRANT_STEPS = 4, /* the way of a grant */
	HOUR_STEPS = 3600 * 20000,
};

/* ---- one end alone ------------------------------------------------------------------------------------------------- */

static int take_grant(struct rtdip_credit *credit, uint32_t run, uint32_t message, uint32_t limit_bytes)
{
	const struct rtdip_grant grant = { run, message, limit_bytes };
	uint8_t bytes[RTDIP_GRANT_BYTES];

	rtdip_grant_pack(&grant, bytes);
	return rtdip_credit_take(credit, bytes, sizeof(bytes));
}

static void test_grant_on_the_wire(void)
{
	const struct rtdip_grant grant = { 0x01020304, 0xfffffffe, 0x10000 };
	uint8_t bytes[RTDIP_GRANT_BYTES + 1] = { 0 };
	struct rtdip_grant read = { 0 };

	rtdip_grant_pack(&grant, bytes);
	CHECK_INT(memcmp(bytes, "\x01\x02\x03\x04\xff\xff\xff\xfe\x00\x01\x00\x00", RTDIP_GRANT_BYTES), 0);
	CHECK_INT(rtdip_grant_parse(bytes, RTDIP_GRANT_BYTES - 1, &read), -EBADMSG);
	CHECK_INT(rtdip_grant_parse(bytes, RTDIP_GRANT_BYTES + 1, &read), -EBADMSG);
	CHECK_INT(read.run, 0);
	CHECK_INT(rtdip_grant_parse(bytes, RTDIP_GRANT_BYTES, &read), 0);
	CHECK(read.run == grant.run && read.message == grant.message && read.limit_bytes == grant.limit_bytes);
}

static void test_credit(void)
{
	struct rtdip_credit credit;

	rtdip_credit_init(&credit, RUN, MESSAGE_BYTES);
	rtdip_credit_begin(&credit, 7);
	CHECK(rtdip_credit_allows(&credit, 0));
	CHECK(!rtdip_credit_allows(&credit, 1));
	CHECK_INT(take_grant(&credit, RUN, 7, 4000), 0);
	CHECK(rtdip_credit_allows(&credit, 3999));
	CHECK(!rtdip_credit_allows(&credit, 4000));
	CHECK_INT(take_grant(&credit, RUN, 7, 4000), -EALREADY);
	CHECK_INT(take_grant(&credit, RUN, 7, 3000), -EALREADY); /* one that was overtaken */
	CHECK_INT(take_grant(&credit, RUN, 6, 9000), -EALREADY);
	CHECK_INT(credit.refused, 0);
	CHECK_INT(take_grant(&credit, RUN, 8, 4001), -EBADMSG); /* of a message that has not begun */
	CHECK_INT(take_grant(&credit, RUN + 1, 7, 4001), -EBADMSG);
	CHECK_INT(take_grant(&credit, RUN, 7, MESSAGE_BYTES + 1), -EBADMSG);
	CHECK_INT(rtdip_credit_take(&credit, (const uint8_t *)"grant", 5), -EBADMSG);
	CHECK_INT(credit.refused, 4);
	CHECK_INT(credit.granted, 1);
	CHECK(!rtdip_credit_allows(&credit, 4000));
	rtdip_credit_begin(&credit, 8);
	CHECK(rtdip_credit_allows(&credit, 0));
	CHECK(!rtdip_credit_allows(&credit, 1));
}

static void test_credit_asks(void)
{
	struct rtdip_credit credit;

	rtdip_credit_init(&credit, RUN, MESSAGE_BYTES);
	CHECK(!rtdip_credit_ask(&credit, INT64_MAX - 1));
	rtdip_credit_wait(&credit, 0);
	rtdip_credit_wait(&credit, 5); /* it is still the same waiting */
	CHECK(!rtdip_credit_ask(&credit, RTDIP_FLOW_ASK_NS - 1));
	CHECK(rtdip_credit_ask(&credit, RTDIP_FLOW_ASK_NS));
	CHECK(!rtdip_credit_ask(&credit, RTDIP_FLOW_ASK_NS + 1));
	CHECK(rtdip_credit_ask(&credit, 2 * RTDIP_FLOW_ASK_NS));
	rtdip_credit_sent(&credit);
	CHECK(!rtdip_credit_ask(&credit, INT64_MAX - 1));
	CHECK_INT(credit.asked, 2);
}

static const struct rtdip_address first_sender = { { 2, 0, 0, 0, 0, 1 }, 50000 };

static void come(struct rtdip_flow *flow, uint32_t number, uint32_t message, uint32_t offset, uint32_t length_bytes,
		 int64_t now_monotonic_ns)
{
	const struct rtdip_fragment fragment = { message, offset };

	rtdip_flow_take(flow, number, &first_sender, &fragment, length_bytes, now_monotonic_ns);
}

/* What a stream is granted now; 0: nothing. */
static uint32_t granted(struct rtdip_flow *flow, uint32_t number, int64_t now_monotonic_ns)
{
	struct rtdip_grant grant;
	uint32_t limit_bytes = 0, to;

	while (rtdip_flow_grant(flow, now_monotonic_ns, &to, &grant)) {
		if (to == number)
			limit_bytes = grant.limit_bytes;
	}
	return limit_bytes;
}

static struct rtdip_flow make_flow(uint32_t streams, uint32_t size_bytes, int64_t budget_ns)
{
	struct rtdip_flow flow;

	rtdip_flow_init(&flow, RUN);
	for (uint32_t i = 0; i < streams; i++)
		CHECK_INT(rtdip_flow_add(&flow, size_bytes, budget_ns), i);
	return flow;
}

static void test_one_stream_has_the_window(void)
{
	struct rtdip_flow flow = make_flow(1, MESSAGE_BYTES, MS_NS);

	CHECK_INT(granted(&flow, 0, 0), 0);
	come(&flow, 0, 0, 0, PIECE_BYTES, 0);
	CHECK_INT(granted(&flow, 0, 0), PIECE_BYTES + RTDIP_FLOW_WINDOW_BYTES);
	come(&flow, 0, 0, PIECE_BYTES, PIECE_BYTES, 1);
	CHECK_INT(granted(&flow, 0, 1), 0); /* not for each fragment */
	/* What lies between is lost: its room is there again. */
	come(&flow, 0, 0, 12 * PIECE_BYTES, PIECE_BYTES, 2);
	CHECK_INT(granted(&flow, 0, 2), PIECE_BYTES + RTDIP_FLOW_WINDOW_BYTES + RTDIP_FLOW_SHARE_BYTES);
	CHECK(flow.held_bytes <= RTDIP_FLOW_WINDOW_BYTES);
	come(&flow, 0, 0, PIECE_BYTES, PIECE_BYTES, 3); /* comes late */
	CHECK_INT(granted(&flow, 0, 3), 0);
}

static void test_small_messages_need_no_grant(void)
{
	struct rtdip_flow flow = make_flow(1, 500, MS_NS);

	for (uint32_t message = 0; message < 10; message++) {
		come(&flow, 0, message, 0, 500, message);
		CHECK_INT(granted(&flow, 0, message), 0);
	}
	CHECK_INT(flow.held_bytes, 0);
	CHECK(rtdip_flow_deadline_monotonic_ns(&flow) == INT64_MAX);
}

static void test_who_has_to_be_first_is_first(void)
{
	struct rtdip_flow flow = make_flow(1, MESSAGE_BYTES, 50 * MS_NS);

	CHECK_INT(rtdip_flow_add(&flow, MESSAGE_BYTES, 40 * MS_NS), 1);
	CHECK_INT(rtdip_flow_add(&flow, MESSAGE_BYTES / 2, 40 * MS_NS), 2);
	for (uint32_t i = 0; i < 3; i++)
		come(&flow, i, 0, 0, PIECE_BYTES, 0);
	CHECK_INT(granted(&flow, 0, 0), 0); /* half the window each for the other two */
	CHECK_INT(flow.streams[1].held_bytes, RTDIP_FLOW_WINDOW_BYTES / 2);
	CHECK_INT(flow.streams[2].held_bytes, RTDIP_FLOW_WINDOW_BYTES / 2);
	come(&flow, 1, 0, PIECE_BYTES + RTDIP_FLOW_SHARE_BYTES, PIECE_BYTES, 1);
	CHECK_INT(granted(&flow, 0, 1), 0);
	CHECK_INT(flow.streams[1].granted_bytes, PIECE_BYTES + RTDIP_FLOW_WINDOW_BYTES / 2 + RTDIP_FLOW_SHARE_BYTES);
}

static void test_a_lost_grant_is_asked_for(void)
{
	struct rtdip_flow flow = make_flow(1, MESSAGE_BYTES, MS_NS);

	come(&flow, 0, 0, 0, PIECE_BYTES, 0);
	CHECK(granted(&flow, 0, 0) > 0); /* and lost */
	come(&flow, 0, 0, PIECE_BYTES, 0, RTDIP_FLOW_ASK_NS);
	CHECK_INT(granted(&flow, 0, RTDIP_FLOW_ASK_NS), PIECE_BYTES + RTDIP_FLOW_WINDOW_BYTES);
	CHECK_INT(flow.held_bytes, RTDIP_FLOW_WINDOW_BYTES);
	/* A message whose first fragment was lost begins by a question. */
	come(&flow, 0, 1, PIECE_BYTES, 0, RTDIP_FLOW_ASK_NS);
	CHECK_INT(granted(&flow, 0, RTDIP_FLOW_ASK_NS), PIECE_BYTES + RTDIP_FLOW_WINDOW_BYTES);
}

static void test_who_is_silent_gives_his_room_back(void)
{
	struct rtdip_flow flow = make_flow(2, MESSAGE_BYTES, MS_NS);

	come(&flow, 0, 0, 0, PIECE_BYTES, 0);
	CHECK_INT(granted(&flow, 0, 0), PIECE_BYTES + RTDIP_FLOW_WINDOW_BYTES);
	come(&flow, 1, 0, 0, PIECE_BYTES, 0);
	CHECK_INT(granted(&flow, 1, 0), 0);
	CHECK(rtdip_flow_deadline_monotonic_ns(&flow) == RTDIP_FLOW_SILENCE_NS);
	rtdip_flow_tend(&flow, RTDIP_FLOW_SILENCE_NS - 1);
	CHECK_INT(granted(&flow, 1, RTDIP_FLOW_SILENCE_NS - 1), 0);
	rtdip_flow_tend(&flow, RTDIP_FLOW_SILENCE_NS);
	CHECK_INT(flow.silences, 1);
	CHECK_INT(granted(&flow, 1, RTDIP_FLOW_SILENCE_NS), PIECE_BYTES + RTDIP_FLOW_WINDOW_BYTES);
	/* It was asleep, no more: what it was granted counts again, and it goes on when there is room. */
	come(&flow, 0, 0, PIECE_BYTES, PIECE_BYTES, RTDIP_FLOW_SILENCE_NS + 1);
	CHECK_INT(flow.held_bytes, 2 * RTDIP_FLOW_WINDOW_BYTES - PIECE_BYTES);
	CHECK_INT(granted(&flow, 0, RTDIP_FLOW_SILENCE_NS + 1), 0);
	come(&flow, 0, 0, 12 * PIECE_BYTES, PIECE_BYTES, RTDIP_FLOW_SILENCE_NS + 2);
	CHECK_INT(granted(&flow, 0, RTDIP_FLOW_SILENCE_NS + 2), 0);
	come(&flow, 1, 0, MESSAGE_BYTES - 1, 1, RTDIP_FLOW_SILENCE_NS + 3);
	CHECK(granted(&flow, 0, RTDIP_FLOW_SILENCE_NS + 3) > 0);
}

static void test_message_numbers(void)
{
	struct rtdip_flow flow = make_flow(1, MESSAGE_BYTES, MS_NS);
	struct rtdip_credit credit;
	const struct rtdip_address other = { { 2, 0, 0, 0, 0, 1 }, 50001 };
	const struct rtdip_fragment fragment = { 0, 0 };

	come(&flow, 0, UINT32_MAX, 0, PIECE_BYTES, 0);
	come(&flow, 0, 0, 0, PIECE_BYTES, 1);
	CHECK_INT(flow.streams[0].message, 0);
	CHECK(granted(&flow, 0, 1) > 0);
	come(&flow, 0, UINT32_MAX, PIECE_BYTES, MESSAGE_BYTES - PIECE_BYTES, 2); /* one of the message before comes late */
	CHECK_INT(flow.streams[0].taken_bytes, PIECE_BYTES);
	rtdip_credit_init(&credit, RUN, MESSAGE_BYTES);
	rtdip_credit_begin(&credit, UINT32_MAX);
	rtdip_credit_begin(&credit, 0);
	CHECK_INT(take_grant(&credit, RUN, UINT32_MAX, 9000), -EALREADY);
	CHECK_INT(take_grant(&credit, RUN, 1, 9000), -EBADMSG);
	CHECK_INT(take_grant(&credit, RUN, 0, 9000), 0);
	/* Who begins anew has another port, or the same one after some silence. */
	come(&flow, 0, 900, 0, PIECE_BYTES, 3);
	rtdip_flow_take(&flow, 0, &other, &fragment, PIECE_BYTES, 4);
	CHECK_INT(flow.streams[0].message, 0);
	CHECK_INT(flow.streams[0].from.port, other.port);
	come(&flow, 0, 900, 0, PIECE_BYTES, 5);
	come(&flow, 0, 0, 0, PIECE_BYTES, 6);
	CHECK_INT(flow.streams[0].message, 900);
	come(&flow, 0, 0, 0, PIECE_BYTES, 5 + RTDIP_FLOW_SILENCE_NS);
	CHECK_INT(flow.streams[0].message, 0);
}

static void test_there_is_an_end_of_streams(void)
{
	struct rtdip_flow flow = make_flow(RTDIP_FLOW_STREAMS_MAX, MESSAGE_BYTES, MS_NS);

	CHECK_INT(rtdip_flow_add(&flow, MESSAGE_BYTES, MS_NS), -ENOSPC);
}

/* ---- twelve senders, one slow card --------------------------------------------------------------------------------- */

struct sim_frame {
	int sender;
	struct rtdip_fragment fragment;
	uint32_t length_bytes; /* 0: a question */
};

struct sim_grant {
	int sender;
	int64_t at_step;
	struct rtdip_grant grant;
};

struct sim_sender {
	struct rtdip_credit credit;
	struct rtdip_fragment next;
	uint32_t left; /* messages that are not sent yet */
	bool dead;
};

struct sim {
	struct random random;
	double fragment_loss, grant_loss, reordered;
	struct rtdip_flow flow;
	struct sim_sender senders[SENDERS];
	struct sim_frame queue[WIRE_MAX]; /* in front of the card */
	uint32_t queued, longest;
	struct sim_grant grants[WIRE_MAX];
	uint32_t grants_under_way;
	uint64_t handed_over, asked;
	int64_t step;
	int wrong;
};

static void sim_init(struct sim *sim, uint32_t first_message, uint32_t messages)
{
	memset(sim, 0, sizeof(*sim));
	sim->random.state = 1;
	sim->flow = make_flow(SENDERS, MESSAGE_BYTES, 40 * MS_NS);
	for (int i = 0; i < SENDERS; i++) {
		struct sim_sender *sender = &sim->senders[i];

		rtdip_credit_init(&sender->credit, RUN, MESSAGE_BYTES);
		sender->next.message = first_message;
		sender->left = messages;
	}
}

static bool happens(struct sim *sim, double share)
{
	return share > 0 && random_unit(&sim->random) < share;
}

static void put(struct sim *sim, const struct sim_frame *frame)
{
	if (happens(sim, sim->fragment_loss))
		return;
	if (sim->queued == WIRE_MAX) {
		sim->wrong++;
		return;
	}
	sim->queue[sim->queued++] = *frame;
	if (sim->queued > 1 && happens(sim, sim->reordered)) {
		struct sim_frame *last = &sim->queue[sim->queued - 1], other = *last;

		*last = last[-1];
		last[-1] = other;
	}
	if (sim->queued > sim->longest)
		sim->longest = sim->queued;
}

/* Send all that a sender may. */
static void send_what_may_go(struct sim *sim, int number)
{
	struct sim_sender *sender = &sim->senders[number];

	while (sender->left && !sender->dead) {
		struct sim_frame frame = { number, sender->next, MESSAGE_BYTES - sender->next.offset };

		if (sender->next.offset == 0)
			rtdip_credit_begin(&sender->credit, sender->next.message);
		if (frame.length_bytes > PIECE_BYTES)
			frame.length_bytes = PIECE_BYTES;
		if (!rtdip_credit_allows(&sender->credit, sender->next.offset)) {
			rtdip_credit_wait(&sender->credit, sim->step * STEP_NS);
			if (!rtdip_credit_ask(&sender->credit, sim->step * STEP_NS))
				return;
			frame.length_bytes = 0;
			sim->asked++;
			put(sim, &frame);
			return;
		}
		put(sim, &frame);
		rtdip_credit_sent(&sender->credit);
		sender->next.offset += frame.length_bytes;
		if (sender->next.offset == MESSAGE_BYTES) {
			sender->next = (struct rtdip_fragment){ sender->next.message + 1, 0 };
			sender->left--;
		}
	}
}

static void send_grants(struct sim *sim)
{
	struct rtdip_grant grant;
	uint32_t number, sum_bytes = 0;

	while (rtdip_flow_grant(&sim->flow, sim->step * STEP_NS, &number, &grant)) {
		if (!happens(sim, sim->grant_loss))
			sim->grants[sim->grants_under_way++] =
				(struct sim_grant){ (int)number, sim->step + GRANT_STEPS, grant };
	}
	for (uint32_t i = 0; i < sim->flow.stream_count; i++)
		sum_bytes += sim->flow.streams[i].held_bytes;
	sim->wrong += sum_bytes != sim->flow.held_bytes;
}

static void hand_over(struct sim *sim)
{
	struct sim_frame frame = sim->queue[0];
	struct rtdip_address from = first_sender;

	if (!sim->queued)
		return;
	memmove(sim->queue, sim->queue + 1, --sim->queued * sizeof(frame));
	from.mac[5] = (uint8_t)frame.sender;
	rtdip_flow_take(&sim->flow, (uint32_t)frame.sender, &from, &frame.fragment, frame.length_bytes, sim->step * STEP_NS);
	sim->handed_over += frame.length_bytes > 0;
}

static void hand_grants_over(struct sim *sim)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < sim->grants_under_way; i++) {
		const struct sim_grant *grant = &sim->grants[i];
		struct rtdip_credit *credit = &sim->senders[grant->sender].credit;

		if (grant->at_step > sim->step)
			sim->grants[kept++] = *grant;
		else
			sim->wrong += take_grant(credit, grant->grant.run, grant->grant.message, grant->grant.limit_bytes) == -EBADMSG;
	}
	sim->grants_under_way = kept;
}

/* Go on until all that live have sent everything. Return how many steps it took; HOUR_STEPS: they never did. */
static int64_t run(struct sim *sim)
{
	for (bool left = true; left && sim->step < HOUR_STEPS; sim->step++) {
		left = false;
		for (int i = 0; i < SENDERS; i++) {
			send_what_may_go(sim, i);
			left |= sim->senders[i].left && !sim->senders[i].dead;
		}
		left |= sim->queued > 0;
		hand_over(sim);
		rtdip_flow_tend(&sim->flow, sim->step * STEP_NS);
		send_grants(sim);
		hand_grants_over(sim);
	}
	CHECK_INT(sim->wrong, 0);
	return sim->step;
}

/* What stands in front of the card at most: the window, and of each sender its first fragment and the end of one more. */
#define QUEUE_MAX (RTDIP_FLOW_WINDOW_BYTES / PIECE_BYTES + 2 * SENDERS)

static struct sim sim;

static void test_a_burst_never_stands_in_front_of_the_card(void)
{
	int64_t steps;

	sim_init(&sim, 0, 2);
	steps = run(&sim);
	CHECK_INT(sim.handed_over, 2 * SENDERS * MESSAGE_FRAMES);
	CHECK(sim.longest <= QUEUE_MAX);
	CHECK(steps < 2 * SENDERS * MESSAGE_FRAMES * 21 / 20); /* and the card is busy all the time */
	CHECK_INT(sim.flow.held_bytes, 0);
	CHECK_INT(sim.flow.silences, 0);
}

static void test_losses_stop_nothing(void)
{
	sim_init(&sim, UINT32_MAX - 1, 4); /* numbers begin again at 0 meanwhile */
	sim.fragment_loss = 0.02;
	sim.grant_loss = 0.2;
	sim.reordered = 0.05;
	CHECK(run(&sim) < HOUR_STEPS);
	CHECK(sim.handed_over > 4 * SENDERS * MESSAGE_FRAMES * 95 / 100);
	CHECK(sim.asked > 0);
	CHECK(sim.longest <= 2 * QUEUE_MAX);
	rtdip_flow_tend(&sim.flow, (sim.step + 1) * STEP_NS + RTDIP_FLOW_SILENCE_NS);
	CHECK_INT(sim.flow.held_bytes, 0); /* of those whose end was lost */
}

static void test_only_grants_are_lost(void)
{
	sim_init(&sim, 0, 1);
	sim.grant_loss = 0.5;
	CHECK(run(&sim) < HOUR_STEPS);
	CHECK_INT(sim.handed_over, SENDERS * MESSAGE_FRAMES);
	CHECK(sim.longest <= QUEUE_MAX + SENDERS); /* and a question of each */
}

static void test_a_sender_dies(void)
{
	int64_t steps;

	sim_init(&sim, 0, 1);
	for (; sim.step < 100; sim.step++) {
		for (int i = 0; i < SENDERS; i++)
			send_what_may_go(&sim, i);
		hand_over(&sim);
		send_grants(&sim);
		hand_grants_over(&sim);
	}
	CHECK(sim.flow.streams[0].granted_bytes > PIECE_BYTES); /* it is in the midst of it */
	sim.senders[0].dead = true;
	steps = run(&sim);
	CHECK(sim.handed_over >= (uint64_t)(SENDERS - 1) * MESSAGE_FRAMES);
	CHECK(steps < (int64_t)SENDERS * MESSAGE_FRAMES + 2 * RTDIP_FLOW_SILENCE_NS / STEP_NS);
	CHECK_INT(sim.flow.held_bytes, 0);
	CHECK_INT(sim.flow.silences, 1);
}

int main(void)
{
	test_grant_on_the_wire();
	test_credit();
	test_credit_asks();
	test_one_stream_has_the_window();
	test_small_messages_need_no_grant();
	test_who_has_to_be_first_is_first();
	test_a_lost_grant_is_asked_for();
	test_who_is_silent_gives_his_room_back();
	test_message_numbers();
	test_there_is_an_end_of_streams();
	test_a_burst_never_stands_in_front_of_the_card();
	test_losses_stop_nothing();
	test_only_grants_are_lost();
	test_a_sender_dies();
	return check_result();
}
