/* SPDX-License-Identifier: Apache-2.0 */
/** The service's pace, on a clock that the test sets: what has to happen about once a second does, whatever servers do. */
#include <string.h>

#include "../check.h"
#include "base/time_units.h"
#include "port/port_clock.h"
#include "timeservice/feed.h"
#include "timeservice/publish.h"
#include "timeservice/service.h"
#include "timeservice/service_page.h"

#define BEGIN_MONOTONIC_NS (INT64_C(1000) * NS_PER_S)
#define RUN_NS (INT64_C(100) * NS_PER_S)
#define NEVER_NS INT64_MAX

static int64_t now_monotonic_ns, disrupted_monotonic_ns;
static int watches, pages, feeds, checks, batches, withdrawals, ended;
static int64_t watched_monotonic_ns, fed_monotonic_ns, watch_apart_ns, feed_apart_ns;
static int published_disrupted; /* batches that were published though the counter had been disrupted since the last watch */
enum { SERVERS = 16 };
static int asked[SERVERS], asked_late[SERVERS]; /* each server; in the second half of the run */
static int64_t complaint_monotonic_ns; /* from then on the first server says RATE, so often: */
static int complaints;
static bool answers, slow; /* servers that are asked; each answer takes as long as one that does not come */
static struct timepage_line page_line;
static int64_t leap_monotonic_ns = NEVER_NS, asked_behind_leap_ns; /* how long after it a server was asked first */

static void note(int64_t *last_monotonic_ns, int64_t *apart_ns)
{
	int64_t ns = now_monotonic_ns - *last_monotonic_ns;

	*apart_ns = ns > *apart_ns ? ns : *apart_ns;
	*last_monotonic_ns = now_monotonic_ns;
}

/* ---- what the service calls -------------------------------------------------------------------------------------- */

int64_t port_clock_now_ns(enum port_clock clock)
{
	(void)clock;
	return now_monotonic_ns;
}

int waiter_wait_socket(struct waiter *waiter, int64_t deadline_monotonic_ns, intptr_t sock)
{
	(void)waiter;
	CHECK_INT(sock, PORT_SOCKET_NONE);
	if (now_monotonic_ns - BEGIN_MONOTONIC_NS >= RUN_NS)
		return WAIT_END;
	if (deadline_monotonic_ns > now_monotonic_ns)
		now_monotonic_ns = deadline_monotonic_ns;
	return WAIT_TIME;
}

int server_init(struct server *server, const struct server_settings *settings, const struct estimate_settings *estimate)
{
	memset(server, 0, sizeof(*server));
	server->settings = *settings;
	server->estimate = estimate_create(estimate);
	return 0;
}

void server_close(struct server *server)
{
	estimate_destroy(server->estimate);
}

int server_open_socket(struct server *server)
{
	server->sock = PORT_SOCKET_NONE + 1;
	return 0;
}

int64_t server_root_distance_ns(const struct server *server)
{
	(void)server;
	return 0;
}

int server_ask(struct server *server, const struct server_context *context, struct exchange_sample *sample, int *event)
{
	(void)sample;
	(void)event;
	asked[server->settings.address.port]++;
	asked_late[server->settings.address.port] +=
		now_monotonic_ns - BEGIN_MONOTONIC_NS >= RUN_NS / 2 && now_monotonic_ns - BEGIN_MONOTONIC_NS < RUN_NS;
	server->sent++;
	if (now_monotonic_ns >= leap_monotonic_ns && asked_behind_leap_ns == NEVER_NS)
		asked_behind_leap_ns = now_monotonic_ns - leap_monotonic_ns;
	if (server->settings.address.port == 0 && complaints && now_monotonic_ns >= complaint_monotonic_ns) {
		complaints--;
		server->complained = true;
		now_monotonic_ns += NS_PER_MS;
		return SERVER_NOTHING;
	}
	server->received += answers;
	now_monotonic_ns += answers && !slow ? NS_PER_MS : context->timeout_ns;
	return SERVER_NOTHING;
}

enum counter_verdict counter_check_watch(struct counter_check *check)
{
	(void)check;
	watches++;
	note(&watched_monotonic_ns, &watch_apart_ns);
	if (now_monotonic_ns < disrupted_monotonic_ns)
		return COUNTER_FIT;
	disrupted_monotonic_ns = NEVER_NS;
	return COUNTER_DISRUPTED;
}

void counter_reason(const struct counter_check *check, enum counter_verdict verdict, char *reason, size_t size_bytes)
{
	(void)check;
	(void)verdict;
	snprintf(reason, size_bytes, "disrupted");
}

