/* SPDX-License-Identifier: Apache-2.0 */
#include "phase/supervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/time_units.h"
#include "config/options.h"
#include "phase/bwphase.h"
#include "port/port.h"
#include "port/port_supervise.h"

#define TOOL "bw-phase"
#define READY_LOOK_NS (20 * NS_PER_MS)
#define LONG_NS (3600 * NS_PER_S)
#define DRAIN_NS NS_PER_MS

enum asked { ASKED_NOTHING, ASKED_START, ASKED_WAIT, ASKED_STOP, ASKED_PHASE };

/* Lines as they come in, in pieces. */
struct lines {
	char text[BW_PHASE_LINE_BYTES];
	size_t length;
	bool too_long; /* the rest of a line that had no room is left out */
};

struct service {
	const struct component *component;
	struct supervised supervised;
	FILE *out, *err;          /* what the program writes goes there */
	int64_t output_bytes;
	struct lines commands, said;
	enum asked asked;
	char phase[BW_PHASE_NAME_BYTES]; /* that is not answered yet */
	int64_t kill_at_monotonic_ns;       /* 0: the program was not asked to end */
	bool is_started, is_ready, is_killed, has_failed;
	bool has_ended;           /* the program, and all that it wrote was read; who else it has started may go on */
};

static void say(struct service *service, const char *type, const char *reason)
{
	struct json json;

	json_init(&json, stdout);
	json_object_open(&json, NULL);
	json_string(&json, "type", type);
	if (service->asked != ASKED_NOTHING)
		json_string(&json, "phase", service->phase);
	if (reason)
		json_string(&json, "reason", reason);
	if (service->is_started)
		json_int(&json, "pid", service->supervised.pid);
	if (service->supervised.has_ended)
		json_int(&json, "exit_code", service->supervised.exit_code);
	if (service->supervised.has_ended && service->supervised.end_signal)
		json_int(&json, "signal", service->supervised.end_signal);
	if (service->is_killed)
		json_bool(&json, "killed", true);
	json_object_close(&json);
	json_line_end(&json);
	service->asked = ASKED_NOTHING;
}

/* Of what goes wrong only the first is told: the experiment ends with it. */
static void fail(struct service *service, const char *reason)
{
	if (service->has_failed)
		return;
	service->has_failed = true;
	port_supervise_end_all(&service->supervised); /* whoever hears of it finds nothing left */
	say(service, "failed", reason);
}

static bool is_ok_code(const struct component *component, int code)
{
	bool ok = !code;

	for (int i = 0; i < component->ok_code_count; i++)
		ok |= component->ok_codes[i] == code;
	return ok;
}

/* One that was asked to end may end by that signal, or say so as a shell does; one that was killed had its time. */
static bool ended_well(const struct service *service)
{
	const struct supervised *end = &service->supervised;
	bool asked = service->kill_at_monotonic_ns != 0;

	if (asked && (end->by_request || (end->end_signal && service->is_killed)))
		return true;
	return !end->end_signal && is_ok_code(service->component, end->exit_code);
}

static void tell_end(struct service *service, const char *when)
{
	const struct supervised *end = &service->supervised;
	char reason[128];

	if (end->end_signal)
		snprintf(reason, sizeof(reason), "was ended by signal %d%s", end->end_signal, when);
	else
		snprintf(reason, sizeof(reason), "ended with exit code %d%s", end->exit_code, when);
	fail(service, reason);
}

/* The program has ended, and all that it wrote was read. */
static void take_end(struct service *service)
{
	if (service->has_failed)
		return;
	if (!ended_well(service))
		tell_end(service, service->kill_at_monotonic_ns ? " when it was asked to end" : service->is_ready ? "" : " before it was ready");
	else if (service->asked == ASKED_START && service->component->ready >= READY_TCP && !service->is_ready)
		return; /* a server that has put itself into the background: its port or file tells */
	else if (service->asked == ASKED_START || (service->component->has_phases && service->asked == ASKED_PHASE))
		tell_end(service, service->is_ready ? " within the phase" : " before it was ready");
	else if (service->asked == ASKED_WAIT || service->asked == ASKED_STOP)
		say(service, "done", NULL);
}

static void become_ready(struct service *service)
{
	service->is_ready = true;
	if (service->asked == ASKED_START)
		say(service, "done", NULL);
}

