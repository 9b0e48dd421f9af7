/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/recompute.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/json.h"
#include "base/time_units.h"
#include "config/options.h"
#include "timeservice/local.h"
#include "timeservice/log_line.h"
#include "timeservice/select.h"

#define TIME_MAX_NS INT64_C(4000000000000000000) /* beyond it differences could overflow */
#define SPAN_MAX_NS INT64_C(100000000000000000)  /* three years */
#define RATE_MAX_PPB INT64_C(10000000)           /* as of bw-timed */
#define DRIFT_MAX_PPB INT64_C(1000000)
#define HZ_MIN INT64_C(1000000)
#define HZ_MAX INT64_C(9000000000)

enum { LINE_BYTES = 16384, NUMBER_BYTES = 24 };

struct recompute_server {
	char address[ADDRESS_TEXT_BYTES];
	struct estimate *estimate;
	int64_t root_distance_ns; /* of its last exchange; 0 before */
};

struct recompute {
	const char *path;
	char *error;
	bool json;
	FILE *out;
	uint64_t line, syncs;
	struct local_time local;
	struct recompute_server servers[SELECT_MAX];
	int server_count;              /* 0: no service has begun */
	int open_server;               /* whose batch is open; -1: none is */
	uint64_t open_batch;
	const struct recompute_server *contradicted; /* by the exchanges; the log has to say so next */
	int64_t step_ns;
};

static int say(struct recompute *run, int code, const char *format, ...)
{
	int used = snprintf(run->error, RECOMPUTE_ERROR_BYTES, "%s:%" PRIu64 ": ", run->path, run->line);
	va_list arguments;

	if (used < 0 || used >= RECOMPUTE_ERROR_BYTES)
		return code;
	va_start(arguments, format);
	vsnprintf(run->error + used, (size_t)(RECOMPUTE_ERROR_BYTES - used), format, arguments);
	va_end(arguments);
	return code;
}

static int damaged(struct recompute *run, const char *key)
{
	return say(run, EXIT_BAD_INPUT, "%s: missing, or no such value can be", key);
}

static void forget(struct recompute *run)
{
	for (int i = 0; i < run->server_count; i++)
		estimate_destroy(run->servers[i].estimate);
	run->server_count = 0;
	run->open_server = -1;
	run->contradicted = NULL;
}

static void batch_end(struct recompute *run)
{
	int64_t step_ns = 0;

	if (run->open_server >= 0 &&
	    estimate_end_batch(run->servers[run->open_server].estimate, &step_ns) == ESTIMATE_CONTRADICTION) {
		run->contradicted = &run->servers[run->open_server];
		run->step_ns = step_ns;
	}
	run->open_server = -1;
}

/* A contradiction is told right after its batch. */
static int check_told(struct recompute *run)
{
	return run->contradicted ? say(run, EXIT_INVALID, "%s contradicts what it said before, by %" PRId64 " ns, by its exchanges; "
				       "the log does not say so", run->contradicted->address, run->step_ns) : EXIT_DONE;
}

/* ---- lines of the log -------------------------------------------------------------------------------------------- */

/* A service begins. */
static int take_ready(struct recompute *run, const struct log_line *line)
{
	struct estimate_settings settings = estimate_default_settings();
	const char *logged = log_line_text(line, "log_exchanges");
	char number[NUMBER_BYTES];
	int64_t hz;

	forget(run);
	if (!logged || strcmp(logged, "true") != 0)
		return say(run, EXIT_BAD_INPUT, "this service has not logged its exchanges; start it with --log-exchanges");
	if (!log_line_int(line, "counter_hz", HZ_MIN, HZ_MAX, &hz))
		return damaged(run, "counter_hz");
	run->local.hz = (uint64_t)hz;
	if (!log_line_uint(line, "origin_ticks", &run->local.origin_ticks))
		return damaged(run, "origin_ticks");
	if (!log_line_int(line, "origin_local_ns", 0, TIME_MAX_NS, &run->local.origin_local_ns))
		return damaged(run, "origin_local_ns");
	if (!log_line_int(line, "drift_limit_ppb", 0, DRIFT_MAX_PPB, &settings.drift_limit_ppb))
		return damaged(run, "drift_limit_ppb");
	if (!log_line_int(line, "rate_limit_ppb", 1, RATE_MAX_PPB, &settings.rate_limit_ppb))
		return damaged(run, "rate_limit_ppb");
	if (!log_line_int(line, "asymmetry_percent", 0, 100, &settings.asymmetry_percent))
		return damaged(run, "asymmetry_percent");
	for (int i = 0; i < SELECT_MAX; i++) {
		struct recompute_server *server = &run->servers[i];

		if (!log_line_element(line, "servers", i, server->address, sizeof(server->address)))
			break;
		if (!log_line_element(line, "min_delays_ns", i, number, sizeof(number)) ||
		    option_parse_int(number, 0, INT64_C(1000000000), &settings.min_way_ns))
			return damaged(run, "min_delays_ns");
		server->root_distance_ns = 0;
		server->estimate = estimate_create(&settings);
		if (!server->estimate)
			return say(run, EXIT_CAPABILITY, "%s", strerror(errno));
		run->server_count++;
	}
	return run->server_count ? EXIT_DONE : damaged(run, "servers");
}

