/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A stand-in for the time service: a page that follows this machine's clock, with an error that is made on purpose.
 *
 *   timeservice-follow PAGE OFFSET_NS BOUND_NS [TAI_UTC_S [FAST_PPB]]
 *
 * A new line every 20 ms; `ready` once the first one is there. Each line of its input is a command: `step NS` steps the time,
 * `withdraw` tells that there is none, `offset NS` changes the error. It ends with its input.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/card/ticks.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "timeservice/page.h"

#define INTERVAL_NS INT64_C(20000000)

enum { BRACKETS = 8, USABLE_S = 60, GROWTH_PPB = 20000 };

struct follower {
	struct timepage *page;
	_Atomic int64_t offset_ns, step_ns;
	atomic_bool end, withdrawn, stepped;
	int64_t bound_ns, first_utc_ns;
	int tai_utc_s, fast_ppb;
	uint64_t hz;
	struct timepage_line line;
};

/* Counter and clock at one moment. */
static void take_point(struct timepage_line *line)
{
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < BRACKETS; i++) {
		uint64_t before = port_counter_read(), after;
		int64_t now_realtime_ns = port_kernel_clock_now_ns(PORT_KERNEL_REALTIME);

		after = port_counter_read();
		if (after - before < shortest) {
			shortest = after - before;
			line->base_ticks = before + shortest / 2;
			line->base_utc_ns = now_realtime_ns;
		}
	}
}

static void publish(struct follower *follower)
{
	struct timepage_line *line = &follower->line;

	take_point(line);
	if (atomic_exchange(&follower->stepped, false)) {
		line->step_ns = atomic_load(&follower->step_ns);
		line->epoch++;
		atomic_fetch_add(&follower->offset_ns, line->step_ns);
	}
	if (!follower->first_utc_ns)
		follower->first_utc_ns = line->base_utc_ns;
	line->base_utc_ns += (line->base_utc_ns - follower->first_utc_ns) / 1000000 * follower->fast_ppb / 1000;
	line->base_utc_ns += atomic_load(&follower->offset_ns);
	line->mult = line->settled_mult =
		(uint64_t)(1e9 * (1 + follower->fast_ppb * 1e-9) * 281474976710656.0 / (double)follower->hz);
	line->settled_ticks = line->base_ticks;
	line->low_ns = line->high_ns = follower->bound_ns;
	line->growth_ppb = GROWTH_PPB;
	line->scatter.offset_ns2 = (double)follower->bound_ns * (double)follower->bound_ns / 16; /* U: half of the bound */
	line->heard_ticks = line->base_ticks;
	line->usable_until_ticks = line->base_ticks + USABLE_S * follower->hz;
	line->state = atomic_load(&follower->withdrawn) ? TIMEPAGE_UNSYNCHRONISED : TIMEPAGE_SYNCHRONISED;
	line->reason = atomic_load(&follower->withdrawn) ? TIMEPAGE_REASON_CONTRADICTION : TIMEPAGE_REASON_NONE;
	line->stratum = 2;
	line->tai_utc_s = follower->tai_utc_s;
	if (timepage_publish(follower->page, line))
		abort();
}

static void follow(void *argument)
{
	struct follower *follower = argument;

	while (!atomic_load(&follower->end)) {
		publish(follower);
		port_sleep_ns(INTERVAL_NS);
	}
}

static void obey(struct follower *follower, const char *text)
{
	int64_t value = 0;

	if (sscanf(text, "step %" SCNd64, &value) == 1) {
		atomic_store(&follower->step_ns, value);
		atomic_store(&follower->stepped, true);
	} else if (sscanf(text, "offset %" SCNd64, &value) == 1) {
		atomic_store(&follower->offset_ns, value);
	} else if (strncmp(text, "withdraw", 8) == 0) {
		atomic_store(&follower->withdrawn, true);
	} else {
		fprintf(stderr, "unknown command: %s", text);
	}
}

int main(int argc, char **argv)
{
	static struct follower follower = { .tai_utc_s = 37 };
	struct port_thread *thread;
	char text[100];

	if (argc < 4 || port_init()) {
		fputs("usage: timeservice-follow PAGE OFFSET_NS BOUND_NS [TAI_UTC_S [FAST_PPB]]\n", stderr);
		return 2;
	}
	follower.offset_ns = strtoll(argv[2], NULL, 10);
	follower.bound_ns = strtoll(argv[3], NULL, 10);
	follower.tai_utc_s = argc > 4 ? atoi(argv[4]) : 37;
	follower.fast_ppb = argc > 5 ? atoi(argv[5]) : 0;
	follower.hz = ticks_hz();
	if (!follower.hz || timepage_create(argv[1], port_counter_kind(), follower.hz, &follower.page)) {
		fputs("no counter, or no page\n", stderr);
		return 3;
	}
	follower.line = *timepage_last(follower.page);
	publish(&follower);
	if (port_thread_start("follow", 0, PORT_CPU_ANY, follow, &follower, &thread))
		return 3;
	puts("ready");
	fflush(stdout);
	while (fgets(text, sizeof(text), stdin))
		obey(&follower, text);
	atomic_store(&follower.end, true);
	port_thread_join(thread);
	timepage_close(follower.page);
	return 0;
}