static bool is_ready_by_itself(const struct component *component)
{
	if (component->ready == READY_TCP || component->ready == READY_UDP)
		return port_supervise_is_bound(component->ready_port, component->ready == READY_TCP);
	return component->ready == READY_FILE && port_supervise_is_file(component->ready_text);
}

static void look_whether_ready(struct service *service)
{
	if (service->component->ready == READY_AT_ONCE || is_ready_by_itself(service->component))
		become_ready(service);
}

static void start(struct service *service)
{
	char reason[256];
	int err;

	if (service->is_started) {
		fail(service, "was started already");
		return;
	}
	if (is_ready_by_itself(service->component)) {
		fail(service, "what it is ready by is there before it was started: its port is bound, or its file is there");
		return;
	}
	err = port_supervise_start(&service->supervised, service->component->program, service->component->has_phases);
	if (err) {
		snprintf(reason, sizeof(reason), "%s: %s", service->component->program[0], strerror(-err));
		fail(service, reason);
		return;
	}
	service->is_started = true;
	if (!service->component->has_phases)
		look_whether_ready(service);
}

static void stop(struct service *service)
{
	if (!service->kill_at_monotonic_ns)
		service->kill_at_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + service->component->grace_ns;
	port_supervise_tell_end(&service->supervised);
	port_supervise_ask_end(&service->supervised);
	if (!service->is_started)
		say(service, "done", NULL);
}

static void command(struct service *service, const char *line)
{
	struct bw_phase_line found;

	if (!bw_phase_parse(line, &found)) {
		fprintf(stderr, TOOL ": no phase: %.80s\n", line);
		service->supervised.commanded = false;
		return;
	}
	if (service->has_failed)
		return;
	strcpy(service->phase, found.name);
	service->asked = !strcmp(found.name, "start") ? ASKED_START : !strcmp(found.name, "wait") ? ASKED_WAIT
			 : !strcmp(found.name, "stop") ? ASKED_STOP : ASKED_PHASE;
	if (service->asked == ASKED_START) {
		start(service);
	} else if (service->asked == ASKED_STOP) {
		stop(service);
	} else if (!service->is_started) {
		fail(service, "was not started");
	} else if (service->asked == ASKED_PHASE) {
		int err = service->component->has_phases ? port_supervise_tell(&service->supervised, line, strlen(line)) : -ENOTSUP;

		if (!err)
			err = port_supervise_tell(&service->supervised, "\n", 1);
		if (err == -ENOTSUP)
			fail(service, "its program has no phases");
	}
	if (service->has_ended)
		take_end(service);
}

/* A program with phases answers for itself, and says which it has registered: that goes on as it is. */
static void pass_on(const char *line)
{
	printf("%s\n", line);
	fflush(stdout);
}

static void take_said(struct service *service, const char *line)
{
	const struct component *component = service->component;
	bool answers = !strncmp(line, "{\"type\":\"done\"", 14) || !strncmp(line, "{\"type\":\"failed\"", 16);

	if (!service->is_ready) {
		bool ready = component->ready == READY_JSON && !strncmp(line, "{\"type\":\"ready\"", 15);

		ready |= component->ready == READY_LINE && strstr(line, component->ready_text);
		if (ready && component->has_phases)
			pass_on(line);
		if (ready)
			become_ready(service);
	} else if (component->has_phases && answers && service->asked == ASKED_PHASE) {
		pass_on(line);
		service->asked = ASKED_NOTHING;
	}
}

/* Take what has come, and do something with each whole line. */
static void take_lines(struct service *service, struct lines *lines, const char *data, size_t size, void (*each)(struct service *, const char *))
{
	for (size_t i = 0; i < size; i++) {
		if (data[i] == '\n') {
			lines->text[lines->length] = '\0';
			if (!lines->too_long)
				each(service, lines->text);
			lines->length = 0;
			lines->too_long = false;
		} else if (lines->length + 1 < sizeof(lines->text)) {
			lines->text[lines->length++] = data[i];
		} else {
			lines->too_long = true;
		}
	}
}

static void keep(struct service *service, FILE *file, const char *data, size_t size)
{
	char reason[128];

	if (service->has_failed)
		return;
	service->output_bytes += (int64_t)size;
	if (service->output_bytes > service->component->output_max_bytes) {
		snprintf(reason, sizeof(reason), "wrote more than %" PRId64 " bytes to stdout and stderr", service->component->output_max_bytes);
		fail(service, reason);
	} else if (fwrite(data, 1, size, file) != size || fflush(file)) {
		snprintf(reason, sizeof(reason), "what it wrote cannot be kept: %s", strerror(errno));
		fail(service, reason);
	}
}

