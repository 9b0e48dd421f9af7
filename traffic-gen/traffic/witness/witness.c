/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witness: one pinned real-time thread a CPU wakes up at fixed intervals; where it wakes up late, that CPU has stalled, or
 * something of a higher priority held it. What the hypervisor says that it stole stands beside it. If asked to, it keeps the
 * CPUs awake and tells what nobody wanted of them, what other threads ran, and each single wake-up.
 */
#include "traffic/witness/witness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/summary.h"
#include "base/time_units.h"

#define TICK_NS INT64_C(50000000)
#define SERIES_BYTES_MAX (INT64_C(256) << 20) /* of all CPUs together: it is locked memory */

/*
 * First deadline of a watcher. One that reads threads comes a quarter of a period after the others: what those have
 * interrupted is counted by then.
 */
static int64_t first_deadline_monotonic_ns(const struct watcher *watcher)
{
	const struct witness *witness = watcher->witness;
	int64_t begin_monotonic_ns = witness->begin_monotonic_ns + (watcher->times ? witness->period_ns / 4 : 0);

	return stall_next_deadline_monotonic_ns(begin_monotonic_ns, witness->period_ns,
						port_clock_now_ns(PORT_CLOCK_MONOTONIC));
}

/* Take what others ran until a wake-up, and the wake-up itself, where that is asked for. */
static void note_series(struct watcher *watcher, int64_t wake_tai_ns, int64_t late_ns)
{
	int64_t ran_ns[THREAD_TIMES_MAX];

	if (watcher->times)
		thread_times_read(watcher->times, ran_ns);
	if (watcher->series)
		capacity_series_take(watcher->series, wake_tai_ns, late_ns, watcher->times ? ran_ns : NULL);
}

static void watch(void *argument)
{
	struct watcher *watcher = argument;
	const struct witness *witness = watcher->witness;
	int64_t deadline_monotonic_ns;

	/* Called once for nothing: the first call of a function of a library takes longer. */
	port_tai_now_ns(&witness->tai);
	port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, witness->begin_monotonic_ns);
	deadline_monotonic_ns = first_deadline_monotonic_ns(watcher);
	/* Shares are of no more than a period before a deadline, the first one's, too. */
	port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, deadline_monotonic_ns - witness->period_ns);
	cpu_shares_begin(&watcher->shares, port_clock_now_ns(PORT_CLOCK_MONOTONIC));
	while (deadline_monotonic_ns < witness->end_monotonic_ns && !atomic_load(&witness->stop) &&
	       !port_stop_requested()) {
		int64_t now_monotonic_ns, wake_tai_ns, late_ns;
		struct stall_shares shares;

		/* A signal may end the sleep: then there is no late wake-up to be told. */
		if (port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, deadline_monotonic_ns))
			continue;
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		wake_tai_ns = port_tai_now_ns(&witness->tai);
		late_ns = now_monotonic_ns - deadline_monotonic_ns;
		shares = cpu_shares_read(&watcher->shares, now_monotonic_ns, late_ns > watcher->log.threshold_ns);
		stall_log_take(&watcher->log, late_ns, wake_tai_ns, shares);
		note_series(watcher, wake_tai_ns, late_ns);
		deadline_monotonic_ns =
			stall_next_deadline_monotonic_ns(deadline_monotonic_ns, witness->period_ns, now_monotonic_ns);
	}
}

/* Take the room for what the watchers will see: the time's, or what there may be. */
static int create_series(struct witness *witness)
{
	int thread_count = witness->options->threads.count;
	size_t records = capacity_series_records(witness->options->duration_ms * NS_PER_MS, witness->period_ns);
	size_t room = (size_t)SERIES_BYTES_MAX / (size_t)witness->watcher_count / capacity_record_bytes(thread_count);
	int err = 0;

	witness->series = calloc((size_t)witness->watcher_count, sizeof(*witness->series));
	if (!witness->series)
		return -ENOMEM;
	for (int i = 0; i < witness->watcher_count && !err; i++) {
		struct watcher *watcher = &witness->watchers[i];

		watcher->series = &witness->series[i];
		err = capacity_series_init(watcher->series, watcher->log.cpu, thread_count, records < room ? records : room);
	}
	return err;
}

static int create_watchers(struct witness *witness)
{
	const struct option_list *cpus = &witness->options->cpus;
	int count = cpus->count ? cpus->count : port_cpu_count();

	witness->watchers = calloc((size_t)count, sizeof(*witness->watchers));
	if (!witness->watchers)
		return -ENOMEM;
	for (int i = 0; i < count; i++) {
		struct watcher *watcher = &witness->watchers[i];
		int cpu = cpus->count ? cpus->values[i] : port_cpu_at(i);
		int err = stall_log_init(&watcher->log, cpu, witness->options->threshold_us * 1000,
					 (size_t)(WITNESS_WINDOWS_MAX / count));

		if (err)
			return err;
		watcher->witness = witness;
		watcher->shares.cpu = cpu;
		witness->watcher_count++;
	}
	if (witness->options->threads.count)
		witness->watchers[0].times = &witness->times;
	return witness->series_file ? create_series(witness) : 0;
}

