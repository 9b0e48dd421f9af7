/* SPDX-License-Identifier: Apache-2.0 */
/* The rules: pure functions over facts. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/time_units.h"
#include "timeservice/counter_check.h"

#define HZ_MIN 1e6                          /* as page.h: 1024 ns a tick */
#define HZ_MAX 1e10
#define UNSTABLE_MAX_PPM 50                 /* two readings of 0.15 s, each good to some ppm */
#define STATED_MAX_PPM 1000                 /* what is stated is nominal; a kernel's clock is calibrated to better than that */
#define APART_MAX_NS 500
#define SUSPENDED_MAX_NS INT64_C(10000000)  /* its reading is good to some ms on a busy machine */
#define JUMP_MIN_NS 1e6
#define RATE_MAX_PPM 300                    /* a kernel's raw clock is not slewed */
#define PPM 1e6

static bool is_slow_clocksource(const char *name)
{
	static const char *const slow[] = { "hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit" };

	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		if (strcmp(name, slow[i]) == 0)
			return true;
	}
	return false;
}

enum counter_verdict counter_judge(const struct counter_facts *facts)
{
	double stated = (double)facts->stated_hz;

	if (facts->kind == PORT_COUNTER_NONE)
		return COUNTER_ABSENT;
	if (!facts->invariant)
		return COUNTER_NOT_INVARIANT;
	if (facts->kind == PORT_COUNTER_TSC && is_slow_clocksource(facts->clocksource))
		return COUNTER_NOT_TRUSTED;
	if (!(facts->hz >= HZ_MIN && facts->hz <= HZ_MAX))
		return COUNTER_OUT_OF_RANGE;
	if (!(fabs(facts->hz - facts->earlier_hz) <= facts->hz * (UNSTABLE_MAX_PPM / PPM)))
		return COUNTER_UNSTABLE;
	if (stated > 0 && fabs(facts->hz - stated) > stated * (STATED_MAX_PPM / PPM))
		return COUNTER_UNSTABLE;
	if (facts->apart_ns > APART_MAX_NS)
		return COUNTER_APART;
	return COUNTER_FIT;
}

enum counter_verdict counter_judge_course(const struct counter_course *course)
{
	double difference_ns = course->counter_ns - (double)course->kernel_ns;
	double allowed_ns = (double)course->window_ns + (double)course->kernel_ns * (RATE_MAX_PPM / PPM);

	if (course->disrupted)
		return COUNTER_DISRUPTED;
	if (course->suspended_ns > SUSPENDED_MAX_NS)
		return COUNTER_SUSPENDED;
	if (course->counter_ns < 0 || fabs(difference_ns) > allowed_ns + JUMP_MIN_NS)
		return COUNTER_JUMPED;
	/* Over a longer course a wrong rate shows below JUMP_MIN_NS too. */
	if (fabs(difference_ns) > allowed_ns)
		return COUNTER_RATE_CHANGED;
	return COUNTER_FIT;
}

void counter_reason(const struct counter_check *check, enum counter_verdict verdict, char *reason, size_t size_bytes)
{
	const struct counter_facts *facts = &check->facts;
	const struct counter_course *course = &check->course;

	switch (verdict) {
	case COUNTER_FIT:
	case COUNTER_VERDICTS:
		snprintf(reason, size_bytes, "%s", "");
		break;
	case COUNTER_ABSENT:
		snprintf(reason, size_bytes, "this processor has no counter that a program can read");
		break;
	case COUNTER_NOT_INVARIANT:
		snprintf(reason, size_bytes, "the counter is not invariant: its rate follows the processor's frequency, or it stops in sleep");
		break;
	case COUNTER_NOT_TRUSTED:
		snprintf(reason, size_bytes, "the kernel does not trust the counter: it keeps time by %s", facts->clocksource);
		break;
	case COUNTER_OUT_OF_RANGE:
		snprintf(reason, size_bytes, "the counter's frequency is out of range: %.0f Hz, allowed %.0f to %.0f", facts->hz, HZ_MIN,
			 HZ_MAX);
		break;
	case COUNTER_UNSTABLE:
		snprintf(reason, size_bytes, "the counter's frequency is not stable: %.0f, then %.0f Hz (stated %" PRIu64 ")",
			 facts->earlier_hz, facts->hz, facts->stated_hz);
		break;
	case COUNTER_APART:
		snprintf(reason, size_bytes, "the processors' counters differ, by %" PRId64 " ns at least; allowed %d", facts->apart_ns,
			 APART_MAX_NS);
		break;
	case COUNTER_DISRUPTED:
		snprintf(reason, size_bytes, "the hypervisor says that the counter was disrupted: this machine was moved or paused");
		break;
	case COUNTER_SUSPENDED:
		snprintf(reason, size_bytes, "the machine was suspended for %" PRId64 " ms", course->suspended_ns / NS_PER_MS);
		break;
	case COUNTER_JUMPED:
		snprintf(reason, size_bytes, "the counter stopped or jumped: %.3f ms passed by it, %.3f by the kernel's clock",
			 course->counter_ns / 1e6, (double)course->kernel_ns / 1e6);
		break;
	case COUNTER_RATE_CHANGED:
		snprintf(reason, size_bytes, "the counter's rate has changed by %.0f ppm: moved to another machine?",
			 (course->counter_ns / (double)course->kernel_ns - 1) * PPM);
		break;
	}
}
