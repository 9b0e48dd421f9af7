/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/timed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "config/options.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "port/port_feed.h"
#include "port/port_timeservice.h"
#include "timeservice/counter_check.h"
#include "timeservice/server_keys.h"
#include "timeservice/service.h"

/* What the service runs on, from its beginning to its end. */
struct timed {
	struct settings settings;
	struct waiter waiter;
	struct timepage *page;
	struct timed_log log;
	struct counter_check counter;
	struct local_time local;
	struct service service;
	struct port_feed *feed;
	FILE *out;
	int result;
};

static int tell(const char *what, int err)
{
	fprintf(stderr, TIMED_TOOL ": %s: %s\n", what, strerror(-err));
	return EXIT_CAPABILITY;
}

/* Whole kilohertz: the same after a restart, as a rule. It need not be good: servers say the rest. */
static uint64_t nominal_hz(const struct counter_check *counter)
{
	uint64_t hz = counter->facts.stated_hz ? counter->facts.stated_hz : (uint64_t)(counter->facts.hz / 1000 + 0.5) * 1000;

	return hz ? hz : 1;
}

/* The counter is not fit: say so to the log, to readers and to whom started this. Returns 0: it is used all the same; or an exit code. */
static int counter_tell(struct timed *timed, enum counter_verdict verdict)
{
	struct timepage_line line = *timepage_last(timed->page);
	bool used = timed->settings.any_counter && (verdict == COUNTER_NOT_INVARIANT || verdict == COUNTER_NOT_TRUSTED);
	struct timepage_status status = { .pid = 0 };

	counter_reason(&timed->counter, verdict, status.text, sizeof(status.text));
	timed_log_counter(&timed->log, status.text, used);
	if (used)
		return 0;
	fprintf(stderr, TIMED_TOOL ": the counter cannot serve: %s\n", status.text);
	line.state = TIMEPAGE_REFUSED;
	line.reason = TIMEPAGE_REASON_COUNTER_REFUSED;
	timepage_publish(timed->page, &line);
	timepage_publish_status(timed->page, &status);
	return EXIT_CAPABILITY;
}

/* Open what it needs. Returns 0 or an exit code. */
static int open_all(struct timed *timed)
{
	const char *page = timed->settings.page[0] ? timed->settings.page : NULL;
	const char *name = page ? page : port_timepage_default_path();
	enum counter_verdict verdict;
	struct port_tai tai;
	int err = port_init();

	if (err)
		return tell("network", err);
	timed->out = timed->settings.log[0] ? fopen(timed->settings.log, "a") : stdout;
	if (!timed->out)
		return tell(timed->settings.log, -errno);
	port_tai_init(&tai, TAI_UTC_DEFAULT_S);
	timed_log_init(&timed->log, timed->out, tai.tai_utc_s);
	if (!timed->settings.tai_utc_s)
		timed->settings.tai_utc_s = tai.kernel_tai_utc_s;
	err = waiter_open(&timed->waiter, true);
	if (err)
		return tell("signals", err);
	verdict = counter_check_begin(&timed->counter);
	timed->local.hz = nominal_hz(&timed->counter);
	timed->local.origin_ticks = port_counter_read();
	timed->local.origin_local_ns = port_clock_now_ns(PORT_CLOCK_REALTIME);
	if (timed->local.origin_local_ns < NS_PER_S)
		timed->local.origin_local_ns = NS_PER_S;
	err = timepage_create(page, port_counter_kind(), timed->local.hz, &timed->page);
	if (err == -EBUSY) {
		fprintf(stderr, TIMED_TOOL ": %s: another time service has it\n", name);
		return EXIT_CAPABILITY;
	}
	if (err)
		return tell(name, err);
	return verdict == COUNTER_FIT ? 0 : counter_tell(timed, verdict);
}

