/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb card serve, on the bench's host: answers calibrations of every page, and publishes the source's time on each.
 * It sleeps about 1 ms between looks; only while somebody calibrates it looks all the time, and never longer than half
 * of each second, whatever the guests write.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock_verbs.h"
#include "json.h"
#include "options.h"
#include "page.h"
#include "port.h"
#include "port_clock.h"
#include "sampler.h"
#include "summary.h"
#include "ticks.h"
#include "verbs.h"

#define TOOL "bw-clock card serve"
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define PUBLISH_NS (20 * NS_PER_MS)
#define NAP_NS NS_PER_MS
#define SPIN_NS INT64_C(400000)             /* look all the time for so long after a request */
#define SPIN_PER_S_NS (NS_PER_S / 2)        /* and never longer than this in a second */
#define SOURCE_AGE_MAX_NS (200 * NS_PER_MS) /* of a line that is turned into other units */

enum { PAGES_MAX = 64, BURST = 5, UNITS = 2, LOOKS = 32, TAI_UTC_DEFAULT_S = 37 };

struct served {
	char name[CARD_SOURCE_BYTES];
	const char *path;
	struct port_page mapping;
	struct card_page *page;
	uint32_t answered_number;
	enum card_unit unit;
	uint64_t answered, published;
};

struct server {
	struct port_tai tai;
	size_t page_count;
	struct served pages[PAGES_MAX];
	const struct served *source; /* NULL: this machine's TAI */
	uint64_t hz;
	struct sampler samplers[UNITS];
	struct card_line source_line;
	uint64_t source_missing; /* publications without a fresh line of the source */
	uint64_t source_refused; /* of them, lines that cannot be */
	int64_t spin_second_ns, spun_ns;
	int64_t end_ns;
	int cpu;
	struct port_scheduling scheduling;
};

static uint64_t units_now(enum card_unit unit)
{
	return unit == CARD_UNIT_TSC ? port_counter_read() : (uint64_t)port_clock_now_ns(PORT_CLOCK_MONOTONIC);
}

/* Answer what is asked on the pages. Return true when something was. */
static bool answer(struct server *server)
{
	bool found = false;

	for (size_t i = 0; i < server->page_count; i++) {
		struct served *served = &server->pages[i];
		struct card_page *page = served->page;
		uint32_t number = atomic_load_explicit(&page->request.number, memory_order_acquire);
		uint32_t unit;

		if (number == served->answered_number)
			continue;
		unit = atomic_load_explicit(&page->request.unit, memory_order_relaxed);
		if (unit == CARD_UNIT_NS || (unit == CARD_UNIT_TSC && port_counter_kind() == PORT_COUNTER_TSC)) {
			served->unit = (enum card_unit)unit;
			atomic_store_explicit(&page->reply.counter, units_now(served->unit), memory_order_relaxed);
			atomic_store_explicit(&page->reply.number, number, memory_order_release);
			served->answered++;
		}
		served->answered_number = number;
		found = true;
	}
	return found;
}

/* Read the source's clock between two readings of a counter, and feed it to the sampler of that counter's unit. */
static int sample_source(struct server *server, enum card_unit unit)
{
	struct sampler *sampler = &server->samplers[unit - 1];
	const struct card_line *line = &server->source_line;
	int64_t tai_ns, bound_ns = 0;
	int err = 0;

	for (int i = 0; i < BURST && !err; i++) {
		uint64_t before = units_now(unit), after;

		if (server->source)
			err = card_line_at(line, units_now(line->unit), &tai_ns, &bound_ns);
		else
			tai_ns = port_tai_now_ns(&server->tai);
		after = units_now(unit);
		if (!err)
			sampler_take(sampler, before, tai_ns, after, bound_ns);
	}
	return err;
}

