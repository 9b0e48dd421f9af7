/* SPDX-License-Identifier: Apache-2.0 */
/* The library of the time service, by a counter that the test sets: times, bounds, slews, steps, services that come and go. */
#include "base/time_units.h"
#include "fake_time.h"
#include "port_test_system.h"
#include "random.h"

static const char *path;

static int64_t now_ns(struct bwtime *handle)
{
	int64_t utc_ns = -1;

	CHECK_INT(bwtime_now_ns(handle, &utc_ns), 0);
	return utc_ns;
}

static void test_lazy(void)
{
	struct bwtime *handle = reader(path, 0);
	struct timepage_line line;
	struct timepage *page;
	int64_t utc_ns;

	CHECK_INT(bwtime_open(path, 4, &handle), BWTIME_BAD_ARGUMENT);
	CHECK_INT(bwtime_open("", 0, &handle), BWTIME_BAD_ARGUMENT);
	CHECK_INT(bwtime_now_ns(handle, &utc_ns), BWTIME_NO_SERVICE);
	CHECK(strstr(bwtime_why(handle), "no page"));
	page = service(path);
	CHECK_INT(timepage_last(page)->state, TIMEPAGE_NONE);
	/* Looked for a moment ago. */
	fake_ticks += RETRY_TICKS - 1;
	CHECK_INT(bwtime_now_ns(handle, &utc_ns), BWTIME_NO_SERVICE);
	fake_ticks++;
	CHECK_INT(bwtime_now_ns(handle, &utc_ns), BWTIME_NO_SYNC);
	CHECK_TEXT(bwtime_why(handle), "nothing was published yet");
	line = (struct timepage_line){ .state = TIMEPAGE_STARTING, .reason = TIMEPAGE_REASON_STARTING };
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_now_ns(handle, &utc_ns), BWTIME_NO_SYNC);
	CHECK_TEXT(bwtime_why(handle), "too few replies yet");
	line = line_now();
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(now_ns(handle), line.base_utc_ns);
	CHECK_TEXT(bwtime_why(handle), "");
	line.state = TIMEPAGE_REFUSED;
	line.reason = TIMEPAGE_REASON_COUNTER_REFUSED;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_now_ns(handle, &utc_ns), BWTIME_BAD_COUNTER);
	CHECK_TEXT(bwtime_why(handle), "the processor's counter cannot serve");
	timepage_close(page);
	bwtime_close(handle);
	bwtime_close(NULL);
}

static void test_formats(void)
{
	struct timepage *page = service(path);
	struct bwtime *handle = reader(path, 0);
	struct timepage_line line = line_now();
	struct bwtime_timespec timespec;
	struct bwtime_stamp stamps[3];
	int64_t tai_ns = 0, bound_ns = 0;
	uint64_t ntp = 0;

	CHECK_INT(timepage_publish(page, &line), 0);
	fake_ticks += SECOND_TICKS;
	CHECK_INT(now_ns(handle), line.base_utc_ns + 1000000000);
	CHECK_INT(bwtime_now(handle, &stamps[0]), 0);
	CHECK_INT(stamps[0].utc_ns, line.base_utc_ns + 1000000000);
	CHECK_INT(stamps[0].epoch, 1);
	CHECK_INT(stamps[0].tai_utc_s, 37);
	CHECK_INT(stamps[0].state, BWTIME_STATE_SYNCHRONISED);
	CHECK_INT(stamps[0].stepped, 0);
	/* 1000 + 2000 ppb over a second, + 2 of rounding; as at the end of half a millisecond */
	CHECK_THAT(stamps[0].bound_ns >= 3002 && stamps[0].bound_ns <= 3004, "bound %" PRId64, stamps[0].bound_ns);
	CHECK_INT(bwtime_gettime(handle, &timespec), 0);
	CHECK_INT(timespec.tv_sec * 1000000000 + timespec.tv_nsec, stamps[0].utc_ns);
	CHECK_INT(bwtime_now_tai_ns(handle, &tai_ns, &bound_ns), 0);
	CHECK_INT(tai_ns, stamps[0].utc_ns + INT64_C(37000000000));
	CHECK_INT(bound_ns, stamps[0].bound_ns);
	CHECK_INT(bwtime_stamps(handle, stamps, 3), 0);
	CHECK_INT(stamps[2].utc_ns, stamps[0].utc_ns);
	line.base_utc_ns = INT64_C(1500000000); /* 1.5 s after 1970 */
	line.base_ticks = line.settled_ticks = fake_ticks;
	line.tai_utc_s = 0;
	line.epoch = 2;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_accept_step(handle), 0);
	CHECK_INT(bwtime_now_ns(handle, &tai_ns), 0);
	CHECK_INT(bwtime_now_ntp(handle, &ntp, NULL), 0);
	CHECK(ntp == (UINT64_C(2208988801) << 32 | UINT64_C(0x80000000)));
	CHECK_INT(bwtime_now_tai_ns(handle, &tai_ns, NULL), BWTIME_NO_TAI);
	line.base_utc_ns = INT64_C(2085978496999999999); /* a nanosecond after the end of NTP's first era, less a second */
	line.epoch = 3;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_now_ntp(handle, &ntp, NULL), BWTIME_STEPPED);
	CHECK_INT(bwtime_accept_step(handle), 0);
	CHECK_INT(bwtime_now_ntp(handle, &ntp, NULL), 0);
	CHECK(ntp == UINT64_C(0xfffffffb));
	bwtime_close(handle);
	timepage_close(page);
}