/* Read the keys of servers. Returns 0 or an exit code. */
static int open_keys(struct timed *timed)
{
	char error[SETTINGS_ERROR_BYTES] = "";
	int err = server_keys_open(&timed->settings, error);

	if (!err)
		return 0;
	fprintf(stderr, TIMED_TOOL ": %s\n", error);
	return err == -ENOTSUP || err == -ENOMEM ? EXIT_CAPABILITY : EXIT_BAD_INPUT;
}

/* Open what is fed. Returns 0 or an exit code. */
static int open_feed(struct timed *timed)
{
	const struct settings *settings = &timed->settings;
	enum port_feed_kind kind = settings->feed == FEED_KERNEL ? PORT_FEED_KERNEL : PORT_FEED_CHRONY;
	int64_t interval_ms = settings->check_interval_ms ? settings->check_interval_ms : 1000;
	int err;

	if (settings->feed == FEED_NONE)
		return 0;
	err = port_feed_open(kind, (int)settings->feed_unit, interval_ms * NS_PER_MS, &timed->feed);
	return err ? tell(settings->feed == FEED_KERNEL ? "--feed kernel" : "--feed chrony", err) : 0;
}

static void close_all(struct timed *timed)
{
	port_feed_close(timed->feed);
	server_keys_close(&timed->settings);
	timepage_close(timed->page);
	counter_check_end(&timed->counter);
	waiter_close(&timed->waiter);
	if (timed->out && timed->out != stdout)
		fclose(timed->out);
}

static void run(void *argument)
{
	struct timed *timed = argument;
	struct service *service = &timed->service;
	const char *page = timed->settings.page[0] ? timed->settings.page : port_timepage_default_path();

	service->status.pid = (uint64_t)waiter_own_pid();
	service->status.started_utc_ns = port_clock_now_ns(PORT_CLOCK_REALTIME);
	timed->result = timed_log_ready(&timed->log, "init", &timed->settings, &timed->local, page, &timed->counter);
	if (!timed->result)
		timed->result = service_run(service);
}

/* Why it has ended while it ran. Returns an exit code by which it is started again. */
static int ended(int err)
{
	if (err == -EXDEV) {
		fprintf(stderr, TIMED_TOOL ": the counter's rate has changed, and with it all that was learnt: start it again\n");
		return EXIT_INVALID;
	}
	fprintf(stderr, TIMED_TOOL ": service: %s\n", strerror(-err));
	return EXIT_FAULT;
}

/* In a thread of its own where it is to have a priority. Returns an exit code. */
static int run_all(struct timed *timed)
{
	struct port_thread *thread;
	int err = service_init(&timed->service, &timed->settings, timed->page, &timed->waiter, &timed->log, &timed->local,
			       &timed->counter);

	timed->service.feed = timed->feed;
	if (!err && timed->settings.priority) {
		port_memory_lock(); /* where it is not allowed, pages may be late */
		err = port_thread_start(TIMED_TOOL, (int)timed->settings.priority, PORT_CPU_ANY, run, timed, &thread);
		if (!err) {
			const struct port_scheduling *scheduling = port_thread_scheduling(thread);

			if (scheduling->note[0])
				fprintf(stderr, TIMED_TOOL ": %s\n", scheduling->note);
			port_thread_join(thread);
		}
	} else if (!err) {
		run(timed);
	}
	service_close(&timed->service);
	if (err)
		return tell("service", err);
	return timed->result ? ended(timed->result) : EXIT_DONE;
}

int timed_main(int argc, char **argv)
{
	struct timed *timed = calloc(1, sizeof(*timed));
	int code;

	if (!timed)
		return tell("memory", -ENOMEM);
	timed->settings = settings_default();
	timed->waiter = (struct waiter){ .signals = -1, .sock = -1 };
	code = settings_parse(&timed->settings, argc, argv);
	if (code < 0) {
		code = open_keys(timed);
		if (!code)
			code = open_all(timed);
		if (!code)
			code = open_feed(timed);
		if (!code)
			code = run_all(timed);
		close_all(timed);
	}
	free(timed);
	return code;
}
