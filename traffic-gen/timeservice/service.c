/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/service.h"

#include <errno.h>
#include <string.h>

#include "base/time_units.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "timeservice/feed.h"
#include "timeservice/service_page.h"

#define REST_LONGEST_NS (INT64_C(1024) * NS_PER_S) /* of a server that complains: the longest interval of NTP's clients, as a rule */
#define LONG_NS (INT64_C(1000000000) * NS_PER_MS)
#define LEAP_NEWS_NS (INT64_C(2000) * NS_PER_MS) /* so long after a leap second it is why servers contradict themselves */
#define LEAP_PACE_NS (INT64_C(100) * NS_PER_MS)
#define STATUS_NS (INT64_C(1000) * NS_PER_MS)

enum {
	LOSSES_MAX = 2,    /* in a row end a batch */
	SLOWED_MAX = 5,
	REFUSALS_TOLD = 16 /* in the log, of a batch or check; who floods this machine does not fill its disk as well */
};

const char *service_state_word(const struct service *service)
{
	switch (service->state) {
	case TIMEPAGE_SYNCHRONISED:
		return "locked";
	case TIMEPAGE_HOLDOVER:
		return "hold";
	case TIMEPAGE_STARTING:
	case TIMEPAGE_NONE:
		return "init";
	default:
		return "unsynchronised";
	}
}

static int on_refusal(void *sink, const struct server *server, unsigned int reject)
{
	struct service *service = sink;

	if (service->refusals_told == REFUSALS_TOLD) {
		service->refusals_untold++;
		return 0;
	}
	service->refusals_told++;
	return timed_log_rejected(service->log, service_state_word(service), server, reject);
}

int service_init(struct service *service, const struct settings *settings, struct timepage *page, struct waiter *waiter,
		 struct timed_log *log, const struct local_time *local, struct counter_check *counter)
{
	int err = 0;

	memset(service, 0, sizeof(*service));
	service->settings = settings;
	service->page = page;
	service->log = log;
	service->counter = counter;
	service->context = (struct server_context){
		.waiter = waiter,
		.local = *local,
		.timeout_ns = settings->timeout_ms * NS_PER_MS,
		.refusal = on_refusal,
		.sink = service,
	};
	service->before = *timepage_last(page);
	for (int i = 0; i < settings->server_count && !err; i++)
		err = server_init(&service->servers[i], &settings->servers[i], &settings->estimate);
	return err;
}

void service_close(struct service *service)
{
	for (int i = 0; i < service->settings->server_count; i++)
		if (service->servers[i].estimate)
			server_close(&service->servers[i]);
}

/* Tell how many refusals were not told one by one, and begin anew. Returns 0 or -EIO. */
static int refusals_tell(struct service *service)
{
	int64_t untold = service->refusals_untold;

	service->refusals_told = service->refusals_untold = 0;
	return untold ? timed_log_more_rejected(service->log, service_state_word(service), untold) : 0;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- pace -------------------------------------------------------------------------------------------------------- */

/* So many batches come soon. From then on each waits for twice as long as the one before, up to the interval: a rate learnt in a few
 * seconds does not last for many. */
static void burst(struct service *service, int64_t batches)
{
	int64_t leap_ago_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) - service->leap_over_monotonic_ns;

	service->quick_left = batches;
	service->pace_ns = service->settings->quick_interval_ms * NS_PER_MS;
	/* A leap second was announced: that the server's clock has gone on by it needs no long look. */
	if (service->leap_over_monotonic_ns && leap_ago_ns >= 0 && leap_ago_ns < LEAP_NEWS_NS)
		service->pace_ns = smaller(service->pace_ns, LEAP_PACE_NS);
}

/* The time from this batch to the next one. */
static int64_t pace_next(struct service *service)
{
	if (service->quick_left > 0)
		service->quick_left--;
	else
		service->pace_ns *= 2;
	service->pace_ns = smaller(service->pace_ns, service->settings->interval_ms * NS_PER_MS);
	return service->pace_ns;
}

/* One that denies is not asked; one that has complained of the rate is not until it has rested. */
static bool may_ask(const struct server *server)
{
	return !server->denied && port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= server->rests_until_monotonic_ns;
}