/* No further from the origin than a service runs. */
static bool is_near(const struct recompute *run, uint64_t ticks)
{
	int64_t hz = (int64_t)run->local.hz;
	int64_t distance_s;

	if (!hz) /* no service has begun */
		return false;
	distance_s = (int64_t)(ticks - run->local.origin_ticks) / hz;
	return llabs(distance_s) <= SPAN_MAX_NS / NS_PER_S;
}

/* This machine's stamps. */
static int read_stamps(struct recompute *run, const struct log_line *line, struct exchange_stamps *stamps)
{
	int64_t away;

	*stamps = (struct exchange_stamps){ .kernel = log_line_text(line, "t1_local_ns") != NULL };
	if (!log_line_int(line, "error_ns", 0, SPAN_MAX_NS, &stamps->error_ns))
		return damaged(run, "error_ns");
	if (stamps->kernel) {
		if (!log_line_int(line, "t1_local_ns", 0, TIME_MAX_NS, &stamps->t1_local_ns))
			return damaged(run, "t1_local_ns");
		if (!log_line_int(line, "away_ns", 0, SPAN_MAX_NS, &away))
			return damaged(run, "away_ns");
		stamps->t4_local_ns = stamps->t1_local_ns + away;
		return EXIT_DONE;
	}
	if (!log_line_uint(line, "t1_ticks", &stamps->t1_ticks) || !is_near(run, stamps->t1_ticks))
		return damaged(run, "t1_ticks");
	if (!log_line_int(line, "away_ticks", 0, SPAN_MAX_NS, &away) || !is_near(run, stamps->t1_ticks + (uint64_t)away))
		return damaged(run, "away_ticks");
	stamps->t4_ticks = stamps->t1_ticks + (uint64_t)away;
	stamps->t1_local_ns = local_from_ticks(&run->local, stamps->t1_ticks);
	stamps->t4_local_ns = local_from_ticks(&run->local, stamps->t4_ticks);
	return EXIT_DONE;
}

/* An exchange of a batch. */
static int take_sample(struct recompute *run, const struct log_line *line, const struct exchange_stamps *stamps, int64_t t2_utc_ns,
		       int index)
{
	const char *interleaved = log_line_text(line, "interleaved");
	struct exchange_sample sample = {
		.t1_local_ns = stamps->t1_local_ns,
		.t4_local_ns = stamps->t4_local_ns,
		.t1_ticks = stamps->t1_ticks,
		.t4_ticks = stamps->t4_ticks,
		.t2_utc_ns = t2_utc_ns,
		.error_ns = stamps->error_ns,
		.root_distance_ns = run->servers[index].root_distance_ns,
		.kernel_stamps = stamps->kernel,
		.interleaved = interleaved && strcmp(interleaved, "true") == 0,
	};
	int64_t held_ns;

	if (!log_line_int(line, "held_ns", 0, SPAN_MAX_NS, &held_ns))
		return damaged(run, "held_ns");
	sample.t3_utc_ns = t2_utc_ns + held_ns;
	if (!log_line_int(line, "precision_ns", 0, SPAN_MAX_NS, &sample.precision_ns))
		return damaged(run, "precision_ns");
	run->open_server = index;
	estimate_add(run->servers[index].estimate, &sample); /* what it refuses, the service's refused as well */
	return EXIT_DONE;
}

