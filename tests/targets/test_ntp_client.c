/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The NTP client without a network and without a clock: this file stands in for the port layer. Time passes only in waiter_wait();
 * a script says what comes there.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "../traffic_gen/check.h"
#include "base/time_units.h"
#include "ntp_client.h"
#include "ntp/ntp_packet.h"
#include "port/port.h"

#define REALTIME_NS (INT64_C(1795284915) * NS_PER_S)

enum { TAI_UTC_S = 37, SCRIPT_MAX = 32, ONE_WAY_NS = 1000000 };

/* What comes next: an answer, a signal, or nothing until the deadline. */
enum come { NOTHING, ANSWER, STRANGER, SHORT, OLD, DENY, RATE, SIGNAL_END, SIGNAL_HOLD, SIGNAL_LISTEN };

static struct {
	enum come script[SCRIPT_MAX];
	int length, next;
	int64_t now_monotonic_ns; /* CLOCK_MONOTONIC; CLOCK_REALTIME is REALTIME_NS later */
	int64_t ahead_ns;         /* of the server */
	int send_error;
	int requests;
	int64_t requested_monotonic_ns[SCRIPT_MAX];
	uint64_t sent;
	int64_t stepped_ns, slewed_ns;
	int steps, slews;
	double frequency_ppb;
} world;

static struct ntp_client_settings settings; /* begin() sets them, and the world */
static struct ntp_client client;
static const struct address SERVER = { .ipv4 = 0x0a4d0032, .port = 123 };

int64_t port_clock_now_ns(enum port_clock clock)
{
	return clock == PORT_CLOCK_MONOTONIC ? world.now_monotonic_ns : REALTIME_NS + world.now_monotonic_ns;
}

void port_tai_init(struct port_tai *tai, int fallback_tai_utc_s)
{
	(void)fallback_tai_utc_s;
	*tai = (struct port_tai){ .tai_utc_s = TAI_UTC_S };
}

int waiter_send(const struct waiter *waiter, const struct address *peer, const void *data, size_t size_bytes)
{
	const uint8_t *packet = data;

	(void)waiter;
	if (world.send_error)
		return world.send_error;
	CHECK_INT(size_bytes, NTP_PACKET_BYTES);
	CHECK_INT(peer->ipv4, SERVER.ipv4);
	CHECK_INT(peer->port, SERVER.port);
	world.sent = 0;
	for (int i = 40; i < 48; i++)
		world.sent = world.sent << 8 | packet[i];
	if (world.requests < SCRIPT_MAX)
		world.requested_monotonic_ns[world.requests] = world.now_monotonic_ns;
	world.requests++;
	return 0;
}

static void put_64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (56 - 8 * i));
}

/* An answer to the last request, that took ONE_WAY_NS either way. */
static void answer(enum come come, struct datagram *datagram)
{
	int64_t server_realtime_ns = port_clock_now_ns(PORT_CLOCK_REALTIME) + ONE_WAY_NS + world.ahead_ns;

	memset(datagram, 0, sizeof(*datagram));
	datagram->source = SERVER;
	if (come == STRANGER)
		datagram->source.port++;
	datagram->size_bytes = come == SHORT ? NTP_PACKET_BYTES - 1 : NTP_PACKET_BYTES;
	datagram->bytes[0] = 4 << 3 | 4;
	datagram->bytes[1] = come == DENY || come == RATE ? 0 : 1;
	memcpy(datagram->bytes + 12, come == DENY ? "DENY" : come == RATE ? "RATE" : "GPS", 4);
	put_64(datagram->bytes + 24, come == OLD ? world.sent - 1 : world.sent);
	put_64(datagram->bytes + 32, ntp_from_realtime_ns(server_realtime_ns));
	put_64(datagram->bytes + 40, ntp_from_realtime_ns(server_realtime_ns));
	world.now_monotonic_ns += INT64_C(2) * ONE_WAY_NS;
	datagram->received_realtime_ns = port_clock_now_ns(PORT_CLOCK_REALTIME);
}

int waiter_wait(struct waiter *waiter, int64_t deadline_monotonic_ns, struct datagram *datagram)
{
	enum come come = world.next < world.length ? world.script[world.next] : SIGNAL_END;

	(void)waiter;
	if (come >= SIGNAL_END) {
		world.next++;
		return come == SIGNAL_END ? WAIT_END : come == SIGNAL_HOLD ? WAIT_HOLD : WAIT_LISTEN;
	}
	/* Between polls datagrams are left where they are. */
	if (!datagram || come == NOTHING) {
		world.next += datagram != NULL;
		if (deadline_monotonic_ns > world.now_monotonic_ns)
			world.now_monotonic_ns = deadline_monotonic_ns;
		return WAIT_TIME;
	}
	world.next++;
	answer(come, datagram);
	return WAIT_DATAGRAM;
}