/*
 * Each complaint of the rate (RFC 5905, section 7.4) makes that server's interval twice as long, and its batches half as long; each batch
 * that is answered without one takes that back once. The others are asked as ever.
 */
static void heed_complaint(const struct service *service, struct server *server, bool answered)
{
	int64_t pace_ns = service->pace_ns, longest_ns = pace_ns > REST_LONGEST_NS ? pace_ns : REST_LONGEST_NS;

	if (server->complained && server->slowed < SLOWED_MAX)
		server->slowed++;
	else if (!server->complained && answered && server->slowed > 0)
		server->slowed--;
	server->complained = false;
	if (server->slowed)
		server->rests_until_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + smaller(pace_ns << server->slowed, longest_ns);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* What comes from outside. Returns 0 or -errno. */
static int event_take(struct service *service, int event)
{
	bool was_held = service->held;

	if (event == WAIT_END) {
		service->ended = true;
		return 0;
	}
	service->held = event == WAIT_HOLD;
	service_publish_status(service);
	if (was_held && !service->held) {
		service->next_batch_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		burst(service, service->settings->confirm_batches);
	}
	if (service->held && (service->state == TIMEPAGE_SYNCHRONISED || service->state == TIMEPAGE_HOLDOVER))
		return service_publish_again(service, TIMEPAGE_HOLDOVER, TIMEPAGE_REASON_HELD);
	return timed_log_state(service->log, service_state_word(service), service->state, service->reason);
}

/* Wait, but for signals. Returns 0 or -errno. */
static int wait_until(struct service *service, int64_t deadline_monotonic_ns)
{
	int event = waiter_wait_socket(service->context.waiter, deadline_monotonic_ns, PORT_SOCKET_NONE);

	return event < 0 ? event : event == WAIT_TIME ? 0 : event_take(service, event);
}

static bool goes_on(const struct service *service)
{
	return !service->ended && !service->held;
}

/* ---- about once a second ----------------------------------------------------------------------------------------- */

/*
 * Look whether the counter has gone on as it should. If it has not, what was learnt is worth nothing: there is no time until servers
 * say it anew. One that runs at another rate is for a new start of this program. Returns 0; 1: the time was withdrawn; or -errno.
 */
static int counter_run(struct service *service)
{
	enum counter_verdict verdict = counter_check_watch(service->counter);
	int err;

	if (verdict == COUNTER_FIT)
		return 0;
	counter_reason(service->counter, verdict, service->status.text, sizeof(service->status.text));
	for (int i = 0; i < service->settings->server_count; i++) {
		estimate_restart(service->servers[i].estimate);
		ntp_exchange_restart(&service->servers[i].exchange);
	}
	service->next_batch_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	burst(service, service->settings->quick_batches);
	err = timed_log_counter(service->log, service->status.text, true);
	if (!err)
		err = service_withdraw(service, TIMEPAGE_UNSYNCHRONISED, TIMEPAGE_REASON_COUNTER_JUMPED);
	return err ? err : verdict == COUNTER_RATE_CHANGED ? -EXDEV : 1;
}

/* The page is what readers find: one that somebody has taken away is made anew. Returns 0 or -errno. */
static int page_run(struct service *service)
{
	int kept = timepage_keep(service->page), told = service->page_err;

	service->page_err = kept < 0 ? kept : 0;
	if (kept == -EBUSY || kept == 0 || kept == told)
		return kept == -EBUSY ? kept : 0;
	return timed_log_page(service->log, service_state_word(service), kept < 0 ? strerror(-kept) : "made anew");
}

/* What has to be seen to however long batches last: the counter, a slew that is over, who is fed. Returns as counter_run. */
static int watch_run(struct service *service, int64_t now_monotonic_ns)
{
	int64_t check_ns = service->settings->check_interval_ms * NS_PER_MS;
	int withdrawn = counter_run(service), err = withdrawn < 0 ? withdrawn : 0;

	service->next_watch_monotonic_ns = now_monotonic_ns + (check_ns ? check_ns : STATUS_NS);
	if (!err && service_settled(service))
		err = service_publish_again(service, service->state, service->reason);
	if (!err)
		err = feed_run(service->feed, &service->before);
	if (!err)
		err = page_run(service);
	service_publish_status(service);
	return err ? err : withdrawn;
}

/* Likewise, where it is time for that. */
static int watch_when_due(struct service *service)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	return now_monotonic_ns < service->next_watch_monotonic_ns ? 0 : watch_run(service, now_monotonic_ns);
}

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

