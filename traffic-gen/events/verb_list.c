/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "config/options.h"
#include "events/binary.h"
#include "events/points_file.h"
#include "events/verbs.h"

#define TOOL "bw-events list"
#define POINTS_FILE_SUFFIX ".toml"

static void print_json(const struct bw_point_description *description)
{
	struct json json;

	json_init(&json, stdout);
	json_object_open(&json, NULL);
	json_string(&json, "group", description->group);
	json_string(&json, "name", description->name);
	json_string(&json, "kind", kind_name(description->kind));
	if (description->kind == BW_POINT_DATA)
		json_string(&json, "decoder", description->decoder);
	if (description->kind == BW_POINT_HISTOGRAM) {
		json_int(&json, "low", description->low);
		json_int(&json, "high", description->high);
		json_uint(&json, "buckets", description->buckets);
	}
	json_string(&json, "about", description->about);
	json_object_close(&json);
	json_line_end(&json);
}

static void complain(const char *path, int64_t err)
{
	const char *why = err == -ENOEXEC ? "neither an ELF nor a PE file, nor *.toml" : err == -EBADMSG ? "damaged, or not made by this version"
			  : err == -EXDEV ? "of a machine of another byte order" : strerror((int)-err);

	fprintf(stderr, TOOL ": %s: %s\n", path, why);
}

static bool is_points_file(const char *path)
{
	size_t length = strlen(path), end = strlen(POINTS_FILE_SUFFIX);

	return length >= end && !strcmp(path + length - end, POINTS_FILE_SUFFIX);
}

/* Returns the number of points, or -1: why not has been said. */
static int64_t find_points(const char *path, struct bw_point_description **points_out)
{
	struct schema_error error;
	int64_t count;

	if (is_points_file(path)) {
		count = points_file_read(path, points_out, &error);
		if (count < 0)
			fprintf(stderr, TOOL ": %s\n", error.text);
	} else {
		count = binary_points(path, points_out);
		if (count < 0)
			complain(path, count);
	}
	return count < 0 ? -1 : count;
}

int verb_list(int argc, char **argv)
{
	bool as_json = false;
	const struct option options[] = {
		{ "json", OPTION_FLAG, &as_json, 0, 0, NULL, "one JSON object a point instead of a line", false },
		{ 0 },
	};
	const struct command command = {
		TOOL, "FILE [--json]",
		"Find the points in the file of a program or library, ELF or PE, which is not started; or in a file of names of\n"
		"another language, *.toml.\n"
		"Columns: GROUP.NAME, kind, what it records.\n"
		"Exit codes: 0 done, also where there is no point; 2 it cannot be read.\n",
		options, 1, 1,
	};
	const char *path;
	struct bw_point_description *points;
	int64_t count;
	int parsed = options_parse(&command, argc, argv, &path);

	if (parsed < 0)
		return options_exit_code(parsed);
	count = find_points(path, &points);
	if (count < 0)
		return EXIT_BAD_INPUT;
	for (int64_t i = 0; i < count; i++) {
		char full[sizeof(points[i].group) + sizeof(points[i].name) + 2];

		if (as_json) {
			print_json(&points[i]);
			continue;
		}
		snprintf(full, sizeof(full), "%s.%s", points[i].group, points[i].name);
		printf("%-32s %-9s %s\n", full, kind_name(points[i].kind), points[i].about);
	}
	free(points);
	return exit_code_if_written(TOOL, EXIT_DONE);
}