/* A correction of 1 us that is slewed away in 10 ms at 100 ppm: continuous, never back, right afterwards. */
static void test_slew(int64_t correction_ns)
{
	struct timepage *page = service(path);
	struct bwtime *handle = reader(path, BWTIME_TELL_STEPS);
	struct timepage_line line = line_now(), old;
	int64_t last_ns, true_ns;

	line.epoch = timepage_last(page)->epoch + 1;
	CHECK_INT(timepage_publish(page, &line), 0);
	fake_ticks += SECOND_TICKS;
	last_ns = now_ns(handle);
	old = *timepage_last(page);
	line.base_ticks = fake_ticks;
	line.base_utc_ns = timepage_utc_ns(&old, fake_ticks);
	line.settled_ticks = fake_ticks + SECOND_TICKS / 100;
	line.mult = RATE + (uint64_t)(correction_ns * (int64_t)(RATE / 10000000));
	true_ns = line.base_utc_ns + correction_ns;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(now_ns(handle), last_ns);
	for (int step = 1; step <= 30; step++) {
		int64_t utc_ns;

		fake_ticks += SECOND_TICKS / 1000;
		utc_ns = now_ns(handle);
		CHECK(utc_ns > last_ns);
		if (step >= 10)
			CHECK_THAT(llabs(utc_ns - true_ns - step * INT64_C(1000000)) <= 1, "step %d: off by %" PRId64, step,
				   utc_ns - true_ns - step * INT64_C(1000000));
		last_ns = utc_ns;
	}
	bwtime_close(handle);
	timepage_close(page);
}

/* A line that is behind what was told: the time waits, and the bound says how far it is off. */
static void test_never_backwards(void)
{
	struct timepage *page = service(path);
	struct bwtime *handle = reader(path, BWTIME_TELL_STEPS);
	struct timepage_line line = line_now();
	struct bwtime_stamp stamp, later;
	int64_t told_ns;

	line.epoch = timepage_last(page)->epoch;
	CHECK_INT(timepage_publish(page, &line), 0);
	fake_ticks += SECOND_TICKS;
	told_ns = now_ns(handle);
	line = line_now();
	line.epoch = timepage_last(page)->epoch;
	line.base_utc_ns -= 5000000;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_now(handle, &stamp), 0);
	CHECK_INT(stamp.utc_ns, told_ns);
	CHECK_THAT(stamp.bound_ns >= 5001002 && stamp.bound_ns <= 5001004, "bound %" PRId64, stamp.bound_ns);
	CHECK_INT(stamp.stepped, 0);
	fake_ticks += SECOND_TICKS / 1000;
	CHECK_INT(bwtime_now(handle, &later), 0);
	CHECK_INT(later.utc_ns, told_ns);
	CHECK(later.bound_ns < stamp.bound_ns - 990000);
	fake_ticks += SECOND_TICKS / 100;
	CHECK_INT(now_ns(handle), told_ns + 6000000);
	/* The counter of another processor, a little behind. */
	fake_ticks -= 100;
	CHECK_INT(now_ns(handle), told_ns + 6000000);
	bwtime_close(handle);
	timepage_close(page);
}

