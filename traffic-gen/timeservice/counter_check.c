/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/counter_check.h"

#include <stdatomic.h>
#include <string.h>

#include "port/port.h"
#include "port/port_timeservice.h"

#define MEASURE_NS INT64_C(150000000)   /* of each of two measurements */
#define COMPARE_NS INT64_C(300000000)   /* of all processors together */
#define COMPARE_MAX_NS INT64_C(50000000)/* of each */
#define START_MAX_NS INT64_C(20000000)  /* until a thread on another processor answers */

enum { BRACKETS = 16, EXCHANGES = 2000, LOOK_EVERY = 64 };

/* The hypervisor's marker; that of before where there is none, or it is being changed: the next look has it. */
static uint64_t marker_now(const struct counter_check *check)
{
	uint64_t marker;

	return check->vmclock_error || port_vmclock_marker(&check->vmclock, &marker) ? check->last.marker : marker;
}

/* Counter and kernel's clock at one moment: the shortest of some brackets. */
static struct counter_moment moment_now(double hz)
{
	struct counter_moment moment = { .suspended_ns = port_suspended_ns() };
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < BRACKETS; i++) {
		uint64_t before = port_counter_read();
		int64_t now_monotonic_raw_ns = port_kernel_clock_now_ns(PORT_KERNEL_MONOTONIC_RAW);
		uint64_t after = port_counter_read();

		if (after - before < shortest) {
			shortest = after - before;
			moment.ticks = before + shortest / 2;
			moment.monotonic_raw_ns = now_monotonic_raw_ns;
		}
	}
	moment.window_ns = hz > 0 ? (int64_t)((double)shortest * 1e9 / hz) + 1 : 0;
	return moment;
}

static double hz_between(const struct counter_moment *first, const struct counter_moment *last)
{
	int64_t ns = last->monotonic_raw_ns - first->monotonic_raw_ns;

	return ns > 0 ? (double)(int64_t)(last->ticks - first->ticks) * 1e9 / (double)ns : 0;
}

/* ---- processors against the first one ---------------------------------------------------------------------------- */

/* A thread on another processor answers each request with its counter. */
struct other {
	_Atomic uint32_t request, answered, end;
	_Atomic uint64_t ticks;
};

static void answer(void *argument)
{
	struct other *other = argument;
	uint32_t last = 0;

	while (!atomic_load_explicit(&other->end, memory_order_acquire)) {
		uint32_t request = atomic_load_explicit(&other->request, memory_order_acquire);

		if (request == last) {
			port_counter_pause();
			continue;
		}
		last = request;
		atomic_store_explicit(&other->ticks, port_counter_read(), memory_order_relaxed);
		atomic_store_explicit(&other->answered, request, memory_order_release);
	}
}

/* One exchange. False: no answer until the deadline. */
static bool ask(struct other *other, uint32_t number, int64_t deadline_monotonic_ns, int64_t *low, int64_t *high)
{
	uint64_t before = port_counter_read(), after, ticks;

	atomic_store_explicit(&other->request, number, memory_order_release);
	for (uint32_t i = 1; atomic_load_explicit(&other->answered, memory_order_acquire) != number; i++) {
		if (i % LOOK_EVERY == 0 && port_clock_now_ns(PORT_CLOCK_MONOTONIC) > deadline_monotonic_ns)
			return false;
	}
	after = port_counter_read();
	ticks = atomic_load_explicit(&other->ticks, memory_order_relaxed);
	/* Its counter less ours, at its moment: between these. */
	if ((int64_t)(ticks - after) > *low)
		*low = (int64_t)(ticks - after);
	if ((int64_t)(ticks - before) < *high)
		*high = (int64_t)(ticks - before);
	return true;
}

static int64_t magnitude(int64_t value)
{
	return value < 0 ? -value : value;
}