/* Ask a server once. Returns 1: it answered; 0: it did not; or -errno. */
static int ask(struct service *service, struct server *server)
{
	struct exchange_sample sample;
	uint64_t received = server->received;
	int event = WAIT_TIME;
	int result = server_ask(server, &service->context, &sample, &event);

	if (result < 0)
		return result;
	if (result == SERVER_EVENT) {
		result = event_take(service, event);
		return result;
	}
	if (result == SERVER_SAMPLE && service->settings->log_exchanges) {
		int err = timed_log_sample(service->log, (int)(server - service->servers), service->batches_begun, &sample);

		if (err)
			return err;
	}
	if (result == SERVER_SAMPLE && estimate_add(server->estimate, &sample)) {
		ntp_exchange_count(&server->exchange, EXCHANGE_MIN_DELAY);
		result = on_refusal(service, server, EXCHANGE_MIN_DELAY);
		if (result < 0)
			return result;
	}
	return server->received > received;
}

/* End a server's batch: what it says against what it said before. Returns 0 or -errno. */
static int batch_end(struct service *service, struct server *server)
{
	int64_t step_ns = 0;
	enum estimate_outcome outcome = estimate_end_batch(server->estimate, &step_ns);

	if (outcome == ESTIMATE_CONTRADICTION) {
		int err = timed_log_contradiction(service->log, service_state_word(service), server, step_ns);

		server->contradicted = true;
		burst(service, service->settings->quick_batches);
		return err;
	}
	if ((int64_t)estimate_batches(server->estimate) >= service->settings->confirm_batches)
		server->contradicted = false;
	return 0;
}

/* Returns 0; 1: the time was withdrawn meanwhile, and what was asked counts for nothing; or -errno. */
static int batch_of(struct service *service, struct server *server)
{
	int64_t count = service->settings->batch >> server->slowed;
	int losses = 0, answers = 0, err = 0;

	if (!may_ask(server))
		return 0;
	count = count > 0 ? count : 1;
	service->batches_begun++;
	server_open_socket(server); /* where it fails, asking says so */
	for (int64_t i = 0; i < count && losses < LOSSES_MAX && !err && goes_on(service) && !server->denied && !server->complained; i++) {
		int answered = ask(service, server);

		if (answered < 0)
			return answered;
		answers += answered;
		losses = answered ? 0 : losses + 1;
		err = watch_when_due(service);
		if (!err && service->settings->gap_us && i + 1 < count)
			err = wait_until(service, port_clock_now_ns(PORT_CLOCK_MONOTONIC) + service->settings->gap_us * NS_PER_US);
	}
	server->reach = (server->reach << 1 | (answers > 0)) & 0xff;
	heed_complaint(service, server, answers > 0);
	return err ? err : batch_end(service, server);
}

/* One batch of each server, and what follows from them. Returns 0 or -errno. */
static int batch_run(struct service *service)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), interval_ns;
	int err;

	for (int i = 0; i < service->settings->server_count && goes_on(service); i++) {
		err = batch_of(service, &service->servers[i]);
		if (err)
			return err < 0 ? err : 0; /* another batch is due */
	}
	interval_ns = pace_next(service);
	service->next_batch_monotonic_ns += interval_ns;
	if (service->next_batch_monotonic_ns < now_monotonic_ns)
		service->next_batch_monotonic_ns = now_monotonic_ns + interval_ns;
	if (!goes_on(service))
		return 0;
	service->status.batches++;
	err = counter_run(service);
	if (!err)
		err = service_publish(service, true);
	service_publish_status(service);
	return err < 0 ? err : refusals_tell(service);
}