static void test_steps(void)
{
	struct timepage *page = service(path);
	struct bwtime *plain = reader(path, 0), *telling = reader(path, BWTIME_TELL_STEPS), *fresh = reader(path, 0);
	struct timepage_line line = line_now();
	struct bwtime_stamp stamp;
	int64_t told_ns, utc_ns;

	line.epoch = timepage_last(page)->epoch + 1;
	CHECK_INT(timepage_publish(page, &line), 0);
	told_ns = now_ns(plain);
	CHECK_INT(now_ns(telling), told_ns);
	line.base_utc_ns -= INT64_C(3600000000000);
	line.epoch++;
	line.step_ns = -INT64_C(3600000000000);
	CHECK_INT(timepage_publish(page, &line), 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(bwtime_now_ns(plain, &utc_ns), BWTIME_STEPPED);
	CHECK_TEXT(bwtime_why(plain), "the time was stepped");
	CHECK_INT(bwtime_last_step_ns(plain), line.step_ns);
	CHECK_INT(bwtime_accept_step(plain), 0);
	CHECK_INT(now_ns(plain), line.base_utc_ns);
	CHECK_INT(now_ns(telling), line.base_utc_ns);
	CHECK_INT(bwtime_now(telling, &stamp), 0);
	CHECK_INT(stamp.stepped, 1);
	CHECK_INT(stamp.epoch, line.epoch);
	CHECK_INT(bwtime_now(telling, &stamp), 0);
	CHECK_INT(stamp.stepped, 0);
	CHECK_INT(now_ns(fresh), line.base_utc_ns); /* has told nothing before */
	/* Back by far in the same epoch: of a service that knows nothing of the one before. */
	line.base_utc_ns -= 1000000000;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_now_ns(plain, &utc_ns), BWTIME_STEPPED);
	CHECK_INT(bwtime_last_step_ns(plain), -1000000000);
	CHECK_INT(bwtime_now(telling, &stamp), 0);
	CHECK_INT(stamp.stepped, 1);
	bwtime_close(plain);
	bwtime_close(telling);
	bwtime_close(fresh);
	timepage_close(page);
}

static void test_end_and_restart(void)
{
	struct timepage *page = service(path), *second = NULL;
	struct bwtime *handle = reader(path, BWTIME_TELL_STEPS);
	struct timepage_line line = line_now();
	struct bwtime_stamp stamp;
	uint64_t publications;

	CHECK_INT(timepage_publish(page, &line), 0);
	publications = timepage_last(page)->publications;
	CHECK_INT(bwtime_now(handle, &stamp), 0);
	CHECK_INT(timepage_create(path, fake_kind, 0, &second), -EBUSY);
	line.state = TIMEPAGE_ENDED;
	line.reason = TIMEPAGE_REASON_ENDED;
	CHECK_INT(timepage_publish(page, &line), 0);
	timepage_close(page);
	fake_ticks += 99 * SECOND_TICKS;
	CHECK_INT(bwtime_now(handle, &stamp), 0);
	CHECK_INT(stamp.state, BWTIME_STATE_ENDED);
	/* 1000 + 99 s * 2000 ppb; U: 2 * sqrt(100^2 + (2 ppb * 99 s)^2) */
	CHECK_THAT(llabs(stamp.u_ns - 444) <= 1, "U %" PRId64, stamp.u_ns);
	CHECK_THAT(llabs(stamp.bound_ns - (1000 + 198000 + 2)) <= 10, "bound %" PRId64, stamp.bound_ns);
	fake_ticks += SECOND_TICKS;
	CHECK_INT(bwtime_now(handle, &stamp), BWTIME_NO_SYNC);
	CHECK(strstr(bwtime_why(handle), "the service has ended"));
	page = service(path);
	CHECK_INT(timepage_last(page)->publications, publications + 1);
	line = line_now();
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_now(handle, &stamp), 0);
	CHECK_INT(stamp.utc_ns, line.base_utc_ns);
	timepage_close(page);
	bwtime_close(handle);
}

