/* SPDX-License-Identifier: Apache-2.0 */
/* The verb card serve, on the bench's host: its command line, its pages and its answers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/json.h"
#include "base/time_units.h"
#include "clock/card/page_argument.h"
#include "clock/card/server.h"
#include "clock/card/ticks.h"
#include "clock/clock_verbs.h"
#include "config/options.h"

#define TOOL "bw-clock card serve"

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
		int err = page_serve(TOOL, served->path, CARD_PAGE_BYTES, CARD_LOCK_SERVE, &served->mapping);

		if (err)
			return err;
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
	int err = port_thread_start("card", 0, server->cpu, server_run, server, &thread);

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
	answer_begin(json, "ready", TOOL);
	json_int(json, "pages", (int64_t)server->page_count);
	json_string(json, "source", server->source ? server->source->name : "host");
	json_string(json, "clocksource", clocksource);
	json_uint(json, "counter_hz", server->hz);
	json_int(json, "tai_utc_s", server->tai.tai_utc_s);
	answer_end(json);
}

static int print_result(struct json *json, const struct server *server, bool complete)
{
	answer_result(json, TOOL);
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
	json_uint(json, "moves", server->spin.moves);
	json_uint(json, "source_missing", server->source_missing);
	json_uint(json, "source_refused", server->source_refused);
	json_uint(json, "source_steps", server->source ? server->source_line.steps : server->samplers[0].steps + server->samplers[1].steps);
	summary_scheduling(json, &server->scheduling);
	return answer_end(json);
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
		server->end_monotonic_ns = bounded ? port_clock_now_ns(PORT_CLOCK_MONOTONIC) + duration_ms * NS_PER_MS :
						     INT64_MAX;
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
	const char *pages[SERVER_PAGES_MAX] = { NULL };
	struct option_texts page_texts = { .texts = pages, .room = SERVER_PAGES_MAX };
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
	for (int i = 0; i < page_texts.count && good; i++) {
		good = page_argument(TOOL, &page_texts, i, server->pages[i].name, &server->pages[i].path) == 0;
		if (good)
			server->page_count++;
	}
	if (good && find_source(server, source) == 0) {
		server->cpu = (int)cpu;
		port_tai_init(&server->tai, (int)tai_utc_s);
		port_stop_install();
		code = run(server, duration_ms);
	}
	for (size_t i = 0; i < server->page_count; i++)
		port_page_unmap(&server->pages[i].mapping);
	for (int i = 0; i < SERVER_UNITS; i++)
		sampler_release(&server->samplers[i]);
	free(server);
	return code;
}