/* Take the line that the source publishes on its page, if it is fresh. */
static int take_source_line(struct server *server)
{
	struct card_line line;
	int err = card_latch_read(&server->source->page->guest_line, &line);

	if (!err && line.unit == CARD_UNIT_TSC && port_counter_kind() != PORT_COUNTER_TSC)
		err = -EBADMSG;
	if (!err)
		err = card_line_at(&line, units_now(line.unit), NULL, NULL);
	if (err) {
		server->source_missing++;
		server->source_refused += err == -EBADMSG;
		return err;
	}
	server->source_line = line;
	memcpy(server->source_line.source, server->source->name, sizeof(server->source->name));
	return 0;
}

/* Make the line for pages of one unit. Return 0, or -errno when there is none now. */
static int line_of_unit(struct server *server, enum card_unit unit, struct card_line *line)
{
	int err;

	if (server->source && server->source_line.unit == unit) {
		*line = server->source_line;
		return 0;
	}
	/* An old line would be drawn out twice, here and by its reader. */
	if (server->source && card_line_age_ns(&server->source_line, units_now(server->source_line.unit)) > SOURCE_AGE_MAX_NS)
		return -ETIME;
	err = sample_source(server, unit);
	if (!err)
		err = sampler_line(&server->samplers[unit - 1], line);
	line->unit = unit;
	line->tai_utc_s = server->source ? server->source_line.tai_utc_s : server->tai.tai_utc_s;
	if (server->source)
		line->steps += server->source_line.steps;
	memset(line->source, 0, sizeof(line->source));
	snprintf(line->source, sizeof(line->source), "%s", server->source ? server->source->name : "host");
	return err;
}

static void publish(struct server *server)
{
	struct card_line lines[UNITS];
	bool made[UNITS] = { false };

	if (server->source && take_source_line(server))
		return; /* what was published grows old, and stale after a second */
	for (size_t i = 0; i < server->page_count; i++) {
		struct served *served = &server->pages[i];
		int unit = (int)served->unit - 1;

		if (!made[unit] && line_of_unit(server, served->unit, &lines[unit]))
			continue;
		made[unit] = true;
		lines[unit].published = ++served->published;
		atomic_store_explicit(&served->page->magic, CARD_MAGIC, memory_order_relaxed);
		card_latch_write(&served->page->host_line, &lines[unit]);
	}
}

/* May the server look all the time? Counts what it has used up of this second. */
static bool may_spin(struct server *server, int64_t now_ns, int64_t last_ns)
{
	if (now_ns - server->spin_second_ns >= NS_PER_S) {
		server->spin_second_ns = now_ns;
		server->spun_ns = 0;
	}
	server->spun_ns += now_ns - last_ns;
	return server->spun_ns < SPIN_PER_S_NS;
}

static void serve(void *argument)
{
	struct server *server = argument;
	int64_t end_ns = server->end_ns;
	int64_t next_ns = 0, spin_until_ns = 0, last_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	while (!port_stop_requested()) {
		bool found = false;
		int64_t now_ns;

		for (int look = 0; look < LOOKS; look++)
			found |= answer(server);
		now_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		if (now_ns >= end_ns)
			break;
		if (now_ns >= next_ns) {
			publish(server);
			next_ns = now_ns + PUBLISH_NS;
		}
		if (found)
			spin_until_ns = now_ns + SPIN_NS;
		if (now_ns >= spin_until_ns || !may_spin(server, now_ns, last_ns)) {
			port_sleep_ns(NAP_NS);
			now_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		}
		last_ns = now_ns;
	}
}

/* Read NAME=FILE. Return 0 or -EINVAL with a line on stderr. */
static int parse_page(struct server *server, const char *text)
{
	const char *equals = strchr(text, '=');
	struct served *served = &server->pages[server->page_count];
	size_t length = equals ? (size_t)(equals - text) : 0;

	if (length == 0 || length >= sizeof(served->name) || !equals[1] || strcspn(text, " \t\n\"\\") < length ||
	    strncmp(text, "host=", 5) == 0) {
		fprintf(stderr, TOOL ": --page: \"%s\": NAME=FILE, name of 1..15 characters, not \"host\"\n", text);
		return -EINVAL;
	}
	if (server->page_count == PAGES_MAX) {
		fprintf(stderr, TOOL ": --page: at most %d\n", PAGES_MAX);
		return -EINVAL;
	}
	memcpy(served->name, text, length);
	served->path = equals + 1;
	for (size_t i = 0; i < server->page_count; i++) {
		if (strcmp(server->pages[i].name, served->name) == 0) {
			fprintf(stderr, TOOL ": --page: \"%s\" is given twice\n", served->name);
			return -EINVAL;
		}
	}
	server->page_count++;
	return 0;
}