/* Why a line ends that was usable until an announced leap second, and no longer; any other one is too old. */
static void test_end_at_leap(int32_t leap, int64_t before_midnight_ns, const char *why)
{
	const int64_t day_ns = INT64_C(86400) * NS_PER_S;
	struct timepage *page = service(path);
	struct bwtime *handle = reader(path, 0);
	struct timepage_line line = line_now();
	int64_t low_ns, high_ns, ns;

	line.leap = leap;
	line.settled_utc_ns = line.base_utc_ns;
	timepage_interval_ns(&line, line.usable_until_ticks, &low_ns, &high_ns);
	line.base_utc_ns += day_ns - (timepage_utc_ns(&line, line.usable_until_ticks) + high_ns) % day_ns - before_midnight_ns;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_now_ns(handle, &ns), 0);
	fake_ticks += 101 * SECOND_TICKS;
	CHECK_INT(bwtime_now_ns(handle, &ns), BWTIME_NO_SYNC);
	CHECK_THAT(strstr(bwtime_why(handle), why), "%s", bwtime_why(handle));
	bwtime_close(handle);
	timepage_close(page);
	remove_page(path);
}

/* Another file in the page's place: found once the old one has no time any more. */
static void test_other_file(void)
{
	struct timepage *page = service(path);
	struct bwtime *handle = reader(path, BWTIME_TELL_STEPS);
	struct timepage_line line = line_now();
	int64_t utc_ns;

	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(now_ns(handle), line.base_utc_ns);
	timepage_close(page);
	remove_page(path);
	page = service(path);
	line.base_utc_ns += 5;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(now_ns(handle), line.base_utc_ns - 5);
	fake_ticks += 101 * SECOND_TICKS;
	CHECK_INT(bwtime_now_ns(handle, &utc_ns), BWTIME_NO_SYNC);
	line = line_now();
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(now_ns(handle), line.base_utc_ns);
	timepage_close(page);
	bwtime_close(handle);
}

static struct timepage *hook_page;
static struct timepage_line hook_line;

/* While the counter is read: the line is replaced, and the counter goes on. */
static void publish_meanwhile(void)
{
	fake_ticks += SECOND_TICKS;
	hook_line = line_now();
	hook_line.base_utc_ns += 777;
	hook_line.tai_utc_s = 38;
	CHECK_INT(timepage_publish(hook_page, &hook_line), 0);
}

static void test_replaced_meanwhile(void)
{
	struct bwtime *handle = reader(path, BWTIME_TELL_STEPS);
	struct timepage_line line = line_now();
	struct bwtime_stamp stamp;

	hook_page = service(path);
	CHECK_INT(timepage_publish(hook_page, &line), 0);
	now_ns(handle);
	fake_hook = publish_meanwhile;
	CHECK_INT(bwtime_now(handle, &stamp), 0);
	CHECK_INT(stamp.utc_ns, hook_line.base_utc_ns);
	CHECK_INT(stamp.tai_utc_s, 38);
	fake_hook = publish_meanwhile;
	CHECK_INT(now_ns(handle), hook_line.base_utc_ns);
	bwtime_close(handle);
	timepage_close(hook_page);
}

