/* SPDX-License-Identifier: Apache-2.0 */
#include "events/streams_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/verbs.h"

#define END_WORD "end"

enum { FILE_BYTES_MAX = 65536, NAMES_TEXT_MAX = 1000, RING_KIB = 4096, RING_KIB_MAX = 2097152, WORDS_MAX = 128, AFTER_MS_MAX = 60000 };
enum { STREAM_TABLE, FILTER_TABLE, TABLES };
enum { NAME, POINTS, KIND, TRIGGER, AFTER_MS, RING, STREAM_FIELDS };
enum { FILTERED, FILTER_POINTS, MIN, MAX, EVERY, FILTER_FIELDS };

static const char *const kinds[] = { "all", "history", NULL };

static const struct schema_field stream_fields[STREAM_FIELDS] = {
	[NAME] = { "name", SCHEMA_TEXT, 1, EVENTS_STREAM_NAME_BYTES - 1, NULL, false, 0 },
	[POINTS] = { "points", SCHEMA_TEXT, 1, NAMES_TEXT_MAX, NULL, true, 0 },
	[KIND] = { "kind", SCHEMA_CHOICE, 0, 0, kinds, true, 0 },
	[TRIGGER] = { "trigger", SCHEMA_TEXT, 1, NAMES_TEXT_MAX, NULL, true, 0 },
	[AFTER_MS] = { "after_ms", SCHEMA_INTEGER, 0, AFTER_MS_MAX, NULL, true, 0 },
	[RING] = { "ring_kib", SCHEMA_INTEGER, 8, RING_KIB_MAX, NULL, true, RING_KIB },
};

static const struct schema_field filter_fields[FILTER_FIELDS] = {
	[FILTERED] = { "stream", SCHEMA_TEXT, 1, EVENTS_STREAM_NAME_BYTES - 1, NULL, false, 0 },
	[FILTER_POINTS] = { "points", SCHEMA_TEXT, 1, NAMES_TEXT_MAX, NULL, true, 0 },
	[MIN] = { "min", SCHEMA_INTEGER, INT64_MIN, INT64_MAX, NULL, true, INT64_MIN },
	[MAX] = { "max", SCHEMA_INTEGER, INT64_MIN, INT64_MAX, NULL, true, INT64_MAX },
	[EVERY] = { "every", SCHEMA_INTEGER, 1, 1000000000, NULL, true, 1 },
};

static const struct schema_table tables[TABLES] = {
	[STREAM_TABLE] = { "stream", true, NAME, STREAM_FIELDS, stream_fields, false },
	[FILTER_TABLE] = { "filter", true, FILTERED, FILTER_FIELDS, filter_fields, true },
};

uint32_t ring_slots_of(int64_t ring_kib)
{
	uint32_t slots = EVENTS_SLOTS_MIN;

	while (slots < EVENTS_SLOTS_MAX && (int64_t)slots * EVENTS_SLOT_BYTES < ring_kib * 1024)
		slots *= 2;
	return slots;
}

/* Take words apart; the text is changed. Returns how many, or -E2BIG. */
static int part(char *text, const char *words[WORDS_MAX])
{
	int count = 0;

	for (char *word = strtok(text, " \t\n"); word; word = strtok(NULL, " \t\n")) {
		if (count == WORDS_MAX)
			return -E2BIG;
		words[count++] = word;
	}
	return count;
}

/* Write names as lines of a list with some room. `first` is written before them where they only take something away, or there are none. */
static int list_names(char *list, size_t room, const char *text, const char *first)
{
	static char lines[EVENTS_WANTED_BYTES];
	const char *words[WORDS_MAX];
	char copy[NAMES_TEXT_MAX + 1] = "";
	int count;

	if (text)
		snprintf(copy, sizeof(copy), "%s", text);
	count = part(copy, words);
	if (count < 0)
		return count;
	lines[0] = '\0';
	if (first && (!count || words[0][0] == '-') && wanted_add("bw-events record", lines, &first, 1, '+'))
		return -EINVAL;
	if (wanted_add("bw-events record", lines, words, count, '+'))
		return -EINVAL;
	return snprintf(list, room, "%s", lines) < (int)room ? 0 : -E2BIG;
}

static int find_stream(const struct events_control *control, const char *name)
{
	for (uint32_t stream = 0; stream < control->stream_count; stream++)
		if (!strcmp(control->streams[stream].name, name))
			return (int)stream;
	return -1;
}

/* Take the word for the end of a program out of a list of triggers. Returns whether it was in it. */
static bool take_end(char *text)
{
	char *at = text;

	while ((at = strstr(at, END_WORD))) {
		bool begins = at == text || at[-1] == ' ';

		if (begins && (at[sizeof(END_WORD) - 1] == ' ' || !at[sizeof(END_WORD) - 1])) {
			memset(at, ' ', sizeof(END_WORD) - 1);
			return true;
		}
		at += sizeof(END_WORD) - 1;
	}
	return false;
}