static int take_exchange(struct recompute *run, const struct log_line *line)
{
	bool in_batch = log_line_text(line, "batch") != NULL;
	int64_t index, t2_utc_ns, local_ns, low_ns, high_ns;
	struct recompute_server *server;
	struct exchange_stamps stamps;
	uint64_t batch = 0;
	int code;

	if (!log_line_int(line, "index", 0, run->server_count - 1, &index))
		return damaged(run, "index");
	if (in_batch && !log_line_uint(line, "batch", &batch))
		return damaged(run, "batch");
	if (!log_line_int(line, "t2_utc_ns", 0, TIME_MAX_NS, &t2_utc_ns))
		return damaged(run, "t2_utc_ns");
	server = &run->servers[index];
	if (log_line_text(line, "root_distance_ns") && !log_line_int(line, "root_distance_ns", 0, SPAN_MAX_NS, &server->root_distance_ns))
		return damaged(run, "root_distance_ns");
	code = read_stamps(run, line, &stamps);
	if (code)
		return code;
	if (!in_batch || batch != run->open_batch)
		batch_end(run);
	code = check_told(run);
	if (code)
		return code;
	run->open_batch = batch;
	if (in_batch)
		return take_sample(run, line, &stamps, t2_utc_ns, (int)index);
	exchange_rough_interval(&stamps, t2_utc_ns, &local_ns, &low_ns, &high_ns);
	estimate_check(server->estimate, local_ns, low_ns, high_ns, server->root_distance_ns);
	return EXIT_DONE;
}

static int take_contradiction(struct recompute *run, const struct log_line *line)
{
	const char *address = log_line_text(line, "server");
	int64_t step_ns;

	if (!address)
		return damaged(run, "server");
	if (!log_line_int(line, "step_ns", INT64_MIN, INT64_MAX, &step_ns))
		return damaged(run, "step_ns");
	batch_end(run);
	if (!run->contradicted || strcmp(run->contradicted->address, address) != 0)
		return say(run, EXIT_INVALID, "the exchanges of %s contradict nothing", address);
	if (run->step_ns != step_ns)
		return say(run, EXIT_INVALID, "step_ns: %" PRId64 " in the log, %" PRId64 " by its exchanges", step_ns, run->step_ns);
	run->contradicted = NULL;
	return EXIT_DONE;
}

/* The counter jumped, or runs at another rate. A batch that is open was given up. */
static int take_counter(struct recompute *run)
{
	run->open_server = -1;
	for (int i = 0; i < run->server_count; i++)
		estimate_restart(run->servers[i].estimate);
	return EXIT_DONE;
}

/* ---- a batch's line ---------------------------------------------------------------------------------------------- */

static int compare_whole(struct recompute *run, const struct log_line *line, const char *key, int64_t computed)
{
	int64_t logged;

	if (!log_line_int(line, key, INT64_MIN, INT64_MAX, &logged))
		return damaged(run, key);
	return logged == computed ? EXIT_DONE : say(run, EXIT_INVALID, "%s: %" PRId64 " in the log, %" PRId64 " by its exchanges", key,
						    logged, computed);
}

static int compare_real(struct recompute *run, const struct log_line *line, const char *key, double computed)
{
	double logged;

	if (!log_line_double(line, key, &logged))
		return damaged(run, key);
	return logged == computed ? EXIT_DONE :
				    say(run, EXIT_INVALID, "%s: %.17g in the log, %.17g by its exchanges", key, logged, computed);
}

/* Select among the servers from which the service has selected. */
static int select_again(struct recompute *run, const struct log_line *line, int64_t at_local_ns, struct estimate_line *selected,
			int *combined)
{
	struct select_candidate candidates[SELECT_MAX];
	char word[NUMBER_BYTES];

	for (int i = 0; i < run->server_count; i++) {
		struct select_candidate *candidate = &candidates[i];

		*candidate = (struct select_candidate){ .line = estimate_current(run->servers[i].estimate) };
		if (!log_line_element(line, "usable", i, word, sizeof(word)))
			return damaged(run, "usable");
		candidate->usable = strcmp(word, "true") == 0;
		if (!candidate->usable && strcmp(word, "false") != 0)
			return damaged(run, "usable");
		if (candidate->usable && !candidate->line.valid)
			return say(run, EXIT_INVALID, "%s has said nothing, by its exchanges", run->servers[i].address);
	}
	*combined = select_line(candidates, run->server_count, at_local_ns, selected);
	return EXIT_DONE;
}

