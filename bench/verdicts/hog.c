/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hog - take a processor in bursts of known length, and say what was taken
 *
 *   hog KIND CPU PRIORITY BURST_MIN_US BURST_MAX_US PAUSE_MIN_US PAUSE_MAX_US SEED DURATION_S
 *
 * KIND: `spin` runs for a burst; `timers` sleeps while so many timers end at one instant that their interrupts take about as
 * long (fewer where the system allows no more timers).
 * CPU: -1 for any. PRIORITY: 100 SCHED_DEADLINE, CPU -1 only; 1..99 that of SCHED_FIFO; 0..-20 ordinary scheduling with that
 * nice value.
 * Bursts and pauses are drawn uniformly by a generator of SEED. A burst lasts by CLOCK_MONOTONIC, so it ends when it would have
 * ended even where something takes the processor away from it. It is the fault of a target in bench_verdicts.py (run inside the
 * guest) and a disturbance of the machine (run beside it).
 *
 * Writes NDJSON: `ready` once it runs as asked, then `result`. Ends by itself after DURATION_S, or by SIGTERM or SIGINT.
 * Exit codes: 0 done, 2 bad argument, 3 not permitted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_S INT64_C(1000000000)
#define TIME_MAX_US INT64_C(60000000)

enum exit_code { EXIT_DONE = 0, EXIT_BAD_INPUT = 2, EXIT_MISSING_CAPABILITY = 3 };

enum { PRIORITY_DEADLINE = 100, TIMERS_MAX = 60000, TIMERS_PER_MS = 100, TIMER_MIN_NS = 500 };

enum argument { CPU, PRIORITY, BURST_MIN_US, BURST_MAX_US, PAUSE_MIN_US, PAUSE_MAX_US, SEED, DURATION_S, ARGUMENTS };

static const struct {
	const char *name;
	int64_t min, max;
} argument_rows[ARGUMENTS] = {
	[CPU] = { "CPU", -1, CPU_SETSIZE - 1 },
	[PRIORITY] = { "PRIORITY", -20, PRIORITY_DEADLINE },
	[BURST_MIN_US] = { "BURST_MIN_US", 1, TIME_MAX_US },
	[BURST_MAX_US] = { "BURST_MAX_US", 1, TIME_MAX_US },
	[PAUSE_MIN_US] = { "PAUSE_MIN_US", 1, TIME_MAX_US },
	[PAUSE_MAX_US] = { "PAUSE_MAX_US", 1, TIME_MAX_US },
	[SEED] = { "SEED", 0, INT64_MAX },
	[DURATION_S] = { "DURATION_S", 1, 86400 },
};

struct taken {
	int64_t bursts, busy_ns, longest_ns;
};

struct timers {
	int64_t count;
	int64_t each_ns; /* what one took in the burst before: the more there are, the longer */
	timer_t ids[TIMERS_MAX];
	sigset_t signals;
};

static volatile sig_atomic_t asked_to_end;

static void ask_to_end(int number)
{
	(void)number;
	asked_to_end = 1;
}

static int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Read all arguments after the kind; says on stderr what is wrong. Returns 0 or -EINVAL. */
static int arguments_parse(int64_t values[ARGUMENTS], int argc, char **argv)
{
	if (argc != ARGUMENTS + 1) {
		fprintf(stderr, "hog: %d arguments needed, found %d\n", ARGUMENTS, argc - 1);
		return -EINVAL;
	}
	for (int i = 0; i < ARGUMENTS; i++) {
		char *end;

		errno = 0;
		values[i] = strtoll(argv[i + 1], &end, 10);
		if (errno || end == argv[i + 1] || *end || values[i] < argument_rows[i].min ||
		    values[i] > argument_rows[i].max) {
			fprintf(stderr, "hog: %s: %s is no integer within %" PRId64 "..%" PRId64 "\n",
				argument_rows[i].name, argv[i + 1], argument_rows[i].min, argument_rows[i].max);
			return -EINVAL;
		}
	}
	if (values[PRIORITY] == PRIORITY_DEADLINE && (values[CPU] >= 0 || values[BURST_MAX_US] > values[PAUSE_MIN_US])) {
		fprintf(stderr, "hog: SCHED_DEADLINE needs CPU -1, and pauses no shorter than bursts\n");
		return -EINVAL;
	}
	if (values[BURST_MIN_US] > values[BURST_MAX_US] || values[PAUSE_MIN_US] > values[PAUSE_MAX_US]) {
		fprintf(stderr, "hog: a smallest value is larger than its largest\n");
		return -EINVAL;
	}
	return 0;
}

/* Ask for all of a processor in half of the time. Returns 0 or -errno. */
static int deadline_take(int64_t burst_us)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period; /* ns, as the system call has them */
	} attributes = { .size = 48, .policy = 6 /* SCHED_DEADLINE */, .runtime = (uint64_t)(burst_us * NS_PER_US) };

	attributes.deadline = attributes.period = 2 * attributes.runtime;
	return syscall(SYS_sched_setattr, 0, &attributes, 0) ? -errno : 0;
}

/* Take the processor and the priority that were asked for. Returns 0 or -errno. */
static int scheduling_take(int64_t cpu, int64_t priority, int64_t burst_us)
{
	struct sched_param parameter = { .sched_priority = (int)priority };
	cpu_set_t cpus;

	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return -errno;
	if (cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET((size_t)cpu, &cpus);
		if (sched_setaffinity(0, sizeof(cpus), &cpus))
			return -errno;
	}
	if (priority == PRIORITY_DEADLINE)
		return deadline_take(burst_us);
	if (priority > 0)
		return sched_setscheduler(0, SCHED_FIFO, &parameter) ? -errno : 0;
	return setpriority(PRIO_PROCESS, 0, (int)priority) ? -errno : 0;
}