int feed_run(struct port_feed *feed, const struct timepage_line *line)
{
	(void)feed;
	(void)line;
	feeds++;
	note(&fed_monotonic_ns, &feed_apart_ns);
	return 0;
}

int timepage_keep(struct timepage *page)
{
	(void)page;
	pages++;
	return 0;
}

const struct timepage_line *timepage_last(const struct timepage *page)
{
	(void)page;
	return &page_line;
}

int service_publish(struct service *service, bool told)
{
	service->leap_over_monotonic_ns = leap_monotonic_ns == NEVER_NS ? 0 : leap_monotonic_ns;
	batches += told;
	published_disrupted += told && now_monotonic_ns >= disrupted_monotonic_ns;
	return 0;
}

int service_publish_again(struct service *service, uint32_t state, uint32_t reason)
{
	(void)service;
	(void)reason;
	ended += state == TIMEPAGE_ENDED;
	return 0;
}

int service_withdraw(struct service *service, uint32_t state, uint32_t reason)
{
	(void)service;
	CHECK_INT(state, TIMEPAGE_UNSYNCHRONISED);
	CHECK_INT(reason, TIMEPAGE_REASON_COUNTER_JUMPED);
	withdrawals++;
	return 0;
}

bool service_settled(const struct service *service)
{
	(void)service;
	return false;
}

void service_publish_status(struct service *service)
{
	(void)service;
}

int timed_log_sample(struct timed_log *log, int server, uint64_t batch, const struct exchange_sample *sample)
{
	(void)log;
	(void)server;
	(void)batch;
	(void)sample;
	return 0;
}

int timed_log_check(struct timed_log *log, int server, const struct exchange_stamps *stamps, int64_t t2_utc_ns,
		    int64_t root_distance_ns)
{
	(void)log;
	(void)server;
	(void)stamps;
	(void)root_distance_ns;
	(void)t2_utc_ns;
	checks++;
	return 0;
}

int timed_log_rejected(struct timed_log *log, const char *state, const struct server *server, unsigned int reject)
{
	(void)log;
	(void)state;
	(void)server;
	(void)reject;
	return 0;
}

int timed_log_more_rejected(struct timed_log *log, const char *state, int64_t count)
{
	(void)log;
	(void)state;
	(void)count;
	return 0;
}

int timed_log_page(struct timed_log *log, const char *state, const char *what)
{
	(void)log;
	(void)state;
	(void)what;
	return 0;
}

int timed_log_state(struct timed_log *log, const char *state, uint32_t page_state, uint32_t reason)
{
	(void)log;
	(void)state;
	(void)page_state;
	(void)reason;
	return 0;
}

int timed_log_contradiction(struct timed_log *log, const char *state, const struct server *server, int64_t step_ns)
{
	(void)log;
	(void)state;
	(void)server;
	(void)step_ns;
	return 0;
}

