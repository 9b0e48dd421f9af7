/* SPDX-License-Identifier: Apache-2.0 */
/* on, off, show: of a recording that runs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "config/options.h"
#include "events/recording.h"
#include "events/session.h"
#include "events/verbs.h"

enum { PATTERNS_MAX = 256 };

struct search {
	const char *folder, *prefix;
	char found[PORT_EVENTS_PATH_BYTES];
	int count;
};

static int look_at(void *sink, const char *name)
{
	struct search *search = sink;
	char path[PORT_EVENTS_PATH_BYTES];
	struct port_events_file file;
	struct events_control *control;

	if (strncmp(name, search->prefix, strlen(search->prefix)) != 0 ||
	    snprintf(path, sizeof(path), "%s/%s", search->folder, name) >= (int)sizeof(path) || session_control(path, &file, &control))
		return 0;
	if (port_events_is_held(&file, 0)) {
		snprintf(search->found, sizeof(search->found), "%s", path);
		search->count++;
	}
	port_events_close(&file);
	return 0;
}

/* The recording that is meant: named, or the only one. Returns an exit code. */
static int find(const char *tool, const char *named, char folder[PORT_EVENTS_PATH_BYTES])
{
	struct search search = { .count = 0 };

	if (named) {
		snprintf(folder, PORT_EVENTS_PATH_BYTES, "%s", named);
		return EXIT_DONE;
	}
	port_events_places(&search.folder, &search.prefix);
	port_events_list(search.folder, look_at, &search);
	if (search.count == 1) {
		snprintf(folder, PORT_EVENTS_PATH_BYTES, "%s", search.found);
		return EXIT_DONE;
	}
	fprintf(stderr, search.count ? "%s: %d recordings run: name one by --folder\n" : "%s: no recording runs\n", tool, search.count);
	return search.count ? EXIT_BAD_INPUT : EXIT_CAPABILITY;
}

static int open_control(const char *tool, const char *named, char folder[PORT_EVENTS_PATH_BYTES], struct port_events_file *file,
			struct events_control **control)
{
	int code = find(tool, named, folder), err;

	if (code != EXIT_DONE)
		return code;
	err = session_control(folder, file, control);
	if (err)
		fprintf(stderr, "%s: %s: %s\n", tool, folder, err == -EBADMSG ? "no recording, or damaged" : strerror(-err));
	return err ? EXIT_BAD_INPUT : EXIT_DONE;
}

struct change {
	struct events_control *control;
	const char *pattern_line; /* of one pattern, "+GROUP.NAME\n" */
	uint64_t points;          /* that fit it, in all programs */
	int programs;
};

static void apply(void *sink, const struct events_map *map)
{
	struct change *change = sink;

	change->programs++;
	for (uint32_t point = 0; point < map->header.point_count; point++)
		change->points += events_wanted(change->pattern_line, &map->descriptions[point]);
	session_set_wanted(map, change->control);
}

/* First the list, for programs that start from now on, then those that run. */
static int change_all(const char *tool, const char *folder, struct events_control *control, const char *const *patterns, int count,
		      char sign)
{
	static char wanted[EVENTS_WANTED_BYTES], lines[EVENTS_WANTED_BYTES];
	struct change change = { control, lines, 0, 0 };
	uint32_t generation;

	for (uint32_t stream = 0; stream < control->stream_count; stream++) {
		memcpy(wanted, control->streams[stream].wanted, sizeof(wanted));
		wanted[sizeof(wanted) - 1] = 0;
		if (wanted_add(tool, wanted, patterns, count, sign))
			return EXIT_BAD_INPUT;
		/* Odd already where one that changed it was killed. */
		generation = __atomic_load_n(&control->generation, __ATOMIC_RELAXED) | 1;
		__atomic_exchange_n(&control->generation, generation, __ATOMIC_SEQ_CST);
		memcpy(control->streams[stream].wanted, wanted, sizeof(wanted));
		__atomic_exchange_n(&control->generation, generation + 1, __ATOMIC_SEQ_CST);
	}
	if (wanted_add(tool, lines, patterns, count, '+'))
		return EXIT_BAD_INPUT;
	for (char *line = lines; *line; line += strcspn(line, "\n") + 1)
		*line = '+';
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* see session_set_wanted */
	recording_each(folder, apply, &change);
	printf("%" PRIu64 " points of %d programs, and of those that start from now on\n", change.points, change.programs);
	if (!change.points && change.programs) {
		fprintf(stderr, "%s: no point of these names in the programs that run\n", tool);
		return EXIT_INVALID;
	}
	return EXIT_DONE;
}

/* A recording that a command line means, open. */
struct meant {
	char folder[PORT_EVENTS_PATH_BYTES];
	struct port_events_file file;
	struct events_control *control;
	const char *names[PATTERNS_MAX];
	int name_count;
};