/* A bound is calculated for half a millisecond at a time: never less than the line's, nor more than at the end of that. */
static void test_bounds(void)
{
	struct random random = { 21 };
	struct timepage *page = service(path);
	struct bwtime *handle = reader(path, BWTIME_TELL_STEPS);
	struct timepage_line line = line_now();
	struct bwtime_stamp stamp;

	line.growth_ppb = 20000000;
	line.scatter.rate_ns2_per_s2 = 1e14;
	line.settled_ticks += SECOND_TICKS;
	line.mult -= RATE >> 11;
	CHECK_INT(timepage_publish(page, &line), 0);
	for (int i = 0; i < 10000; i++) {
		const struct timepage_line *last = timepage_last(page);
		int64_t bound_ns = timepage_bound_ns(last, fake_ticks);
		int64_t widest_ns = timepage_bound_ns(last, fake_ticks + SECOND_TICKS / 1900); /* 2^19 ns and a little */

		CHECK_INT(bwtime_now(handle, &stamp), 0);
		CHECK_INT(stamp.bound_ns, stamp.latest_utc_ns - stamp.utc_ns); /* of line_now, the larger side */
		CHECK_INT(stamp.utc_ns - stamp.earliest_utc_ns, stamp.bound_ns - 200);
		CHECK_THAT(stamp.u_ns >= timepage_u_ns(last, fake_ticks) && stamp.u_ns <= timepage_u_ns(last, fake_ticks + SECOND_TICKS / 1900),
			   "U %" PRId64, stamp.u_ns);
		CHECK_THAT(stamp.bound_ns >= bound_ns - 1 && stamp.bound_ns <= widest_ns,
			   "bound %" PRId64 ", of the line %" PRId64 " to %" PRId64, stamp.bound_ns, bound_ns, widest_ns);
		fake_ticks += random_bits(&random) >> (44 + random_bits(&random) % 20);
	}
	fake_ticks = line.usable_until_ticks - 10;
	CHECK_INT(bwtime_now(handle, &stamp), 0);
	fake_ticks += 10;
	CHECK_INT(bwtime_now(handle, &stamp), BWTIME_NO_SYNC);
	bwtime_close(handle);
	timepage_close(page);
}

/* The counter behind the line: by little it is another processor, by much it has jumped. */
static void test_counter_behind(void)
{
	struct timepage *page = service(path);
	struct bwtime *handle = reader(path, BWTIME_TELL_STEPS);
	struct timepage_line line = line_now();
	struct bwtime_stamp stamp;

	CHECK_INT(timepage_publish(page, &line), 0);
	fake_ticks -= 200;
	CHECK_INT(bwtime_now(handle, &stamp), 0);
	CHECK_INT(stamp.utc_ns, line.base_utc_ns - 100);
	CHECK_INT(stamp.bound_ns, 1002);
	fake_ticks -= SECOND_TICKS;
	CHECK_INT(bwtime_now(handle, &stamp), BWTIME_NO_SYNC);
	CHECK(strstr(bwtime_why(handle), "jumped"));
	fake_ticks += SECOND_TICKS + 200;
	CHECK_INT(bwtime_now(handle, &stamp), 0);
	bwtime_close(handle);
	timepage_close(page);
}

static void test_from_ticks(void)
{
	struct timepage *page = service(path);
	struct bwtime *handle = reader(path, BWTIME_TELL_STEPS);
	struct timepage_line line = line_now();
	struct bwtime_stamp stamps[3];
	uint64_t ticks[3] = { fake_ticks - 10 * SECOND_TICKS, fake_ticks + SECOND_TICKS, fake_ticks };
	uint64_t distant[3] = { fake_ticks, line.usable_until_ticks, fake_ticks - (UINT64_C(1) << 62) };

	line.settled_ticks = fake_ticks + SECOND_TICKS;
	line.mult = RATE + (RATE >> 12); /* before the line, the slew is not used */
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_from_ticks(handle, ticks, 3, stamps), 0);
	CHECK_INT(stamps[0].utc_ns, line.base_utc_ns - INT64_C(10000000000));
	CHECK_INT(stamps[0].bound_ns, 1000 + 20000 + 2);
	CHECK_INT(stamps[0].earliest_utc_ns, stamps[0].utc_ns - 800 - 20000 - 2);
	CHECK_INT(stamps[0].u_ns, 204); /* 2 * sqrt(100^2 + (2 ppb * 10 s)^2) */
	CHECK_INT(stamps[1].utc_ns, line.base_utc_ns + 1000000000 + (1000000000 >> 12));
	CHECK_INT(stamps[2].utc_ns, line.base_utc_ns);
	CHECK_INT(bwtime_from_ticks(handle, distant, 2, stamps), BWTIME_BAD_ARGUMENT);
	CHECK_INT(bwtime_from_ticks(handle, distant + 2, 1, stamps), BWTIME_BAD_ARGUMENT);
	/* Before the time was withdrawn or stepped the counter may have stopped. */
	line.disrupted_ticks = fake_ticks;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_from_ticks(handle, ticks, 1, stamps), BWTIME_BAD_ARGUMENT);
	CHECK_INT(bwtime_from_ticks(handle, ticks + 1, 2, stamps), 0);
	/* What was told of other instants does not hold the time up. */
	CHECK_INT(now_ns(handle), line.base_utc_ns);
	bwtime_close(handle);
	timepage_close(page);
}