/* Return a number of min..max (splitmix64; its bias over so few values is below 1e-12). */
static int64_t draw(uint64_t *state, int64_t min, int64_t max)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return min + (int64_t)((z ^ (z >> 31)) % (uint64_t)(max - min + 1));
}

static void sleep_until(int64_t end_monotonic_ns)
{
	struct timespec end = { .tv_sec = end_monotonic_ns / NS_PER_S, .tv_nsec = end_monotonic_ns % NS_PER_S };

	while (!asked_to_end && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

static void burst_note(struct taken *taken, int64_t took_ns)
{
	taken->bursts++;
	taken->busy_ns += took_ns;
	if (took_ns > taken->longest_ns)
		taken->longest_ns = took_ns;
}

static void burst_run(struct taken *taken, int64_t length_ns)
{
	int64_t begin_monotonic_ns = monotonic_ns(), now_monotonic_ns = begin_monotonic_ns;

	while (now_monotonic_ns - begin_monotonic_ns < length_ns && !asked_to_end)
		now_monotonic_ns = monotonic_ns();
	burst_note(taken, now_monotonic_ns - begin_monotonic_ns);
}

/* Make as many timers as one burst may need, or as there may be. Their signal is blocked. Returns 0 or -errno. */
static int timers_make(struct timers *timers, int64_t longest_ns)
{
	int64_t wanted = longest_ns / TIMER_MIN_NS;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };

	timers->each_ns = 2 * TIMER_MIN_NS;
	sigemptyset(&timers->signals);
	sigaddset(&timers->signals, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &timers->signals, NULL);
	while (timers->count < wanted && timers->count < TIMERS_MAX &&
	       !timer_create(CLOCK_MONOTONIC, &event, &timers->ids[timers->count]))
		timers->count++;
	return timers->count ? 0 : -errno;
}

/* Let timers end at one instant and sleep until then; how late this wakes up is what their interrupts took. */
static void timers_run(struct taken *taken, struct timers *timers, int64_t length_ns)
{
	const struct timespec at_once = { 0 };
	int64_t wanted = length_ns / timers->each_ns + 1, count = wanted < timers->count ? wanted : timers->count;
	int64_t end_monotonic_ns = monotonic_ns() + (count / TIMERS_PER_MS + 1) * NS_PER_S / 1000, took_ns;
	struct itimerspec end = { .it_value = { .tv_sec = end_monotonic_ns / NS_PER_S,
						.tv_nsec = end_monotonic_ns % NS_PER_S } };

	for (int64_t i = 0; i < count; i++)
		timer_settime(timers->ids[i], TIMER_ABSTIME, &end, NULL);
	if (monotonic_ns() > end_monotonic_ns)
		count = 0; /* they have not ended at one instant */
	sleep_until(end_monotonic_ns);
	took_ns = monotonic_ns() - end_monotonic_ns;
	if (count) {
		burst_note(taken, took_ns);
		timers->each_ns = (3 * timers->each_ns + took_ns / count) / 4;
	}
	if (timers->each_ns < TIMER_MIN_NS)
		timers->each_ns = TIMER_MIN_NS;
	while (sigtimedwait(&timers->signals, NULL, &at_once) > 0)
		;
}

int main(int argc, char **argv)
{
	static struct timers timers;
	bool is_timers = argc > 1 && !strcmp(argv[1], "timers");
	int64_t values[ARGUMENTS], end_monotonic_ns, length_ns;
	struct sigaction action = { .sa_handler = ask_to_end };
	struct taken taken = { 0 };
	struct timespec used;
	uint64_t state;
	int err;

	if (!is_timers && (argc < 2 || strcmp(argv[1], "spin") != 0)) {
		fprintf(stderr, "hog: KIND: must be spin or timers\n");
		return EXIT_BAD_INPUT;
	}
	if (arguments_parse(values, argc - 1, argv + 1))
		return EXIT_BAD_INPUT;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	err = is_timers ? timers_make(&timers, values[BURST_MAX_US] * NS_PER_US) : 0;
	if (!err)
		err = scheduling_take(values[CPU], values[PRIORITY], values[BURST_MAX_US]);
	if (err) {
		fprintf(stderr, "hog: CPU %" PRId64 ", priority %" PRId64 ": %s\n", values[CPU], values[PRIORITY],
			strerror(-err));
		return EXIT_MISSING_CAPABILITY;
	}
	printf("{\"type\":\"ready\",\"tool\":\"hog\"}\n");
	fflush(stdout);
	state = (uint64_t)values[SEED];
	end_monotonic_ns = monotonic_ns() + values[DURATION_S] * NS_PER_S;
	while (!asked_to_end && monotonic_ns() < end_monotonic_ns) {
		sleep_until(monotonic_ns() + draw(&state, values[PAUSE_MIN_US], values[PAUSE_MAX_US]) * NS_PER_US);
		length_ns = draw(&state, values[BURST_MIN_US], values[BURST_MAX_US]) * NS_PER_US;
		if (!asked_to_end && is_timers)
			timers_run(&taken, &timers, length_ns);
		else if (!asked_to_end)
			burst_run(&taken, length_ns);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	printf("{\"type\":\"result\",\"bursts\":%" PRId64 ",\"busy_us\":%" PRId64 ",\"longest_us\":%" PRId64
	       ",\"cpu_us\":%" PRId64 "}\n",
	       taken.bursts, taken.busy_ns / NS_PER_US, taken.longest_ns / NS_PER_US,
	       (used.tv_sec * NS_PER_S + used.tv_nsec) / NS_PER_US);
	return EXIT_DONE;
}