int timed_log_counter(struct timed_log *log, const char *reason, bool used)
{
	(void)log;
	(void)reason;
	(void)used;
	return 0;
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

/* Run the service for RUN_NS. */
static void run(const struct settings *settings)
{
	struct timed_log log = { .tai_utc_s = 37 };
	struct local_time local = { 0, UINT64_C(1795284915000000000), 1000000000 };
	struct counter_check counter;
	struct waiter waiter;
	static struct service service;

	memset(&counter, 0, sizeof(counter));
	now_monotonic_ns = watched_monotonic_ns = fed_monotonic_ns = BEGIN_MONOTONIC_NS;
	watches = pages = feeds = checks = batches = withdrawals = ended = published_disrupted = 0;
	watch_apart_ns = feed_apart_ns = 0;
	memset(asked, 0, sizeof(asked));
	memset(asked_late, 0, sizeof(asked_late));
	CHECK_INT(service_init(&service, settings, NULL, &waiter, &log, &local, &counter), 0);
	CHECK_INT(service_run(&service), 0);
	CHECK_INT(ended, 1);
	service_close(&service);
}

static struct settings with_servers(int count)
{
	struct settings settings = settings_default();

	settings.server_count = count;
	for (int i = 0; i < count; i++)
		settings.servers[i].address.port = (uint16_t)i;
	return settings;
}

static void test_at_ease(void)
{
	struct settings settings = with_servers(1);

	answers = true;
	slow = false;
	disrupted_monotonic_ns = NEVER_NS;
	run(&settings);
	CHECK_THAT(batches >= 10 && batches <= 20, "%d batches", batches);
	CHECK_THAT(feeds >= 95 && feeds <= 102, "fed %d times", feeds);
	CHECK_INT(pages, feeds);
	CHECK_THAT(watch_apart_ns <= 1100 * NS_PER_MS, "%" PRId64 " ns between looks at the counter", watch_apart_ns);
}

/* Right behind an announced leap second a server is asked: readers have no time until then. */
static void test_leap_second(void)
{
	struct settings settings = with_servers(1);

	answers = true;
	slow = false;
	disrupted_monotonic_ns = NEVER_NS;
	leap_monotonic_ns = BEGIN_MONOTONIC_NS + 20 * NS_PER_S + 400 * NS_PER_MS;
	asked_behind_leap_ns = NEVER_NS;
	run(&settings);
	CHECK_THAT(asked_behind_leap_ns < 3 * NS_PER_MS, "asked %" PRId64 " ns after a leap second", asked_behind_leap_ns);
	CHECK_THAT(batches >= 10 && batches <= 20, "%d batches", batches);
	leap_monotonic_ns = NEVER_NS;
}

/* Batches that take as long as their interval leave time for the rest, and the rest for them. */
static void test_batches_without_a_gap(int servers, bool answer)
{
	struct settings settings = with_servers(servers);
	int64_t apart_most_ns = NS_PER_S + settings.timeout_ms * NS_PER_MS + settings.gap_us * NS_PER_US;

	settings.interval_ms = 1000;
	settings.log_exchanges = true;
	answers = answer;
	slow = true;
	disrupted_monotonic_ns = NEVER_NS;
	run(&settings);
	CHECK_THAT(batches >= RUN_NS / NS_PER_S / servers / 20, "%d servers: %d batches", servers, batches);
	CHECK_THAT(!answer || checks >= batches - 1, "%d servers: %d checks, %d batches", servers, checks, batches);
	/* A check of a server that answers late comes on top. */
	apart_most_ns += settings.timeout_ms * NS_PER_MS;
	CHECK_THAT(watch_apart_ns <= apart_most_ns, "%d servers: %" PRId64 " ns between looks at the counter", servers, watch_apart_ns);
	CHECK_THAT(feed_apart_ns <= apart_most_ns, "%d servers: %" PRId64 " ns between feeds", servers, feed_apart_ns);
}

/* A disruption withdraws the time before anything else is published from before and after it. */
static void test_disruption(int64_t after_ns, bool answer)
{
	struct settings settings = with_servers(2);

	settings.interval_ms = 1000;
	answers = answer;
	slow = true;
	disrupted_monotonic_ns = BEGIN_MONOTONIC_NS + after_ns;
	run(&settings);
	CHECK_INT(withdrawals, 1);
	CHECK_THAT(published_disrupted == 0, "after %" PRId64 " ns: a batch over a disruption was published", after_ns);
	CHECK(batches > 0);
}

/* Who complains of the rate is asked less, alone and for a while. Batches of 16 every second, and no checks: what is asked is theirs. */
static void test_complaints(void)
{
	struct settings settings = with_servers(2);
	int late;

	settings.interval_ms = 1000;
	settings.check_interval_ms = 0;
	answers = true;
	slow = false;
	disrupted_monotonic_ns = NEVER_NS;
	complaints = 0;
	run(&settings);
	late = asked_late[1];
	CHECK_THAT(late >= 45 * settings.batch && asked_late[0] == late, "asked %d and %d times", asked_late[0], late);

	complaint_monotonic_ns = BEGIN_MONOTONIC_NS + 20 * NS_PER_S;
	complaints = 1;
	run(&settings);
	CHECK_INT(complaints, 0);
	CHECK_INT(asked_late[1], late);
	CHECK_INT(asked_late[0], late);
	CHECK_THAT(asked[0] < asked[1] - settings.batch && asked[0] > asked[1] - 4 * settings.batch, "asked %d times, the other %d", asked[0],
		   asked[1]);

	complaints = 5;
	run(&settings);
	CHECK_INT(complaints, 0);
	CHECK_INT(asked_late[1], late);

	complaints = INT32_MAX;
	run(&settings);
	CHECK_INT(asked_late[1], late);
	CHECK_THAT(asked_late[0] >= 1 && asked_late[0] <= 3, "asked %d times though it always complains", asked_late[0]);
	complaints = 0;
}

int main(void)
{
	test_at_ease();
	test_leap_second();
	test_complaints();
	for (int servers = 1; servers <= 16; servers++) {
		test_batches_without_a_gap(servers, false);
		test_batches_without_a_gap(servers, true);
	}
	for (int64_t after_ns = 10 * NS_PER_S; after_ns < 20 * NS_PER_S; after_ns += 97 * NS_PER_MS) {
		test_disruption(after_ns, false);
		test_disruption(after_ns, true);
	}
	return check_result();
}