/* Compare one processor; the calling thread stands on another. */
static void compare(struct counter_facts *facts, int cpu, int64_t patience_ns)
{
	struct other other = { .request = 0 };
	int64_t low = INT64_MIN, high = INT64_MAX, deadline_monotonic_ns, proved, most;
	struct port_thread *thread;

	if (port_thread_start("counter", 0, cpu, answer, &other, &thread))
		return;
	deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + START_MAX_NS;
	if (port_thread_scheduling(thread)->cpu == cpu && ask(&other, 1, deadline_monotonic_ns, &low, &high)) {
		deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + patience_ns;
		for (uint32_t number = 2; number < EXCHANGES; number++) {
			if (!ask(&other, number, deadline_monotonic_ns, &low, &high))
				break;
		}
		proved = low > 0 ? low : high < 0 ? -high : 0;
		most = magnitude(low) > magnitude(high) ? magnitude(low) : magnitude(high);
		proved = (int64_t)((double)proved * 1e9 / facts->hz);
		most = (int64_t)((double)most * 1e9 / facts->hz) + 1;
		facts->apart_ns = proved > facts->apart_ns ? proved : facts->apart_ns;
		facts->apart_most_ns = most > facts->apart_most_ns ? most : facts->apart_most_ns;
		facts->cpus_compared++;
	}
	atomic_store_explicit(&other.end, 1, memory_order_release);
	port_thread_join(thread);
}

/* ---- the two looks ----------------------------------------------------------------------------------------------- */

static void compare_all(void *argument)
{
	struct counter_facts *facts = argument;
	int64_t patience_ns = COMPARE_NS / facts->cpus;

	for (int i = 1; i < facts->cpus; i++)
		compare(facts, port_cpu_at(i), patience_ns < COMPARE_MAX_NS ? patience_ns : COMPARE_MAX_NS);
}

enum counter_verdict counter_check_begin(struct counter_check *check)
{
	struct counter_facts *facts = &check->facts;
	struct counter_moment first, second;
	struct port_thread *thread;
	uint64_t marker;

	memset(check, 0, sizeof(*check));
	check->vmclock_error = port_vmclock_open(&check->vmclock);
	facts->kind = port_counter_kind();
	if (facts->kind == PORT_COUNTER_NONE)
		return COUNTER_ABSENT;
	facts->invariant = port_counter_invariant();
	facts->stated_hz = port_counter_stated_hz();
	port_clocksource(facts->clocksource, sizeof(facts->clocksource));
	marker = marker_now(check);
	first = moment_now(0);
	port_sleep_ns(MEASURE_NS);
	second = moment_now(0);
	port_sleep_ns(MEASURE_NS);
	check->last = moment_now(0);
	facts->earlier_hz = hz_between(&first, &second);
	facts->hz = hz_between(&second, &check->last);
	facts->cpus = port_cpu_count();
	/* From the first processor; this thread stays where it is. */
	if (facts->hz > 0 && facts->cpus > 1 &&
	    port_thread_start("counter", 0, port_cpu_at(0), compare_all, facts, &thread) == 0)
		port_thread_join(thread);
	check->last = moment_now(facts->hz);
	check->last.marker = marker; /* what has happened since is found at the next look */
	return counter_judge(facts);
}

enum counter_verdict counter_check_watch(struct counter_check *check)
{
	uint64_t marker = marker_now(check);
	struct counter_moment now = moment_now(check->facts.hz);

	check->course = (struct counter_course){
		.counter_ns = (double)(int64_t)(now.ticks - check->last.ticks) * 1e9 / check->facts.hz,
		.kernel_ns = now.monotonic_raw_ns - check->last.monotonic_raw_ns,
		.window_ns = now.window_ns + check->last.window_ns,
		.suspended_ns = now.suspended_ns - check->last.suspended_ns,
		.disrupted = marker != check->last.marker,
	};
	check->last = now;
	check->last.marker = marker;
	return counter_judge_course(&check->course);
}

void counter_check_end(struct counter_check *check)
{
	port_vmclock_close(&check->vmclock);
}
