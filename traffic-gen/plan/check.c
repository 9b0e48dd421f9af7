/* SPDX-License-Identifier: Apache-2.0 */
/* The verb check: validate a pattern file and print it, scaled and with its phases. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/json.h"
#include "config/options.h"
#include "plan/phase.h"
#include "plan/plan.h"
#include "traffic/verbs.h"

#define TOOL "bw-traffic check"

static void print_stream(struct json *json, const struct stream *stream)
{
	json_object_open(json, NULL);
	summary_stream(json, stream);
	json_bool(json, "low_latency", stream->low_latency);
	json_int(json, "phase_ns", stream->phase_ns);
	json_object_close(json);
}

static int print_pattern(const struct pattern *pattern, enum phase phase, uint32_t scale)
{
	struct json json;

	json_init(&json, stdout);
	answer_begin(&json, "pattern", TOOL);
	json_string(&json, "name", pattern->name);
	json_string(&json, "source", pattern->source);
	json_string(&json, "phase", phase_name(phase));
	json_uint(&json, "scale", scale);
	json_uint(&json, "producers", pattern->producer_count);
	json_array_open(&json, "streams");
	for (size_t i = 0; i < pattern->stream_count; i++)
		print_stream(&json, &pattern->streams[i]);
	json_array_close(&json);
	return answer_end(&json);
}

/* Scale the pattern, print it, or say on stderr why not. Return the exit code. */
static int check_pattern(const char *path, const struct pattern *file, enum phase phase, uint32_t scale)
{
	struct pattern *scaled;
	int err = phase_expand(file, phase, scale, &scaled);

	if (err == -ERANGE)
		fprintf(stderr, TOOL ": --scale: %" PRIu32 " is out of range for %s with producers up to %u; allowed 1..%d\n",
			scale, path, file->producer_highest, PLAN_PRODUCER_MAX / file->producer_highest);
	if (err == -ERANGE)
		return EXIT_BAD_INPUT;
	if (!err) {
		err = print_pattern(scaled, phase, scale);
		pattern_destroy(scaled);
	}
	if (err) {
		fprintf(stderr, TOOL ": %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	return EXIT_DONE;
}

int verb_check(int argc, char **argv)
{
	const char *path, *name = phase_name(PHASE_ALIGNED_12);
	int64_t scale = 1;
	const struct option options[] = {
		{ .name = "phase", .kind = OPTION_TEXT, .target = &name, .argument = "NAME",
		  .help = "aligned-12 (default), aligned-48 or staggered" },
		{ .name = "scale", .kind = OPTION_INT, .target = &scale, .min = 1, .max = PLAN_PRODUCER_MAX,
		  .argument = "N", .help = "repeat the producers N times (default 1)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL,
		.usage = "PATTERN [--phase NAME] [--scale N]",
		.about = "Validate a pattern file and print it as one JSON object, with the phase of each stream.\n",
		.options = options,
		.positional_min = 1,
		.positional_max = 1,
	};
	int parsed = options_parse(&command, argc, argv, &path), err, code;
	struct pattern *pattern;
	struct schema_error error;
	enum phase phase;

	if (parsed < 0)
		return options_exit_code(parsed);
	if (phase_by_name(name, &phase)) {
		fprintf(stderr, TOOL ": --phase: \"%s\" is unknown; allowed aligned-12, aligned-48, staggered\n", name);
		return EXIT_BAD_INPUT;
	}
	err = pattern_load(path, &pattern, &error);
	if (err) {
		fprintf(stderr, "%s\n", error.text);
		return err == -ENOMEM ? EXIT_CAPABILITY : EXIT_BAD_INPUT;
	}
	code = check_pattern(path, pattern, phase, (uint32_t)scale);
	pattern_destroy(pattern);
	return code;
}