static void take(struct service *service, enum supervise_event event)
{
	static char data[16384];
	int64_t got = port_supervise_read(&service->supervised, event, data, sizeof(data));

	if (got < 0)
		return;
	if (event == SUPERVISE_COMMAND) {
		take_lines(service, &service->commands, data, (size_t)got, command);
		return;
	}
	keep(service, event == SUPERVISE_OUT ? service->out : service->err, data, (size_t)got);
	if (event == SUPERVISE_OUT)
		take_lines(service, &service->said, data, (size_t)got, take_said);
}

/* What the program wrote before its end is read first; its output may be held open by others. */
static void drain(struct service *service)
{
	int event;

	do {
		event = port_supervise_wait(&service->supervised, port_clock_now_ns(PORT_CLOCK_MONOTONIC) + DRAIN_NS);
		if (event == SUPERVISE_OUT || event == SUPERVISE_ERR)
			take(service, event);
	} while ((event == SUPERVISE_OUT || event == SUPERVISE_ERR) && !service->has_failed);
	service->has_ended = true;
}

static int64_t next_look_monotonic_ns(const struct service *service, int64_t now_monotonic_ns)
{
	int64_t next_monotonic_ns = now_monotonic_ns + LONG_NS;

	if (service->asked == ASKED_START && !service->is_ready && service->component->ready >= READY_TCP)
		next_monotonic_ns = now_monotonic_ns + READY_LOOK_NS;
	if (service->kill_at_monotonic_ns && service->kill_at_monotonic_ns < next_monotonic_ns)
		next_monotonic_ns = service->kill_at_monotonic_ns;
	return next_monotonic_ns;
}

static void serve(struct service *service)
{
	while (service->supervised.commanded) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int event = port_supervise_wait(&service->supervised, next_look_monotonic_ns(service, now_monotonic_ns));

		if (event < 0 || event == SUPERVISE_STOP)
			return;
		if (event == SUPERVISE_COMMAND || event == SUPERVISE_OUT || event == SUPERVISE_ERR)
			take(service, event);
		if (event == SUPERVISE_ENDED)
			drain(service);
		if (event == SUPERVISE_TIME && service->asked == ASKED_START && !service->is_ready)
			look_whether_ready(service);
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		if (service->kill_at_monotonic_ns && now_monotonic_ns >= service->kill_at_monotonic_ns) {
			service->is_killed = !service->has_ended;
			service->kill_at_monotonic_ns = INT64_MAX;
			port_supervise_end_all(&service->supervised);
			drain(service);
		}
		if (event != SUPERVISE_COMMAND && service->has_ended)
			take_end(service);
	}
}

/* The controller is gone, or has no more to say. */
static void end(struct service *service)
{
	int64_t until_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + service->component->grace_ns;

	port_supervise_tell_end(&service->supervised);
	port_supervise_ask_end(&service->supervised);
	while (service->is_started && !service->has_ended && port_clock_now_ns(PORT_CLOCK_MONOTONIC) < until_monotonic_ns) {
		int event = port_supervise_wait(&service->supervised, until_monotonic_ns);

		if (event < 0 || event == SUPERVISE_TIME)
			break;
		if (event == SUPERVISE_ENDED)
			drain(service);
		if (event == SUPERVISE_OUT || event == SUPERVISE_ERR)
			take(service, event);
	}
	port_supervise_close(&service->supervised);
}

int supervise(const struct component *component)
{
	static struct service service;
	struct json json;
	int err;

	service.component = component;
	service.out = fopen("out", "w");
	service.err = fopen("err", "w");
	if (!service.out || !service.err) {
		fprintf(stderr, TOOL ": out, err: %s\n", strerror(errno));
		return EXIT_FAULT;
	}
	err = port_supervise_open(&service.supervised);
	if (err) {
		fprintf(stderr, TOOL ": processes cannot be watched here: %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	json_init(&json, stdout);
	json_object_open(&json, NULL);
	json_string(&json, "type", "ready");
	json_string(&json, "schema", "benchwright.phase/1");
	json_object_close(&json);
	json_line_end(&json);
	serve(&service);
	end(&service);
	fclose(service.out);
	fclose(service.err);
	return EXIT_DONE;
}