static void show(struct recompute *run, const struct estimate_line *selected, double u_ns)
{
	struct json json;

	if (!run->json) {
		fprintf(run->out, "%8" PRIu64 " %20" PRId64 " %14.3f %12" PRId64 " %12" PRId64 " %14.1f\n", run->line,
			selected->offset_ns, selected->rate_ppb, selected->low_ns, selected->high_ns, u_ns);
		return;
	}
	json_init(&json, run->out);
	json_object_open(&json, NULL);
	json_uint(&json, "line", run->line);
	json_int(&json, "offset_ns", selected->offset_ns);
	json_double(&json, "rate_ppb", selected->rate_ppb);
	json_int(&json, "low_ns", selected->low_ns);
	json_int(&json, "high_ns", selected->high_ns);
	json_int(&json, "growth_ppb", selected->growth_ppb);
	json_double(&json, "u_ns", u_ns);
	json_object_close(&json);
	json_line_end(&json);
}

static int take_sync(struct recompute *run, const struct log_line *line)
{
	struct estimate_line selected = { 0 };
	int code, combined = 0;
	uint64_t at_ticks;
	double u_ns;

	batch_end(run);
	code = check_told(run);
	if (code)
		return code;
	if (!log_line_uint(line, "at_ticks", &at_ticks) || !is_near(run, at_ticks))
		return damaged(run, "at_ticks");
	code = select_again(run, line, local_from_ticks(&run->local, at_ticks), &selected, &combined);
	if (code)
		return code;
	u_ns = scatter_u_ns(&selected.scatter, 0);
	run->syncs++;
	show(run, &selected, u_ns);
	code = compare_whole(run, line, "servers", combined);
	code = code ? code : compare_whole(run, line, "line_offset_ns", selected.offset_ns);
	code = code ? code : compare_real(run, line, "line_rate_ppb", selected.rate_ppb);
	code = code ? code : compare_whole(run, line, "line_low_ns", selected.low_ns);
	code = code ? code : compare_whole(run, line, "line_high_ns", selected.high_ns);
	code = code ? code : compare_whole(run, line, "line_growth_ppb", selected.growth_ppb);
	return code ? code : compare_real(run, line, "line_u_ns", u_ns);
}

static int take(struct recompute *run, char *text)
{
	struct log_line line;
	const char *type;

	text[strcspn(text, "\r\n")] = '\0';
	if (!log_line_parse(text, &line))
		return say(run, EXIT_BAD_INPUT, "no line of bw-timed's log");
	type = log_line_text(&line, "type");
	if (!type)
		return damaged(run, "type");
	if (strcmp(type, "ready") == 0)
		return take_ready(run, &line);
	if (strcmp(type, "exchange") == 0)
		return take_exchange(run, &line);
	if (!run->server_count) /* of the counter, before the service begins */
		return EXIT_DONE;
	if (strcmp(type, "contradiction") == 0)
		return take_contradiction(run, &line);
	if (strcmp(type, "counter") == 0)
		return take_counter(run);
	return strcmp(type, "sync") == 0 ? take_sync(run, &line) : EXIT_DONE;
}

int recompute(const char *path, bool json, FILE *out, char error[RECOMPUTE_ERROR_BYTES])
{
	struct recompute run = { .path = path, .error = error, .json = json, .out = out, .open_server = -1 };
	FILE *file = fopen(path, "rb");
	char *text = malloc(LINE_BYTES);
	int code = EXIT_DONE;

	if (!file || !text) {
		snprintf(error, RECOMPUTE_ERROR_BYTES, "%s: %s", path, strerror(file ? ENOMEM : errno));
		code = EXIT_BAD_INPUT;
	} else if (!json) {
		fprintf(out, "%8s %20s %14s %12s %12s %14s\n", "line", "offset ns", "rate ppb", "low ns", "high ns", "U ns");
	}
	while (code == EXIT_DONE && fgets(text, LINE_BYTES, file)) {
		run.line++;
		if (strchr(text, '\n'))
			code = take(&run, text);
		else if (!feof(file)) /* else it was killed within its last line */
			code = say(&run, EXIT_BAD_INPUT, "longer than %d bytes", LINE_BYTES - 2);
	}
	if (code == EXIT_DONE && ferror(file))
		code = say(&run, EXIT_BAD_INPUT, "it cannot be read on");
	if (code == EXIT_DONE && !run.syncs)
		code = say(&run, EXIT_BAD_INPUT, "no batch of exchanges with a time is there");
	forget(&run);
	free(text);
	if (file)
		fclose(file);
	return code;
}