static void test_condition(void)
{
	struct timepage *page = service(path);
	struct bwtime *handle = reader(path, 0);
	struct timepage_line line = line_now();
	struct bwtime_condition condition;

	line.disruptions = 3;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_condition(handle, &condition), 0);
	CHECK_INT(condition.heard_utc_ns, line.base_utc_ns - 1000000000);
	CHECK_INT(condition.valid_until_utc_ns, line.base_utc_ns + INT64_C(100000000000));
	CHECK_INT(condition.growth_ppb, 2000);
	CHECK_INT(condition.disruptions, 3);
	CHECK_INT(condition.state, BWTIME_STATE_SYNCHRONISED);
	bwtime_close(handle);
	timepage_close(page);
}

static void test_difference(void)
{
	struct timepage *page = service(path);
	struct bwtime *handle = reader(path, 0);
	struct timepage_line line = line_now();
	int64_t duration_ns, bound_ns;

	line.mult = RATE + (RATE >> 12); /* a slew is no part of a duration */
	line.settled_ticks += SECOND_TICKS;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_difference(handle, fake_ticks - 10 * SECOND_TICKS, fake_ticks, &duration_ns, &bound_ns), 0);
	CHECK_INT(duration_ns, INT64_C(10000000000));
	CHECK_INT(bound_ns, 20002); /* 10 s * 2000 ppb, and rounding: without the offset's 1000 */
	CHECK_INT(bwtime_difference(handle, fake_ticks, fake_ticks - 10 * SECOND_TICKS, &duration_ns, NULL), 0);
	CHECK_INT(duration_ns, -INT64_C(10000000000));
	CHECK_INT(bwtime_difference(handle, fake_ticks, fake_ticks + 3601 * SECOND_TICKS, &duration_ns, NULL), BWTIME_BAD_ARGUMENT);
	CHECK_INT(bwtime_difference(handle, 0, UINT64_MAX / 2, &duration_ns, NULL), BWTIME_BAD_ARGUMENT);
	line.disrupted_ticks = fake_ticks - 5 * SECOND_TICKS;
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_difference(handle, fake_ticks - 10 * SECOND_TICKS, fake_ticks, &duration_ns, NULL), BWTIME_BAD_ARGUMENT);
	CHECK_INT(bwtime_difference(handle, fake_ticks, fake_ticks - 10 * SECOND_TICKS, &duration_ns, NULL), BWTIME_BAD_ARGUMENT);
	CHECK_INT(bwtime_difference(handle, fake_ticks - 5 * SECOND_TICKS, fake_ticks, &duration_ns, NULL), 0);
	bwtime_close(handle);
	timepage_close(page);
}

int main(int argc, char **argv)
{
	path = argc > 1 ? argv[1] : "test_reader.page";
	remove_page(path);
	test_lazy();
	test_formats();
	test_slew(1000);
	test_slew(-1000);
	test_never_backwards();
	test_steps();
	test_end_and_restart();
	if (PORT_MAPPED_FILES_GO)
		test_end_at_leap(1, 0, "leap second");
	test_end_at_leap(2, NS_PER_S, "leap second");
	test_end_at_leap(0, 0, "bw-timed was killed or hangs");
	test_end_at_leap(1, 5 * NS_PER_S, "bw-timed was killed or hangs");
	test_other_file();
	test_replaced_meanwhile();
	test_bounds();
	test_counter_behind();
	test_condition();
	test_difference();
	test_from_ticks();
	remove_page(path);
	return check_result();
}