static int find_source(struct server *server, const char *name)
{
	if (name && strcmp(name, "host") == 0)
		return 0;
	for (size_t i = 0; name && i < server->page_count; i++) {
		if (strcmp(server->pages[i].name, name) == 0) {
			server->source = &server->pages[i];
			return 0;
		}
	}
	fprintf(stderr, TOOL ": --source: \"%s\"; allowed: host, or the name of a page\n", name ? name : "");
	return -EINVAL;
}

/* Map the pages and make them a timecard's. Return 0 or -errno with a line on stderr. */
static int open_pages(struct server *server)
{
	for (size_t i = 0; i < server->page_count; i++) {
		struct served *served = &server->pages[i];
		int err = port_page_map(served->path, CARD_PAGE_BYTES, true, &served->mapping);

		if (!err)
			err = port_page_lock(&served->mapping, CARD_LOCK_SERVE, 0);
		if (err) {
			fprintf(stderr, TOOL ": %s: %s\n", served->path,
				err == -EBUSY   ? "another server has it" :
				err == -ENOTSUP ? "this system has no shared pages" :
						  strerror(-err));
			return err;
		}
		served->page = served->mapping.address;
		served->unit = port_counter_kind() == PORT_COUNTER_TSC ? CARD_UNIT_TSC : CARD_UNIT_NS;
		/* A request of before is not answered: who made it asks again. */
		served->answered_number = atomic_load(&served->page->request.number);
		memset(&served->page->host_line, 0, sizeof(served->page->host_line));
		atomic_store(&served->page->magic, CARD_MAGIC);
	}
	return 0;
}

/* Serve in a thread of ordinary priority, on the CPU that was asked for. Return 0 or -errno. */
static int serve_in_thread(struct server *server)
{
	struct port_thread *thread;
	int err = port_thread_start("card", 0, server->cpu, serve, server, &thread);

	if (err) {
		fprintf(stderr, TOOL ": %s\n", strerror(-err));
		return err;
	}
	server->scheduling = *port_thread_scheduling(thread);
	port_thread_join(thread);
	return 0;
}

static void print_ready(struct json *json, const struct server *server)
{
	char clocksource[32];

	port_clocksource(clocksource, sizeof(clocksource));
	json_object_open(json, NULL);
	json_string(json, "type", "ready");
	json_string(json, "tool", TOOL);
	json_int(json, "pages", (int64_t)server->page_count);
	json_string(json, "source", server->source ? server->source->name : "host");
	json_string(json, "clocksource", clocksource);
	json_uint(json, "counter_hz", server->hz);
	json_int(json, "tai_utc_s", server->tai.tai_utc_s);
	json_object_close(json);
	json_line_end(json);
}

static int print_result(struct json *json, const struct server *server, bool complete)
{
	json_object_open(json, NULL);
	json_string(json, "type", "result");
	json_string(json, "tool", TOOL);
	json_string(json, "version", BW_VERSION);
	json_bool(json, "complete", complete);
	json_array_open(json, "pages");
	for (size_t i = 0; i < server->page_count; i++) {
		json_object_open(json, NULL);
		json_string(json, "name", server->pages[i].name);
		json_uint(json, "answered", server->pages[i].answered);
		json_uint(json, "published", server->pages[i].published);
		json_object_close(json);
	}
	json_array_close(json);
	json_uint(json, "source_missing", server->source_missing);
	json_uint(json, "source_refused", server->source_refused);
	json_uint(json, "source_steps", server->source ? server->source_line.steps : server->samplers[0].steps + server->samplers[1].steps);
	summary_scheduling(json, &server->scheduling);
	json_object_close(json);
	return json_line_end(json);
}