static int take_stream(const struct schema_document *document, const struct schema_row *row, struct events_control *control,
		       struct schema_error *error)
{
	const struct schema_value *values = row->values;
	const char *name = values[NAME].text;
	uint32_t number = control->stream_count;
	bool history = values[KIND].integer == 1;

	if (number == EVENTS_STREAMS_MAX)
		return schema_refuse(document, STREAM_TABLE, row, -1, error, "one stream too many; allowed 1..%d", EVENTS_STREAMS_MAX);
	if (strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != strlen(name))
		return schema_refuse(document, STREAM_TABLE, row, NAME, error, "allowed: letters, digits, - and _");
	if (find_stream(control, name) >= 0)
		return schema_refuse(document, STREAM_TABLE, row, NAME, error, "is there twice");
	if (history != (values[TRIGGER].line != 0))
		return schema_refuse(document, STREAM_TABLE, row, TRIGGER, error,
				     history ? "is missing: a history is written when a trigger fires" : "only a history has triggers");
	if (!history && values[AFTER_MS].line)
		return schema_refuse(document, STREAM_TABLE, row, AFTER_MS, error, "only a history has triggers");
	snprintf(control->streams[number].name, EVENTS_STREAM_NAME_BYTES, "%s", name);
	control->streams[number].ring_slots = ring_slots_of(values[RING].integer);
	control->streams[number].history = history;
	control->streams[number].after_ms = (uint32_t)values[AFTER_MS].integer;
	if (history)
		control->streams[number].at_end = take_end(values[TRIGGER].text);
	if (list_names(control->streams[number].wanted, EVENTS_WANTED_BYTES, values[POINTS].text, "*"))
		return schema_refuse(document, STREAM_TABLE, row, POINTS, error, "no list of names of points, or too long");
	if (list_names(control->streams[number].triggers, EVENTS_TRIGGERS_BYTES, values[TRIGGER].text, NULL))
		return schema_refuse(document, STREAM_TABLE, row, TRIGGER, error, "no list of names of points, or too long");
	control->stream_count++;
	return 0;
}

static int take_filter(const struct schema_document *document, const struct schema_row *row, struct events_control *control,
		       struct schema_error *error)
{
	const struct schema_value *values = row->values;
	uint32_t number = control->filter_count;
	int stream = find_stream(control, values[FILTERED].text);

	if (number == EVENTS_FILTERS_MAX)
		return schema_refuse(document, FILTER_TABLE, row, -1, error, "one filter too many; allowed 0..%d", EVENTS_FILTERS_MAX);
	if (stream < 0)
		return schema_refuse(document, FILTER_TABLE, row, FILTERED, error, "there is no such [[stream]]");
	if (values[MIN].integer > values[MAX].integer)
		return schema_refuse(document, FILTER_TABLE, row, MIN, error, "is above max");
	control->filters[number].stream = (uint32_t)stream;
	control->filters[number].min = values[MIN].integer;
	control->filters[number].max = values[MAX].integer;
	control->filters[number].every = (uint32_t)values[EVERY].integer;
	if (list_names(control->filters[number].points, EVENTS_PATTERN_BYTES, values[FILTER_POINTS].text, "*"))
		return schema_refuse(document, FILTER_TABLE, row, FILTER_POINTS, error, "no list of names of points, or too long");
	control->filter_count++;
	return 0;
}

static int take_all(const struct schema_document *document, struct events_control *control, struct schema_error *error)
{
	int err = 0;

	for (size_t i = 0; !err && i < document->rows[STREAM_TABLE].count; i++)
		err = take_stream(document, &document->rows[STREAM_TABLE].rows[i], control, error);
	for (size_t i = 0; !err && i < document->rows[FILTER_TABLE].count; i++)
		err = take_filter(document, &document->rows[FILTER_TABLE].rows[i], control, error);
	return err;
}

static int64_t read_text(const char *path, char *text)
{
	FILE *file = fopen(path, "rb");
	size_t length;
	bool failed;

	if (!file)
		return -errno;
	length = fread(text, 1, FILE_BYTES_MAX, file);
	failed = ferror(file) != 0;
	fclose(file);
	return failed ? -EIO : length == FILE_BYTES_MAX ? -EFBIG : (int64_t)length;
}

int streams_file_read(const char *path, struct events_control *control, struct schema_error *error)
{
	static char text[FILE_BYTES_MAX];
	int64_t length = read_text(path, text);
	struct schema_document document;
	int err;

	if (length < 0) {
		snprintf(error->text, sizeof(error->text), "%s: %s", path, strerror((int)-length));
		return (int)length;
	}
	err = schema_read(path, text, (size_t)length, tables, TABLES, &document, error);
	if (err)
		return err;
	err = take_all(&document, control, error);
	schema_release(&document);
	return err;
}