/* Start a watcher on its CPU. Return 0, -ENODEV when it cannot be pinned there, or -errno. */
static int start_watcher(const struct witness *witness, struct watcher *watcher)
{
	char name[16];
	int err;

	snprintf(name, sizeof(name), "witness-%d", watcher->log.cpu);
	watcher->shares.target = witness->target;
	watcher->steal_known = port_cpu_steal_ns(watcher->log.cpu, &watcher->steal_before_ns) == 0;
	err = port_thread_start(name, (int)witness->options->priority, watcher->log.cpu, watch, watcher, &watcher->thread);
	if (!err && port_thread_scheduling(watcher->thread)->cpu != watcher->log.cpu)
		err = -ENODEV;
	if (err)
		fprintf(stderr, WITNESS_TOOL ": CPU %d cannot be watched: %s\n", watcher->log.cpu, strerror(-err));
	return err;
}

static int start_awake(struct witness *witness, struct watcher *watcher)
{
	int err = awake_start(&watcher->awake, watcher->log.cpu, &witness->awake_over);

	if (err)
		fprintf(stderr, WITNESS_TOOL ": CPU %d cannot be kept awake: %s\n", watcher->log.cpu, strerror(-err));
	else if (port_thread_scheduling(watcher->awake.thread)->idle)
		atomic_store_explicit(&watcher->shares.idle, watcher->awake.thread, memory_order_release);
	return err;
}

int witness_start(struct witness *witness, int64_t duration_ms)
{
	int err = 0;

	witness->begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	witness->end_monotonic_ns = duration_ms ? witness->begin_monotonic_ns + duration_ms * NS_PER_MS : INT64_MAX;
	for (int i = 0; i < witness->watcher_count && !err; i++)
		err = start_watcher(witness, &witness->watchers[i]);
	/* After all watchers: where their class is the whole process's, there is no idle priority in it. */
	for (int i = 0; i < witness->watcher_count && !err && witness->options->awake; i++)
		err = start_awake(witness, &witness->watchers[i]);
	return err;
}

void witness_wait(struct witness *witness)
{
	int64_t now_monotonic_ns = witness->begin_monotonic_ns;

	while (!port_stop_requested() && now_monotonic_ns < witness->end_monotonic_ns) {
		int64_t left_ns = witness->end_monotonic_ns - now_monotonic_ns;

		port_sleep_ns(left_ns < TICK_NS ? left_ns : TICK_NS);
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	}
	witness->complete = witness->end_monotonic_ns == INT64_MAX || !port_stop_requested();
}

/* What the threads were given; the first one that was refused something speaks for all. */
static struct port_scheduling join_watchers(struct witness *witness)
{
	struct port_scheduling worst = { .cpu = PORT_CPU_ANY };

	for (int i = 0; i < witness->watcher_count; i++) {
		struct port_thread *thread = witness->watchers[i].thread;

		if (!thread)
			continue;
		if (i == 0 || (!worst.note[0] && port_thread_scheduling(thread)->note[0]))
			worst = *port_thread_scheduling(thread);
		port_thread_join(thread);
	}
	worst.cpu = PORT_CPU_ANY; /* each its own: see cpus */
	if (witness->lock_error)
		summary_add_note(&worst, "memory is not locked", witness->lock_error);
	return worst;
}

/* Let the CPUs sleep again. The first refusal is added to what the watchers were refused. */
static void join_awake(struct witness *witness, struct port_scheduling *scheduling)
{
	char refused[PORT_NOTE_BYTES] = "";
	size_t used = strlen(scheduling->note);

	atomic_store(&witness->awake_over, true);
	for (int i = 0; i < witness->watcher_count; i++) {
		struct watcher *watcher = &witness->watchers[i];

		if (!watcher->awake.thread)
			continue;
		if (!refused[0])
			memcpy(refused, port_thread_scheduling(watcher->awake.thread)->note, sizeof(refused));
		watcher->awake_known = awake_join(&watcher->awake);
	}
	if (refused[0])
		snprintf(scheduling->note + used, sizeof(scheduling->note) - used, "%s%s", used ? "; " : "", refused);
}

struct port_scheduling witness_stop(struct witness *witness)
{
	struct port_scheduling scheduling;

	atomic_store(&witness->stop, true);
	scheduling = join_watchers(witness);
	witness->elapsed_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) - witness->begin_monotonic_ns;
	join_awake(witness, &scheduling);
	return scheduling;
}

void witness_release(struct witness *witness)
{
	for (int i = 0; i < witness->watcher_count; i++) {
		stall_log_release(&witness->watchers[i].log);
		if (witness->series)
			capacity_series_release(&witness->series[i]);
	}
	free(witness->series);
	free(witness->watchers);
	if (witness->series_file)
		fclose(witness->series_file);
	thread_times_close(&witness->times);
	if (witness->target)
		port_cpu_account_close(witness->target);
}

int witness_prepare(struct witness *witness)
{
	const struct option_list *threads = &witness->options->threads;
	int err = create_watchers(witness);

	if (err) {
		fprintf(stderr, WITNESS_TOOL ": %s\n", strerror(-err));
		return err;
	}
	witness->lock_error = -port_memory_lock();
	err = thread_times_open(&witness->times, threads->values, threads->count);
	if (err)
		fprintf(stderr, WITNESS_TOOL ": --thread: the CPU time of other processes' threads cannot be read: %s\n",
			strerror(-err));
	if (err || !witness->options->target)
		return err;
	err = port_cpu_account_open(witness->options->target, &witness->target);
	if (err)
		fprintf(stderr, WITNESS_TOOL ": --target: %s: %s\n", witness->options->target, strerror(-err));
	return err;
}