static int run(struct server *server, int64_t duration_ms)
{
	struct json json;
	int err = open_pages(server);

	server->hz = ticks_hz();
	if (!err && sampler_init(&server->samplers[CARD_UNIT_TSC - 1], server->hz ? 1e9 / (double)server->hz : 1))
		err = -ENOMEM;
	if (!err && sampler_init(&server->samplers[CARD_UNIT_NS - 1], 1))
		err = -ENOMEM;
	if (!err) {
		bool bounded = duration_ms > 0;

		json_init(&json, stdout);
		print_ready(&json, server);
		server->end_ns = bounded ? port_clock_now_ns(PORT_CLOCK_MONOTONIC) + duration_ms * NS_PER_MS : INT64_MAX;
		err = serve_in_thread(server);
		bounded = bounded && port_stop_requested();
		if (!err)
			err = print_result(&json, server, !bounded);
		if (!err && bounded)
			return EXIT_INVALID;
	}
	return err ? EXIT_CAPABILITY : EXIT_DONE;
}

int card_serve(int argc, char **argv)
{
	struct server *server = calloc(1, sizeof(*server));
	const char *source = NULL;
	const char *pages[PAGES_MAX] = { NULL };
	struct option_texts page_texts = { .texts = pages, .room = PAGES_MAX };
	int64_t duration_ms = 0, tai_utc_s = TAI_UTC_DEFAULT_S, cpu = PORT_CPU_ANY;
	const struct option options[] = {
		{ .name = "page", .kind = OPTION_TEXTS, .target = &page_texts, .argument = "NAME=FILE",
		  .help = "a guest and the file behind its page; may be given 64 times" },
		{ .name = "source", .kind = OPTION_TEXT, .target = &source, .argument = "host|NAME",
		  .help = "whose time: this machine's TAI, or what guest NAME publishes" },
		{ .name = "duration-ms", .kind = OPTION_INT, .target = &duration_ms, .min = 0, .max = INT64_C(604800000),
		  .argument = "N", .help = "how long (default 0: until SIGTERM)" },
		{ .name = "cpu", .kind = OPTION_INT, .target = &cpu, .min = 0, .max = 1023, .argument = "N",
		  .help = "CPU to serve on, not that of a guest (default: any)" },
		{ .name = "tai-utc-s", .kind = OPTION_INT, .target = &tai_utc_s, .min = 0, .max = 1000,
		  .argument = "N", .help = "TAI - UTC where the kernel does not know it (default 37)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--page NAME=FILE [--page ...] --source host|NAME [--duration-ms N]",
		.about = "On the host: answer calibrations of the guests' counters, and publish every 20 ms the line\n"
			 "\"host counter -> time of the source\" on every page. Files are made where there are none.\n",
		.options = options,
	};
	int parsed, code = EXIT_BAD_INPUT;
	bool good;

	if (!server) {
		fputs(TOOL ": out of memory\n", stderr);
		return EXIT_CAPABILITY;
	}
	parsed = options_parse(&command, argc, argv, NULL);
	if (parsed < 0) {
		free(server);
		return options_exit_code(parsed);
	}
	good = page_texts.count > 0;
	if (!good)
		fputs(TOOL ": --page is missing (see --help)\n", stderr);
	for (int i = 0; i < page_texts.count && good; i++)
		good = parse_page(server, pages[i]) == 0;
	if (good && find_source(server, source) == 0) {
		server->cpu = (int)cpu;
		port_tai_init(&server->tai, (int)tai_utc_s);
		port_stop_install();
		code = run(server, duration_ms);
	}
	for (size_t i = 0; i < server->page_count; i++)
		port_page_unmap(&server->pages[i].mapping);
	for (int i = 0; i < UNITS; i++)
		sampler_release(&server->samplers[i]);
	free(server);
	return code;
}