/* ---- between batches --------------------------------------------------------------------------------------------- */

/* Is what a server said just now outside its own interval? If not, the interval is cut with it. */
static bool surprises(const struct server *server)
{
	int64_t local_ns, low_ns, high_ns;

	return ntp_exchange_rough(&server->exchange, &local_ns, &low_ns, &high_ns) &&
	       !estimate_check(server->estimate, local_ns, low_ns, high_ns, server_root_distance_ns(server));
}

/*
 * One exchange with one server, which carries the interval but no likely line: that the counter stopped or drifts is noticed.
 * Returns 0 or -errno.
 */
static int check_run(struct service *service)
{
	struct server *server = NULL;
	struct exchange_sample sample;
	struct exchange_stamps stamps;
	uint64_t received;
	int event, result;

	for (int i = 0; i < service->settings->server_count && !server; i++) {
		struct server *next = &service->servers[service->next_check_server++ % service->settings->server_count];

		if (next->reach && !next->slowed && may_ask(next) && next->sock != PORT_SOCKET_NONE)
			server = next;
	}
	if (!server)
		return 0;
	received = server->received;
	result = server_ask(server, &service->context, &sample, &event);
	if (result < 0)
		return result;
	if (result == SERVER_EVENT)
		return event_take(service, event);
	heed_complaint(service, server, true);
	if (server->received == received)
		return 0;
	if (service->settings->log_exchanges) {
		stamps = ntp_exchange_rough_stamps(&server->exchange);
		result = timed_log_check(service->log, (int)(server - service->servers), &stamps,
					 ntp_to_utc_ns(server->exchange.server_receive), server_root_distance_ns(server));
		if (result)
			return result;
	}
	if (surprises(server)) {
		/* Another batch of all of them says whose fault it is. */
		service->next_batch_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		burst(service, service->settings->quick_batches);
		return 0;
	}
	return service->line.valid && (service->state == TIMEPAGE_SYNCHRONISED || service->reason == TIMEPAGE_REASON_LEAP) ?
		       service_publish(service, false) :
		       0;
}

static int between_run(struct service *service, int64_t now_monotonic_ns)
{
	int result = watch_run(service, now_monotonic_ns);

	service->next_check_monotonic_ns = service->next_watch_monotonic_ns;
	if (service->leap_over_monotonic_ns > now_monotonic_ns) /* readers have no time until servers have said whether one came */
		service->next_check_monotonic_ns = smaller(service->next_check_monotonic_ns, service->leap_over_monotonic_ns);
	if (!result && service->settings->check_interval_ms && !service->held)
		result = check_run(service);
	service_publish_status(service);
	return result < 0 ? result : refusals_tell(service);
}

int service_run(struct service *service)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), batches_max = service->settings->batches_max;
	int err = service_publish(service, false);

	service->next_batch_monotonic_ns = now_monotonic_ns;
	service->next_check_monotonic_ns = service->next_watch_monotonic_ns = now_monotonic_ns + STATUS_NS;
	burst(service, service->settings->quick_batches);
	service_publish_status(service);
	while (!err && !service->ended && (!batches_max || (int64_t)service->status.batches < batches_max)) {
		int64_t next_batch_monotonic_ns = service->held ? now_monotonic_ns + LONG_NS : service->next_batch_monotonic_ns;
		bool batch_due, check_due;

		err = wait_until(service, smaller(next_batch_monotonic_ns, service->next_check_monotonic_ns));
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		if (err || service->ended)
			break;
		batch_due = !service->held && now_monotonic_ns >= service->next_batch_monotonic_ns;
		check_due = now_monotonic_ns >= service->next_check_monotonic_ns;
		/* What has been due for longer: each gets its turn, however long the other takes. */
		if (check_due && (!batch_due || service->next_check_monotonic_ns <= service->next_batch_monotonic_ns))
			err = between_run(service, now_monotonic_ns);
		else if (batch_due)
			err = batch_run(service);
	}
	if (!err)
		err = service_publish_again(service, TIMEPAGE_ENDED, TIMEPAGE_REASON_ENDED);
	service_publish_status(service);
	return err;
}
