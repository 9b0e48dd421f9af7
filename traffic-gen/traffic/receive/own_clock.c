/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/receive/own_clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/source.h"
#include "config/options.h"
#include "traffic/receive/consumer.h"

#define PERIOD_NS INT64_C(100000000)
#define RATE_MAX_PPB INT64_C(1000000)
#define WANDER_PPB_PER_S 1000 /* of the bound between two readings: the system's clock may be slewed meanwhile */

enum { BRACKETS = 8, RATE_READINGS = 10 };

/* One look at both clocks. */
struct reading {
	int64_t system_tai_ns, offset_ns, bound_ns, half_bracket_ns; /* bound_ns negative: unknown */
};

int own_clock_open(struct own_clock *clock, const struct plan *plan, const struct port_tai *tai)
{
	char error[OWN_CLOCK_WHY_BYTES] = "";
	int err;

	memset(clock, 0, sizeof(*clock));
	clock->name = plan->consumer_clock;
	clock->tai = tai;
	clockline_init(&clock->line);
	if (plan_stamps_by_system_clock(plan))
		return EXIT_DONE;
	clock->account.bound_max_ns = -1;
	clock->source = calloc(1, sizeof(*clock->source));
	err = clock->source ? source_open(clock->source, clock->name, plan->tai_utc_s, error, sizeof(error)) : -ENOMEM;
	if (!err) {
		err = source_begin(clock->source, error, sizeof(error));
		err = err == -EINVAL ? -EIO : err;
	}
	if (!err)
		return EXIT_DONE;
	fprintf(stderr, CONSUMER_TOOL ": [consumer]: %s\n", *error ? error : strerror(-err));
	return source_exit_code(err);
}

void own_clock_close(struct own_clock *clock)
{
	if (clock->source)
		source_close(clock->source);
	free(clock->source);
	clock->source = NULL;
}

static void refuse(struct own_clock *clock, int err)
{
	clock->account.refused += atomic_load(&clock->seen);
	snprintf(clock->account.why, sizeof(clock->account.why), "%s", source_why(clock->source, err));
}

/* The shortest of some brackets. False: the clock gives no time. */
static bool read_both(struct own_clock *clock, struct reading *reading)
{
	int64_t shortest_ns = INT64_MAX;

	for (int i = 0; i < BRACKETS; i++) {
		int64_t before_tai_ns = port_tai_now_ns(clock->tai), length_ns, own_tai_ns, step_ns;
		int err = source_read(clock->source, &own_tai_ns);

		length_ns = port_tai_now_ns(clock->tai) - before_tai_ns;
		if (err) {
			refuse(clock, err);
			return false;
		}
		step_ns = source_step_ns(clock->source);
		if (step_ns) {
			clock->account.steps++;
			clock->account.last_step_ns = step_ns;
		}
		if (length_ns < 0 || length_ns >= shortest_ns)
			continue;
		shortest_ns = length_ns;
		reading->system_tai_ns = before_tai_ns + length_ns / 2;
		reading->offset_ns = own_tai_ns - reading->system_tai_ns;
		reading->bound_ns = source_reading_bound_ns(clock->source);
		reading->half_bracket_ns = (length_ns + 1) / 2;
	}
	clock->account.readings++;
	return shortest_ns != INT64_MAX;
}

/* The rate is that over the last second; of the first reading it is not known, and the next one comes soon. */
static struct twoway_line line_of(const struct reading *now, const struct reading *then)
{
	struct twoway_line line = {
		.valid = true,
		.at_local_ns = now->system_tai_ns,
		.offset_ns = now->offset_ns,
		.bound_ns = (now->bound_ns < 0 ? 0 : now->bound_ns) + now->half_bracket_ns,
		.wander_ppb_per_s = WANDER_PPB_PER_S,
	};
	int64_t age_ns = then ? now->system_tai_ns - then->system_tai_ns : 0;

	if (age_ns > 0) {
		double rate_ppb = (double)(now->offset_ns - then->offset_ns) * 1e9 / (double)age_ns;

		if (rate_ppb > -(double)RATE_MAX_PPB && rate_ppb < (double)RATE_MAX_PPB)
			line.rate_ppb = (int64_t)rate_ppb;
	}
	return line;
}

/* From the first line on that knows a rate. */
static void account_line(struct own_clock *clock, const struct reading *now)
{
	struct twoway_line line = clockline_read(&clock->line);
	int64_t off_ns = now->offset_ns - twoway_line_offset_ns(&line, now->system_tai_ns);
	int64_t error_ns = (off_ns < 0 ? -off_ns : off_ns) + now->half_bracket_ns;

	if (error_ns > clock->account.line_error_max_ns)
		clock->account.line_error_max_ns = error_ns;
}

static void follow(struct own_clock *clock, struct reading *readings, uint64_t *count)
{
	uint64_t steps = clock->account.steps;
	struct reading now;
	struct twoway_line line;

	if (!read_both(clock, &now))
		return;
	if (clock->account.steps != steps)
		*count = 0;
	if (*count > 1)
		account_line(clock, &now);
	/* The oldest one lies where this one goes. */
	line = line_of(&now, *count == 0 ? NULL : &readings[*count < RATE_READINGS ? 0 : *count % RATE_READINGS]);
	readings[(*count)++ % RATE_READINGS] = now;
	if (now.bound_ns > clock->account.bound_max_ns)
		clock->account.bound_max_ns = now.bound_ns;
	clockline_publish(&clock->line, &line);
	atomic_store(&clock->seen, true);
}

static void run(void *argument)
{
	struct own_clock *clock = argument;
	struct reading readings[RATE_READINGS];
	uint64_t count = 0;

	while (!atomic_load(&clock->stop)) {
		follow(clock, readings, &count);
		port_sleep_ns(PERIOD_NS);
	}
}

int own_clock_start(struct own_clock *clock)
{
	return clock->source ? port_thread_start("own-clock", 0, PORT_CPU_ANY, run, clock, &clock->thread) : 0;
}

void own_clock_stop(struct own_clock *clock)
{
	if (!clock->thread)
		return;
	atomic_store(&clock->stop, true);
	port_thread_join(clock->thread);
	clock->thread = NULL;
	source_end(clock->source, clock->account.unfit, sizeof(clock->account.unfit));
}

bool own_clock_seen(const struct own_clock *clock)
{
	return !clock->source || atomic_load(&clock->seen);
}
