/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hog - take a processor in bursts of known length, and say what was taken
 *
 *   hog CPU PRIORITY BURST_MIN_US BURST_MAX_US PAUSE_MIN_US PAUSE_MAX_US SEED DURATION_S
 *
 * CPU: -1 for any. PRIORITY: 1..99 that of SCHED_FIFO; 0..-20 ordinary scheduling with that nice value.
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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_S INT64_C(1000000000)
#define TIME_MAX_US INT64_C(60000000)

enum exit_code { EXIT_DONE = 0, EXIT_BAD_INPUT = 2, EXIT_MISSING_CAPABILITY = 3 };

enum argument { CPU, PRIORITY, BURST_MIN_US, BURST_MAX_US, PAUSE_MIN_US, PAUSE_MAX_US, SEED, DURATION_S, ARGUMENTS };

static const struct {
	const char *name;
	int64_t min, max;
} argument_rows[ARGUMENTS] = {
	[CPU] = { "CPU", -1, CPU_SETSIZE - 1 },
	[PRIORITY] = { "PRIORITY", -20, 99 },
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

/* Read all arguments; says on stderr what is wrong. Returns 0 or -EINVAL. */
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
	if (values[BURST_MIN_US] > values[BURST_MAX_US] || values[PAUSE_MIN_US] > values[PAUSE_MAX_US]) {
		fprintf(stderr, "hog: a smallest value is larger than its largest\n");
		return -EINVAL;
	}
	return 0;
}

/* Take the processor and the priority that were asked for. Returns 0 or -errno. */
static int scheduling_take(int64_t cpu, int64_t priority)
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

static void burst_run(struct taken *taken, int64_t length_ns)
{
	int64_t begin_monotonic_ns = monotonic_ns(), now_monotonic_ns = begin_monotonic_ns;

	while (now_monotonic_ns - begin_monotonic_ns < length_ns && !asked_to_end)
		now_monotonic_ns = monotonic_ns();
	taken->bursts++;
	taken->busy_ns += now_monotonic_ns - begin_monotonic_ns;
	if (now_monotonic_ns - begin_monotonic_ns > taken->longest_ns)
		taken->longest_ns = now_monotonic_ns - begin_monotonic_ns;
}

int main(int argc, char **argv)
{
	int64_t values[ARGUMENTS], end_monotonic_ns;
	struct sigaction action = { .sa_handler = ask_to_end };
	struct taken taken = { 0 };
	struct timespec used;
	uint64_t state;
	int err;

	if (arguments_parse(values, argc, argv))
		return EXIT_BAD_INPUT;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	err = scheduling_take(values[CPU], values[PRIORITY]);
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
		if (!asked_to_end)
			burst_run(&taken, draw(&state, values[BURST_MIN_US], values[BURST_MAX_US]) * NS_PER_US);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	printf("{\"type\":\"result\",\"bursts\":%" PRId64 ",\"busy_us\":%" PRId64 ",\"longest_us\":%" PRId64
	       ",\"cpu_us\":%" PRId64 "}\n",
	       taken.bursts, taken.busy_ns / NS_PER_US, taken.longest_ns / NS_PER_US,
	       (used.tv_sec * NS_PER_S + used.tv_nsec) / NS_PER_US);
	return EXIT_DONE;
}
