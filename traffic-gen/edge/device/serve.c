/* SPDX-License-Identifier: Apache-2.0 */
/* The verb serve, on the virtual bench's host: its command line, its pages and its answers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/address.h"
#include "base/json.h"
#include "clock/card/page_argument.h"
#include "clock/card/ticks.h"
#include "config/options.h"
#include "edge/device/edge_server.h"
#include "edge/edge_verbs.h"

#define TOOL "bw-edge serve"
#define COUNTER_HZ_MIN UINT64_C(100000000)
#define COUNTER_HZ_MAX UINT64_C(10000000000)

/* Map the pages and make them edge devices. Return 0 or -errno with a line on stderr. */
static int open_pages(struct edge_server *server)
{
	for (size_t i = 0; i < server->page_count; i++) {
		struct edge_served *served = &server->pages[i];
		int err = page_serve(TOOL, served->path, EDGE_MAPPING_BYTES, EDGE_LOCK_SERVE, &served->mapping);

		if (err)
			return err;
		served->page = served->mapping.address;
		served->registers = (struct edge_registers *)(void *)((char *)served->mapping.address + EDGE_OFFSET);
		edge_server_prepare(server, served);
	}
	return 0;
}

static void write_scope(struct json *json, const struct edge_server *server)
{
	const struct scope_sender *scope = &server->scope;
	char peer[ADDRESS_TEXT_BYTES];

	json_object_open(json, "scope");
	json_string(json, "address", address_format(&scope->peer, peer));
	json_uint(json, "connections", scope->connections);
	json_uint(json, "edges", scope->edges);
	json_uint(json, "lost", scope->lost + server->batch_lost);
	json_object_close(json);
}

static void print_scope(struct edge_server *server)
{
	struct json json;

	json_init(&json, stdout);
	answer_begin(&json, "progress", TOOL);
	json_bool(&json, "scope_connected", server->scope_was_up);
	write_scope(&json, server);
	answer_end(&json);
}

static void print_ready(struct json *json, const struct edge_server *server)
{
	answer_begin(json, "ready", TOOL);
	json_int(json, "pages", (int64_t)server->page_count);
	json_uint(json, "counter_hz", server->hz);
	answer_end(json);
}

static void write_page(struct json *json, const struct edge_served *served)
{
	const struct device *device = &served->device;

	json_object_open(json, NULL);
	json_string(json, "name", served->name);
	json_bool(json, "active", served->active);
	json_int(json, "calibration_bound_ns",
		 served->active ? (int64_t)((double)served->bound * 1e9 / (double)device->counter_hz) + 1 : 0);
	json_object_open(json, "outputs");
	for (int id = 0; id < EDGE_OUTPUTS; id++) {
		const struct device_output *output = &device->outputs[id];

		json_object_open(json, edge_output_names[id]);
		json_uint(json, "fired", output->fired);
		json_uint(json, "not_fired", output->not_fired);
		json_uint(json, "replaced", output->replaced);
		json_uint(json, "refused", output->refused);
		json_object_close(json);
	}
	json_object_close(json);
	json_object_open(json, "captures");
	for (int id = 0; id < EDGE_CAPTURES; id++) {
		const struct device_capture *capture = &device->captures[id];

		json_object_open(json, edge_capture_names[id]);
		json_uint(json, "made", capture->made);
		json_uint(json, "overruns", capture->overruns);
		json_uint(json, "unknown", capture->unknown);
		json_object_close(json);
	}
	json_object_close(json);
	json_uint(json, "dead_writers", served->dead_writers);
	json_object_close(json);
}

static int print_result(struct json *json, const struct edge_server *server)
{
	answer_result(json, TOOL);
	answer_valid_unless(json, true, NULL);
	json_array_open(json, "pages");
	for (size_t i = 0; i < server->page_count; i++)
		write_page(json, &server->pages[i]);
	json_array_close(json);
	write_scope(json, server);
	json_uint(json, "looks", server->looks);
	json_int(json, "late_max_ns", server->late_max_ns);
	summary_scheduling(json, &server->scheduling);
	return answer_end(json);
}

