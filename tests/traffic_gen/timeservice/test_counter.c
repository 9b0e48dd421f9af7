/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a counter is fit to serve: every rule, and a look at this machine's own. */
#include <math.h>

#include "check.h"
#include "port/port.h"
#include "timeservice/counter_check.h"

static struct counter_facts fit(void)
{
	return (struct counter_facts){
		.kind = PORT_COUNTER_TSC, .invariant = true, .clocksource = "tsc", .hz = 2.1e9, .earlier_hz = 2.1e9 * (1 + 20e-6),
		.cpus = 4, .cpus_compared = 3, .apart_ns = 400, .apart_most_ns = 900,
	};
}

/* Judge facts; the reason of a refusal must have a word. */
static void check_facts(struct counter_facts facts, enum counter_verdict verdict, const char *word)
{
	struct counter_check check = { .facts = facts };
	char reason[COUNTER_REASON_BYTES] = "?";

	CHECK_INT(counter_judge(&facts), verdict);
	counter_reason(&check, verdict, reason, sizeof(reason));
	CHECK_THAT(strstr(reason, word), "\"%s\" has no \"%s\"", reason, word);
	CHECK(verdict == COUNTER_FIT ? !reason[0] : reason[0] != '\0');
}

#define REFUSED_WITH(field, value, verdict, word)    \
	do {                                         \
		struct counter_facts bad = fit();    \
		bad.field = (value);                 \
		check_facts(bad, verdict, word);     \
	} while (0)

static void test_facts(void)
{
	struct counter_facts facts = fit();

	check_facts(facts, COUNTER_FIT, "");
	REFUSED_WITH(kind, PORT_COUNTER_NONE, COUNTER_ABSENT, "no counter");
	REFUSED_WITH(invariant, false, COUNTER_NOT_INVARIANT, "not invariant");
	REFUSED_WITH(hz, 0, COUNTER_OUT_OF_RANGE, "range: 0 Hz");
	REFUSED_WITH(hz, 2e10, COUNTER_OUT_OF_RANGE, "range");
	REFUSED_WITH(hz, NAN, COUNTER_OUT_OF_RANGE, "range");
	REFUSED_WITH(earlier_hz, 2.1e9 * (1 + 60e-6), COUNTER_UNSTABLE, "2100126000, then 2100000000");
	REFUSED_WITH(earlier_hz, NAN, COUNTER_UNSTABLE, "not stable");
	REFUSED_WITH(stated_hz, 2000000000, COUNTER_UNSTABLE, "stated 2000000000");
	REFUSED_WITH(apart_ns, 501, COUNTER_APART, "501 ns");
	strcpy(facts.clocksource, "hpet");
	check_facts(facts, COUNTER_NOT_TRUSTED, "hpet");
	facts.kind = PORT_COUNTER_CNTVCT;
	check_facts(facts, COUNTER_FIT, "");
	strcpy(facts.clocksource, "kvm-clock");
	facts.kind = PORT_COUNTER_TSC;
	check_facts(facts, COUNTER_FIT, "");
}

static void check_course(struct counter_course course, enum counter_verdict verdict, const char *word)
{
	struct counter_check check = { .facts = fit(), .course = course };
	char reason[COUNTER_REASON_BYTES] = "?";

	CHECK_INT(counter_judge_course(&course), verdict);
	counter_reason(&check, verdict, reason, sizeof(reason));
	CHECK_THAT(strstr(reason, word), "\"%s\" has no \"%s\"", reason, word);
}

static void test_courses(void)
{
	const int64_t second_ns = 1000000000;

	check_course((struct counter_course){ 1e9 + 100000, second_ns, 500, 3000, false }, COUNTER_FIT, "");
	check_course((struct counter_course){ 1e9, second_ns + 10000000, 10000000, 0, false }, COUNTER_FIT, ""); /* the window explains it */
	check_course((struct counter_course){ 1e9, 11 * second_ns, 500, 0, false }, COUNTER_JUMPED, "1000.000 ms passed by it, 11000.000");
	check_course((struct counter_course){ 11e9, second_ns, 500, 0, false }, COUNTER_JUMPED, "jumped");
	check_course((struct counter_course){ -5, second_ns, 500, 0, false }, COUNTER_JUMPED, "jumped");
	check_course((struct counter_course){ 1e9 + 400000, second_ns, 500, 0, false }, COUNTER_RATE_CHANGED, "400 ppm");
	check_course((struct counter_course){ 1e9, second_ns, 500, 60 * second_ns, false }, COUNTER_SUSPENDED, "60000 ms");
	/* Whatever else it is: what was learnt before counts for nothing, and the next look says whether the rate is another one. */
	check_course((struct counter_course){ 1e9, second_ns, 500, 0, true }, COUNTER_DISRUPTED, "hypervisor");
	check_course((struct counter_course){ 1e9 + 400000, second_ns, 500, 0, true }, COUNTER_DISRUPTED, "moved or paused");
}

/* What this machine's counter is like cannot be demanded; that the facts are whole, and that a second look agrees, can. */
static void test_here(void)
{
	static struct counter_check check;
	char reason[COUNTER_REASON_BYTES];
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	enum counter_verdict verdict = counter_check_begin(&check);

	counter_reason(&check, verdict, reason, sizeof(reason));
	fprintf(stderr, "this machine: verdict %d \"%s\", %.0f Hz, %s, %d of %d processors compared, apart %" PRId64 " to %" PRId64
		" ns, %" PRId64 " ms\n", verdict, reason, check.facts.hz, check.facts.clocksource, check.facts.cpus_compared,
		check.facts.cpus, check.facts.apart_ns, check.facts.apart_most_ns,
		(port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns) / 1000000);
	if (port_counter_kind() == PORT_COUNTER_NONE) {
		CHECK_INT(verdict, COUNTER_ABSENT);
		return;
	}
	CHECK(check.facts.hz > 1e5);
	CHECK_INT(verdict, counter_judge(&check.facts));
	CHECK(check.facts.cpus >= 1 && check.facts.cpus_compared < check.facts.cpus);
	CHECK(check.facts.apart_ns <= check.facts.apart_most_ns);
	port_sleep_ns(50000000);
	verdict = counter_check_watch(&check);
	CHECK(check.course.kernel_ns >= 50000000);
	CHECK_INT(verdict, counter_judge_course(&check.course));
	counter_check_end(&check);
}

int main(void)
{
	CHECK_INT(port_init(), 0);
	test_facts();
	test_courses();
	test_here();
	return check_result();
}
