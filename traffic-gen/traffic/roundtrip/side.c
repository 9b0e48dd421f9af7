/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/roundtrip/side.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answer/summary.h"
#include "base/time_units.h"

#define TICK_NS (100 * NS_PER_MS)
#define PROGRESS_NS (1000 * NS_PER_MS)
#define BUSY_NS INT64_C(500000) /* a wake-up may be late by that much */

enum { PRIORITY_DEFAULT = 50, TRANSMITTED_MAX = 64 };

const struct side_options side_defaults = { .priority = PRIORITY_DEFAULT, .cpu = PORT_CPU_ANY, .tai_utc_s = TAI_UTC_DEFAULT_S };

void side_add_options(struct option *rows, struct side_options *chosen)
{
	const struct option common[SIDE_OPTIONS + 1] = {
		{ .name = "priority", .kind = OPTION_INT, .target = &chosen->priority, .min = 0, .max = 99, .argument = "N",
		  .help = "SCHED_FIFO priority, 0..99 (default 50); 0: do not ask" },
		{ .name = "cpu", .kind = OPTION_INT, .target = &chosen->cpu, .min = 0, .max = 1023, .argument = "N",
		  .help = "CPU that the thread is pinned to, 0..1023 (default: any)" },
		{ .name = "delay-receive-us", .kind = OPTION_INT, .target = &chosen->delay_receive_us, .min = 0, .max = 100000,
		  .argument = "N", .help = "a known delay of receiving, before its stamp, 0..100000 us (default 0)" },
		{ .name = "delay-send-us", .kind = OPTION_INT, .target = &chosen->delay_send_us, .min = 0, .max = 100000,
		  .argument = "N", .help = "a known delay of sending, after its stamp, 0..100000 us (default 0)" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &chosen->tai_utc_s, .min = 0, .max = 1000, .argument = "N",
		  .help = "TAI - UTC where the kernel does not know it, 0..1000 s (default 37)" },
		{ .name = NULL },
	};

	memcpy(rows, common, sizeof(common));
}

void side_add_scheduling_options(struct option *rows, struct side_options *chosen)
{
	struct option every[SIDE_OPTIONS + 1];

	side_add_options(every, chosen);
	for (const struct option *each = every; each->name; each++)
		if (strncmp(each->name, "delay-", strlen("delay-")) != 0)
			*rows++ = *each;
	*rows = (struct option){ .name = NULL };
}

int side_open(struct side *side, const struct address *local)
{
	int64_t step_ns;
	int err = port_udp_open(local, &side->sock);

	side->receive.delay_us = side->options.delay_receive_us;
	side->send.delay_us = side->options.delay_send_us;
	if (err)
		return err;
	side->kernel_stamps = port_socket_stamp_both(side->sock) == 0;
	side->stamp_clock = port_stamp_clock(&step_ns);
	return 0;
}

void side_close(struct side *side)
{
	port_socket_close(side->sock);
	side->sock = PORT_SOCKET_NONE;
}

static void wait_finished(struct side *side, void *argument, void (*progress)(void *, int64_t))
{
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	int64_t next_monotonic_ns = begin_monotonic_ns + PROGRESS_NS;

	while (!atomic_load(&side->finished)) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

		if (now_monotonic_ns >= next_monotonic_ns) {
			progress(argument, now_monotonic_ns - begin_monotonic_ns);
			next_monotonic_ns = now_monotonic_ns + PROGRESS_NS;
		}
		port_sleep_ns(TICK_NS);
	}
}

int side_run(struct side *side, void (*run)(void *), void *argument, void (*progress)(void *argument, int64_t elapsed_ns),
	     struct port_scheduling *scheduling)
{
	int locked = port_memory_lock();
	const char *verb = strrchr(side->tool, ' ');
	const char *name = verb ? verb + 1 : side->tool;
	struct port_thread *thread;
	int err = port_thread_start(name, (int)side->options.priority, (int)side->options.cpu, run, argument, &thread);

	if (err)
		return side_fail(side, "cannot start", "the thread", err);
	*scheduling = *port_thread_scheduling(thread);
	if (locked)
		summary_add_note(scheduling, "memory is not locked", -locked);
	if (progress)
		wait_finished(side, argument, progress);
	port_thread_join(thread);
	return EXIT_DONE;
}

int side_fail(const struct side *side, const char *what, const char *which, int err)
{
	fprintf(stderr, "%s: %s %s: %s\n", side->tool, what, which, strerror(-err));
	return EXIT_CAPABILITY;
}

static void write_delay(struct json *json, const char *asked, const char *mean, const struct delays *delays)
{
	json_int(json, asked, delays->delay_us);
	json_int(json, mean, delays->count ? delays->sum_ns / (int64_t)delays->count : 0);
}

void side_write_delays(struct json *json, const struct side *side)
{
	write_delay(json, "delay_receive_us", "delayed_receive_mean_ns", &side->receive);
	write_delay(json, "delay_send_us", "delayed_send_mean_ns", &side->send);
}

int64_t side_delay(struct delays *delays)
{
	int64_t begin_monotonic_ns, now_monotonic_ns, until_monotonic_ns;

	if (!delays->delay_us)
		return 0;
	begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	until_monotonic_ns = begin_monotonic_ns + delays->delay_us * NS_PER_US;
	if (delays->delay_us * NS_PER_US > BUSY_NS)
		port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, until_monotonic_ns - BUSY_NS);
	do
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	while (now_monotonic_ns < until_monotonic_ns);
	delays->sum_ns += now_monotonic_ns - begin_monotonic_ns;
	delays->count++;
	return now_monotonic_ns - begin_monotonic_ns;
}

int64_t side_transmitted_ns(const struct side *side, const struct moment *sent)
{
	int64_t sent_ns = side_stamp_clock_ns(side, sent);

	for (int i = 0; side->kernel_stamps && i < TRANSMITTED_MAX; i++) {
		struct port_transmitted transmitted;
		int err = port_recv_transmitted(side->sock, &transmitted);
		int64_t stamp_ns;

		if (err == -EBADMSG)
			continue; /* another kind of report */
		if (err)
			break;
		stamp_ns = side_stamp_ns(transmitted.stamp_realtime_ns, transmitted.stamp_monotonic_ns);
		if (stamp_ns >= sent_ns)
			return stamp_ns;
	}
	return 0;
}