static int run(struct edge_server *server, const struct address *scope, int priority, int cpu)
{
	struct port_thread *thread;
	struct json json;
	int err;

	if (port_counter_kind() != PORT_COUNTER_TSC) {
		fputs(TOOL ": this machine's counter is no TSC\n", stderr);
		return EXIT_CAPABILITY;
	}
	server->hz = ticks_hz();
	if (server->hz < COUNTER_HZ_MIN || server->hz > COUNTER_HZ_MAX) {
		fputs(TOOL ": this machine's counter has a rate outside 0.1..10 GHz\n", stderr);
		return EXIT_CAPABILITY;
	}
	if (open_pages(server))
		return EXIT_CAPABILITY;
	err = scope_sender_init(&server->scope, scope);
	if (err) {
		fprintf(stderr, TOOL ": %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	server->on_scope = print_scope;
	json_init(&json, stdout);
	print_ready(&json, server);
	err = port_thread_start("edge", priority, cpu, edge_server_run, server, &thread);
	if (err) {
		fprintf(stderr, TOOL ": %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	server->scheduling = *port_thread_scheduling(thread);
	port_thread_join(thread);
	scope_sender_release(&server->scope);
	return print_result(&json, server) ? EXIT_CAPABILITY : EXIT_DONE;
}

int verb_serve(int argc, char **argv)
{
	struct edge_server *server = calloc(1, sizeof(*server));
	const char *pages[EDGE_PAGES_MAX] = { NULL }, *scope_text = NULL;
	struct option_texts page_texts = { .texts = pages, .room = EDGE_PAGES_MAX };
	int64_t priority = 0, cpu = PORT_CPU_ANY;
	const struct option options[] = {
		{ .name = "page", .kind = OPTION_TEXTS, .target = &page_texts, .argument = "NAME=FILE",
		  .help = "a guest and the file behind its page; may be given 16 times" },
		{ .name = "scope", .kind = OPTION_TEXT, .target = &scope_text, .argument = "ADDRESS:PORT",
		  .help = "edge port of a virtual oscilloscope" },
		{ .name = "priority", .kind = OPTION_INT, .target = &priority, .min = 0, .max = 99, .argument = "N",
		  .help = "SCHED_FIFO priority (default 0: none); no edge depends on it, captures come later" },
		{ .name = "cpu", .kind = OPTION_INT, .target = &cpu, .min = 0, .max = 1023, .argument = "N",
		  .help = "CPU to serve on (default: any)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "--page NAME=FILE [--page ...] --scope ADDRESS:PORT",
		.about = "On the virtual bench's host: be the edge device of guests, and tell the edges of their outputs to an\n"
			 "oscilloscope, until SIGTERM. An oscilloscope that is not there is tried again and again.\n",
		.options = options,
	};
	struct address scope;
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
	good = page_texts.count > 0 && scope_text != NULL;
	if (!good)
		fprintf(stderr, TOOL ": --%s is missing (see --help)\n", scope_text ? "page" : "scope");
	for (int i = 0; i < page_texts.count && good; i++) {
		good = page_argument(TOOL, &page_texts, i, server->pages[i].name, &server->pages[i].path) == 0;
		if (good)
			server->page_count++;
	}
	if (good && address_parse(scope_text, &scope) != 0) {
		fprintf(stderr, TOOL ": --scope: \"%s\"; allowed: ADDRESS:PORT, or [ADDRESS]:PORT of IPv6\n", scope_text);
		good = false;
	}
	if (good) {
		port_stop_install();
		code = run(server, &scope, (int)priority, (int)cpu);
	}
	scope_sender_release(&server->scope);
	for (size_t i = 0; i < server->page_count; i++)
		port_page_unmap(&server->pages[i].mapping);
	free(server);
	return code;
}
