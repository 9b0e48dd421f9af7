/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-setclock - give this machine's CLOCK_REALTIME a known error, and its kernel the TAI offset
 *
 *   bw-setclock [--step-ns N] [--tick-us N] [--frequency-ppb N] [--tai-utc-s N] [--status N]
 *
 * Steps the clock by N ns (positive: the clock is put ahead), sets the length of a tick, the frequency correction (positive: the
 * clock runs fast), TAI - UTC and the status bits of adjtimex(2) that can be written, in this order, then prints what the kernel
 * holds as one JSON object. Without options it only prints.
 * A frequency within +-500 ppm is set exactly to 2^-16 ppm (adjtimex(2), ADJ_FREQUENCY).
 *
 * Exit codes: 0 done, 2 bad argument, 3 not permitted or not possible on this machine.
 *
 * System program: adjtimex(2) by options.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>

#define NS_PER_S INT64_C(1000000000)
#define STEP_MAX_NS (INT64_C(400) * 86400 * NS_PER_S)
#define FREQUENCY_MAX_PPB 500000
#define TAI_UTC_MAX_S 1000
/* What the kernel takes: 10 % around the tick of 100 Hz. */
#define TICK_MIN_US 9000
#define TICK_MAX_US 11000
#define STATUS_MAX 255

enum exit_code { EXIT_DONE = 0, EXIT_BAD_INPUT = 2, EXIT_MISSING_CAPABILITY = 3 };

struct option_row {
	const char *name;
	int64_t min;
	int64_t max;
};

enum option_index { STEP_NS, TICK_US, FREQUENCY_PPB, TAI_UTC_S, STATUS, OPTIONS };

static const struct option_row option_rows[OPTIONS] = {
	[STEP_NS] = { "--step-ns", -STEP_MAX_NS, STEP_MAX_NS },
	[TICK_US] = { "--tick-us", TICK_MIN_US, TICK_MAX_US },
	[FREQUENCY_PPB] = { "--frequency-ppb", -FREQUENCY_MAX_PPB, FREQUENCY_MAX_PPB },
	[TAI_UTC_S] = { "--tai-utc-s", 0, TAI_UTC_MAX_S },
	[STATUS] = { "--status", 0, STATUS_MAX },
};

struct request {
	bool given[OPTIONS];
	int64_t value[OPTIONS];
};

/* Read one decimal integer of the row's range. Returns 0 or -EINVAL. */
static int value_parse(const struct option_row *row, const char *text, int64_t *value)
{
	char *end;
	long long parsed;

	errno = 0;
	parsed = strtoll(text, &end, 10);
	if (errno || end == text || *end || parsed < row->min || parsed > row->max)
		return -EINVAL;
	*value = parsed;
	return 0;
}

/* Read the command line; says on stderr what is wrong. Returns 0 or -EINVAL. */
static int request_parse(struct request *request, int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		int index = 0;

		while (index < OPTIONS && strcmp(argv[i], option_rows[index].name) != 0)
			index++;
		if (index == OPTIONS) {
			fprintf(stderr, "bw-setclock: unknown option %s\n", argv[i]);
			return -EINVAL;
		}
		if (i + 1 == argc || value_parse(&option_rows[index], argv[i + 1], &request->value[index])) {
			fprintf(stderr, "bw-setclock: %s: %s is no integer within %" PRId64 "..%" PRId64 "\n",
				argv[i], i + 1 == argc ? "(nothing)" : argv[i + 1], option_rows[index].min,
				option_rows[index].max);
			return -EINVAL;
		}
		request->given[index] = true;
	}
	return 0;
}

static int clock_step(int64_t step_ns)
{
	struct timex tx = { .modes = ADJ_SETOFFSET | ADJ_NANO };

	/* With ADJ_NANO tv_usec holds nanoseconds, and it has to lie within 0..10^9 - 1. */
	tx.time.tv_sec = step_ns / NS_PER_S;
	tx.time.tv_usec = step_ns % NS_PER_S;
	if (tx.time.tv_usec < 0) {
		tx.time.tv_sec -= 1;
		tx.time.tv_usec += NS_PER_S;
	}
	return adjtimex(&tx) < 0 ? -errno : 0;
}

static int clock_set_tick(int64_t tick_us)
{
	struct timex tx = { .modes = ADJ_TICK, .tick = tick_us };

	return adjtimex(&tx) < 0 ? -errno : 0;
}

static int clock_set_status(int64_t status)
{
	struct timex tx = { .modes = ADJ_STATUS, .status = (int)status };

	return adjtimex(&tx) < 0 ? -errno : 0;
}

static int clock_set_frequency(int64_t frequency_ppb)
{
	struct timex tx = { .modes = ADJ_FREQUENCY };
	int64_t scaled = frequency_ppb * 65536;

	tx.freq = (scaled + (scaled < 0 ? -500 : 500)) / 1000;
	return adjtimex(&tx) < 0 ? -errno : 0;
}

static int clock_set_tai(int64_t tai_utc_s)
{
	struct timex tx = { .modes = ADJ_TAI, .constant = tai_utc_s };

	return adjtimex(&tx) < 0 ? -errno : 0;
}

static int clock_print(void)
{
	struct timex tx = { .modes = 0 };

	if (adjtimex(&tx) < 0)
		return -errno;
	printf("{\"frequency_ppb\":%.3f,\"tick_us\":%lld,\"tai_utc_s\":%d,\"status\":%d}\n",
	       (double)tx.freq * 1000.0 / 65536.0, (long long)tx.tick, tx.tai, tx.status);
	return fflush(stdout) ? -errno : 0;
}

int main(int argc, char **argv)
{
	struct request request = { .given = { false } };
	int err = 0;

	if (request_parse(&request, argc, argv))
		return EXIT_BAD_INPUT;
	if (request.given[STEP_NS])
		err = clock_step(request.value[STEP_NS]);
	if (!err && request.given[TICK_US])
		err = clock_set_tick(request.value[TICK_US]);
	if (!err && request.given[FREQUENCY_PPB])
		err = clock_set_frequency(request.value[FREQUENCY_PPB]);
	if (!err && request.given[TAI_UTC_S])
		err = clock_set_tai(request.value[TAI_UTC_S]);
	if (!err && request.given[STATUS])
		err = clock_set_status(request.value[STATUS]);
	if (!err)
		err = clock_print();
	if (err) {
		fprintf(stderr, "bw-setclock: %s\n", strerror(-err));
		return EXIT_MISSING_CAPABILITY;
	}
	return EXIT_DONE;
}