int frequency_get(const struct frequency_clock *clock, double *ppb)
{
	(void)clock;
	*ppb = world.frequency_ppb;
	return 0;
}

int frequency_set(const struct frequency_clock *clock, double ppb)
{
	(void)clock;
	world.frequency_ppb = ppb;
	return 0;
}

int frequency_clock_step(const struct frequency_clock *clock, int64_t step_ns)
{
	(void)clock;
	world.steps++;
	world.stepped_ns += step_ns;
	world.ahead_ns -= step_ns;
	return 0;
}

int frequency_loop_slew(int64_t correction_ns, int64_t time_constant)
{
	(void)time_constant;
	world.slews++;
	world.slewed_ns += correction_ns;
	return 0;
}

static char said[16384];

/* Run the client through a script; what it says is in `said`. Returns what it ended with. */
static int run(const enum come *script, int length)
{
	struct frequency_clock clock = { .fd = -1, .max_ppb = 500000.0 };
	struct waiter waiter = { -1, -1 };
	FILE *out = tmpfile();
	struct json json;
	size_t size;
	int end;

	if (!out) {
		perror("tmpfile");
		exit(2);
	}
	memcpy(world.script, script, (size_t)length * sizeof(*script));
	world.length = length;
	json_init(&json, out);
	ntp_client_init(&client, &settings, &waiter, &clock, &json);
	end = ntp_client_run(&client);
	rewind(out);
	size = fread(said, 1, sizeof(said) - 1, out);
	said[size] = '\0';
	fclose(out);
	return end;
}

static int said_times(const char *text)
{
	int count = 0;

	for (const char *at = strstr(said, text); at; at = strstr(at + 1, text))
		count++;
	return count;
}

/* The last number of a name that it has said; stamps of NTP round by less than a nanosecond. */
static int64_t said_last(const char *key)
{
	const char *found = NULL;

	for (const char *at = strstr(said, key); at; at = strstr(at + 1, key))
		found = at;
	return found ? strtoll(found + strlen(key), NULL, 10) : 0;
}

#define CHECK_ABOUT(found, expected_ns) CHECK_THAT(llabs((found) - (expected_ns)) <= 2, "%s is %" PRId64, #found, (int64_t)(found))

static void begin(void)
{
	memset(&world, 0, sizeof(world));
	world.now_monotonic_ns = 50 * NS_PER_S;
	settings = (struct ntp_client_settings){
		.server = SERVER, .interval_ms = 1000, .timeout_ms = 1000, .init_interval_ms = 1000, .init_polls = 2,
		.constant = NTP_CONSTANT_AUTO, .step_ns = 128 * NS_PER_MS, .stepout_ms = 300000, .panic_ms = 1000000, .filter = 1,
	};
}

#define RUN(...) run((const enum come[]){ __VA_ARGS__ }, (int)(sizeof((enum come[]){ __VA_ARGS__ }) / sizeof(enum come)))

static void test_measures_and_touches_nothing(void)
{
	begin();
	world.ahead_ns = 3 * NS_PER_S;
	settings.measure_only = true;
	settings.polls_max = 2;
	CHECK_INT(RUN(ANSWER, ANSWER), 0);
	CHECK_INT(said_times("\"type\":\"poll\""), 2);
	/* The server is ahead: this client is behind. */
	CHECK_ABOUT(said_last("\"offset_ns\":"), -3 * NS_PER_S);
	CHECK_ABOUT(said_last("\"delay_ns\":"), 2 * NS_PER_MS);
	CHECK_INT(world.steps + world.slews, 0);
	CHECK_INT(world.requested_monotonic_ns[1] - world.requested_monotonic_ns[0], NS_PER_S);
}

static void test_steps_then_measures_the_frequency_then_slews(void)
{
	begin();
	world.ahead_ns = 3 * NS_PER_S;
	settings.polls_max = 4;
	CHECK_INT(RUN(ANSWER, ANSWER, ANSWER, ANSWER), 0);
	CHECK_INT(world.steps, 1);
	CHECK_ABOUT(world.stepped_ns, 3 * NS_PER_S);
	CHECK_INT(said_last("\"step_ns\":"), world.stepped_ns);
	CHECK_INT(said_times("\"state\":\"locked\""), 2); /* with the third answer the frequency is known */
	/* One at the start, after the step, with the frequency, by the fourth answer, and at the end. */
	CHECK_INT(world.slews, 5);
}

static void test_panic_ends_it(void)
{
	begin();
	settings.panic_ms = 1000;
	world.ahead_ns = 2 * NS_PER_S;
	CHECK_INT(RUN(ANSWER), NTP_END_PANIC);
	CHECK_ABOUT(strtoll(client.end_detail, NULL, 10), -2 * NS_PER_S);
	CHECK_INT(said_times("\"reason\":\"panic\""), 1);
	CHECK_INT(world.steps, 0);
}