/* Read a command line, with names or without. Returns an exit code, or -1: go on; the file is the caller's to close. */
static int open_meant(const char *tool, const char *usage, const char *about, int names_max, int argc, char **argv, struct meant *meant)
{
	const char *named = NULL;
	const struct option options[] = {
		{ "folder", OPTION_TEXT, &named, 0, 0, "FOLDER", "of the recording, as `record` prints it; not needed while one runs", false },
		{ 0 },
	};
	const struct command command = { tool, usage, about, options, names_max ? 1 : 0, names_max };
	int code;

	meant->name_count = options_parse(&command, argc, argv, meant->names);
	if (meant->name_count < 0)
		return options_exit_code(meant->name_count);
	code = open_control(tool, named, meant->folder, &meant->file, &meant->control);
	return code == EXIT_DONE ? -1 : code;
}

static int turn(int argc, char **argv, const char *tool, char sign)
{
	struct meant meant;
	int code = open_meant(tool, "NAME... [--folder FOLDER]",
			      "NAME: GROUP or GROUP.NAME, with * and ?. In programs that run, and in those that start from now on.\n"
			      "Exit codes: 0 done; 2 bad input; 3 no recording runs; 4 no program that runs has such a point.\n",
			      PATTERNS_MAX, argc, argv, &meant);
	int err;

	if (code >= 0)
		return code;
	err = port_events_change(&meant.file); /* two who change the list at once would each write back what the other one did not know */
	if (err) {
		fprintf(stderr, "%s: %s: %s\n", tool, meant.folder, strerror(-err));
		port_events_close(&meant.file);
		return EXIT_FAULT;
	}
	code = change_all(tool, meant.folder, meant.control, meant.names, meant.name_count, sign);
	port_events_close(&meant.file);
	return code;
}

int verb_on(int argc, char **argv)
{
	return turn(argc, argv, "bw-events on", '+');
}

int verb_off(int argc, char **argv)
{
	return turn(argc, argv, "bw-events off", '-');
}

int verb_trigger(int argc, char **argv)
{
	struct meant meant;
	int code = open_meant("bw-events trigger", "[--folder FOLDER]",
			      "Have the histories of a recording written, as their triggers do.\n"
			      "Exit codes: 0 done; 2 bad input; 3 no recording runs.\n",
			      0, argc, argv, &meant);

	if (code >= 0)
		return code;
	recording_trigger(meant.control);
	port_events_close(&meant.file);
	return EXIT_DONE;
}

static void print_program(void *sink, const struct events_map *map)
{
	struct json *json = sink;

	json_object_open(json, NULL);
	json_string(json, "program", map->header.program);
	json_uint(json, "pid", map->header.pid);
	json_array_open(json, "streams");
	for (uint32_t stream = 0; stream < map->header.stream_count; stream++) {
		uint64_t slots = 0, lost = 0;

		for (uint32_t ring = 0; ring < map->header.ring_count; ring++) {
			const struct events_ring *at = &map->rings[stream * map->header.ring_count + ring];

			slots += __atomic_load_n(&at->head, __ATOMIC_RELAXED);
			lost += __atomic_load_n(&at->lost, __ATOMIC_RELAXED);
		}
		json_object_open(json, NULL);
		json_string(json, "stream", map->header.streams[stream].name);
		json_uint(json, "slots", slots);
		json_uint(json, "lost", lost);
		json_object_close(json);
	}
	json_array_close(json);
	json_array_open(json, "on");
	for (uint32_t point = 0; point < map->header.point_count; point++) {
		char full[sizeof(map->descriptions->group) + sizeof(map->descriptions->name) + 2];

		if (!__atomic_load_n(&map->wanted[point], __ATOMIC_RELAXED))
			continue;
		snprintf(full, sizeof(full), "%s.%s", map->descriptions[point].group, map->descriptions[point].name);
		json_string(json, NULL, full);
	}
	json_array_close(json);
	json_object_close(json);
	json_line_end(json);
}

int verb_show(int argc, char **argv)
{
	static const char tool[] = "bw-events show";
	struct json json;
	struct meant meant;
	int code = open_meant(tool, "[--folder FOLDER]",
			      "The programs of a recording that runs, one JSON object a line: slots handed out, events lost, points that are on.\n"
			      "Exit codes: 0 done; 2 bad input; 3 no recording runs.\n",
			      0, argc, argv, &meant);

	if (code >= 0)
		return code;
	json_init(&json, stdout);
	recording_each(meant.folder, print_program, &json);
	port_events_close(&meant.file);
	return exit_code_if_written(tool, EXIT_DONE);
}