static void test_kiss_of_death(void)
{
	begin();
	settings.measure_only = true;
	CHECK_INT(RUN(RATE, ANSWER, DENY, ANSWER), NTP_END_REFUSED);
	CHECK_TEXT(client.end_detail, "DENY");
	CHECK_INT(world.requests, 3);
	CHECK_INT(world.requested_monotonic_ns[1] - world.requested_monotonic_ns[0], 2 * NS_PER_S);
}

/* It is asked half as often for each complaint, up to 1,024 s; each good answer takes one back. At the start, too. */
static void test_complaints_are_forgotten(void)
{
	static const int64_t APART_S[] = { 2, 4, 8, 4, 2, 1, 1 };

	for (int init = 0; init < 2; init++) {
		begin();
		settings.measure_only = !init;
		settings.init_polls = 100;
		settings.interval_ms = init ? 64000 : 1000;
		settings.polls_max = 8;
		CHECK_INT(RUN(RATE, RATE, RATE, ANSWER, ANSWER, ANSWER, ANSWER, ANSWER), 0);
		for (int i = 0; i < 7; i++)
			CHECK_INT((world.requested_monotonic_ns[i + 1] - world.requested_monotonic_ns[i]) / NS_PER_S, APART_S[i]);
	}
	begin();
	settings.measure_only = true;
	settings.init_polls = 100;
	settings.interval_ms = 64000;
	settings.polls_max = 16;
	CHECK_INT(RUN(RATE, RATE, RATE, RATE, RATE, RATE, RATE, RATE, RATE, RATE, RATE, RATE, RATE, RATE, RATE, RATE), 0);
	CHECK_INT((world.requested_monotonic_ns[15] - world.requested_monotonic_ns[14]) / NS_PER_S, 1024);
}

static void test_strangers_and_old_answers_do_not_end_a_poll(void)
{
	begin();
	settings.measure_only = true;
	settings.polls_max = 1;
	CHECK_INT(RUN(STRANGER, SHORT, OLD, ANSWER), 0);
	CHECK_INT(said_times("\"reason\":\"source\""), 1);
	CHECK_INT(said_times("\"reason\":\"short\""), 1);
	CHECK_INT(said_times("\"reason\":\"origin\""), 1);
	CHECK_INT(said_times("\"type\":\"poll\""), 1);
	CHECK_INT(world.requests, 1);
}

static void test_flood_ends_a_poll(void)
{
	begin();
	settings.measure_only = true;
	settings.polls_max = 1;
	CHECK_INT(RUN(OLD, OLD, OLD, OLD, OLD, OLD, OLD, OLD, OLD, OLD, OLD, OLD, OLD, OLD, OLD, OLD, OLD), 0);
	CHECK_INT(said_times("\"reason\":\"origin\""), 16);
	CHECK_INT(said_times("\"reason\":\"no-answer\""), 1);
}

static void test_eight_missed_polls_are_a_hold(void)
{
	begin();
	settings.measure_only = true;
	settings.polls_max = 9;
	CHECK_INT(RUN(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, ANSWER), 0);
	CHECK_INT(said_times("\"reason\":\"no-answer\",\"state\":\"init\""), 7);
	CHECK_INT(said_times("\"reason\":\"no-answer\",\"state\":\"hold\""), 1);
	CHECK_INT(client.missed, 0);
}

static void test_a_network_that_is_down_does_not_end_it(void)
{
	begin();
	settings.measure_only = true;
	settings.polls_max = 2;
	world.send_error = -ENETUNREACH;
	CHECK_INT(RUN(NOTHING, NOTHING), 0);
	CHECK_INT(said_times("\"reason\":\"not-sent\""), 2);
}

static void test_holds_and_listens_again(void)
{
	begin();
	settings.measure_only = true;
	CHECK_INT(RUN(SIGNAL_HOLD, SIGNAL_LISTEN, ANSWER, SIGNAL_END), 0);
	CHECK_INT(said_times("\"type\":\"state\""), 2);
	CHECK_INT(said_times("\"state\":\"hold\""), 1);
	CHECK_INT(world.requests, 2); /* the held one was given up, and asked again */
	CHECK_INT(said_times("no-answer"), 0);
	CHECK(client.ended);
}

int main(void)
{
	test_measures_and_touches_nothing();
	test_steps_then_measures_the_frequency_then_slews();
	test_panic_ends_it();
	test_kiss_of_death();
	test_complaints_are_forgotten();
	test_strangers_and_old_answers_do_not_end_a_poll();
	test_flood_ends_a_poll();
	test_eight_missed_polls_are_a_hold();
	test_a_network_that_is_down_does_not_end_it();
	test_holds_and_listens_again();
	return check_result();
}
