/* SPDX-License-Identifier: Apache-2.0 */
#include "events/points_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/toml.h"

enum { FILE_BYTES_MAX = 4 << 20 };
enum { PROGRAM_TABLE, POINT_TABLE, TABLES };
enum { PROGRAM, PROGRAM_FIELDS };
enum { GROUP, NAME, KIND, DECODER, ABOUT, LOW, HIGH, BUCKETS, POINT_FIELDS };

#define ROOM(field) (sizeof(((struct bw_point_description *)0)->field) - 1)

static const char *const kinds[] = { "event", "data", "interval", "counter", "histogram", NULL }; /* by enum bw_point_kind, from 1 */

static const struct schema_field program_fields[PROGRAM_FIELDS] = {
	[PROGRAM] = { "program", SCHEMA_TEXT, 1, TOML_STRING_BYTES - 1, NULL, false, 0 },
};

static const struct schema_field point_fields[POINT_FIELDS] = {
	[GROUP] = { "group", SCHEMA_TEXT, 1, ROOM(group), NULL, false, 0 },
	[NAME] = { "name", SCHEMA_TEXT, 1, ROOM(name), NULL, false, 0 },
	[KIND] = { "kind", SCHEMA_CHOICE, 0, 0, kinds, false, 0 },
	[DECODER] = { "decoder", SCHEMA_TEXT, 1, ROOM(decoder), NULL, true, 0 },
	[ABOUT] = { "about", SCHEMA_TEXT, 0, ROOM(about), NULL, true, 0 },
	[LOW] = { "low", SCHEMA_INTEGER, INT64_MIN, INT64_MAX, NULL, true, 0 },
	[HIGH] = { "high", SCHEMA_INTEGER, INT64_MIN, INT64_MAX, NULL, true, 0 },
	[BUCKETS] = { "buckets", SCHEMA_INTEGER, 1, BW_HISTOGRAM_BUCKETS_MAX, NULL, true, 0 },
};

static const struct schema_table tables[TABLES] = {
	[PROGRAM_TABLE] = { "", false, -1, PROGRAM_FIELDS, program_fields, false },
	[POINT_TABLE] = { "point", true, NAME, POINT_FIELDS, point_fields, false },
};

/* Keys that only points of one kind have, and have to have. */
static int check_keys(const struct schema_document *document, const struct schema_row *row, struct schema_error *error)
{
	const int64_t kind = row->values[KIND].integer + 1;

	for (int field = DECODER; field < POINT_FIELDS; field++) {
		bool is_there = row->values[field].line != 0;
		int64_t whose = field == DECODER ? BW_POINT_DATA : BW_POINT_HISTOGRAM;

		if (field != ABOUT && is_there != (kind == whose))
			return schema_refuse(document, POINT_TABLE, row, field, error, is_there ? "only a point of kind %s has it" : "missing; a point of kind %s has it",
					     kinds[whose - 1]);
	}
	return 0;
}

static void set_text(char *text, size_t room, const struct schema_value *value)
{
	snprintf(text, room, "%s", value->text ? value->text : "");
}

static int take_point(const struct schema_document *document, const struct schema_row *row, struct bw_point_description *description,
		      struct schema_error *error)
{
	const struct schema_value *values = row->values;
	int err = check_keys(document, row, error);

	if (err)
		return err;
	set_text(description->group, sizeof(description->group), &values[GROUP]);
	set_text(description->name, sizeof(description->name), &values[NAME]);
	set_text(description->decoder, sizeof(description->decoder), &values[DECODER]);
	set_text(description->about, sizeof(description->about), &values[ABOUT]);
	description->kind = (uint32_t)values[KIND].integer + 1;
	description->buckets = (uint32_t)values[BUCKETS].integer;
	description->low = values[LOW].integer;
	description->high = values[HIGH].integer;
	if (events_description_check(description))
		return schema_refuse(document, POINT_TABLE, row, -1, error,
				     "group and name have no space and none of * ? . + , ; no text has a line end; low is below high");
	return 0;
}

static int64_t take_all(const struct schema_document *document, struct bw_point_description **descriptions_out, struct schema_error *error)
{
	const struct schema_rows *rows = &document->rows[POINT_TABLE];
	struct bw_point_description *all;
	int err = 0;

	if (rows->count > EVENTS_POINTS_MAX)
		return schema_refuse(document, POINT_TABLE, &rows->rows[EVENTS_POINTS_MAX], -1, error, "one point too many; allowed 1..%d",
				     EVENTS_POINTS_MAX);
	all = calloc(rows->count, sizeof(*all));
	if (!all) {
		snprintf(error->text, sizeof(error->text), "%s: %s", document->path, strerror(ENOMEM));
		return -ENOMEM;
	}
	for (size_t i = 0; !err && i < rows->count; i++)
		err = take_point(document, &rows->rows[i], &all[i], error);
	if (!err) {
		err = events_descriptions_distinct(all, (uint32_t)rows->count);
		if (err)
			snprintf(error->text, sizeof(error->text), "%s: %s", document->path,
				 err == -EINVAL ? "a group has a name twice" : strerror(-err));
	}
	if (err) {
		free(all);
		return err;
	}
	*descriptions_out = all;
	return (int64_t)rows->count;
}

/* Returns its length, or -errno; the caller frees it. */
static int64_t read_text(const char *path, char **text_out)
{
	FILE *file = fopen(path, "rb");
	char *text = malloc(FILE_BYTES_MAX);
	size_t length = 0;
	int err = !file ? -errno : !text ? -ENOMEM : 0;

	if (!err) {
		length = fread(text, 1, FILE_BYTES_MAX, file);
		err = ferror(file) ? -EIO : length == FILE_BYTES_MAX ? -EFBIG : 0;
	}
	if (file)
		fclose(file);
	*text_out = text;
	return err ? err : (int64_t)length;
}

int64_t points_text_read(const char *path, const char *text, size_t length, struct bw_point_description **descriptions_out,
			 struct schema_error *error)
{
	struct schema_document document;
	int64_t found;

	*descriptions_out = NULL;
	found = schema_read(path, text, length, tables, TABLES, &document, error);
	if (found)
		return found;
	found = take_all(&document, descriptions_out, error);
	schema_release(&document);
	return found;
}

int64_t points_file_read(const char *path, struct bw_point_description **descriptions_out, struct schema_error *error)
{
	char *text;
	int64_t length = read_text(path, &text), found = length;

	if (length < 0)
		snprintf(error->text, sizeof(error->text), "%s: %s", path, strerror((int)-length));
	else
		found = points_text_read(path, text, (size_t)length, descriptions_out, error);
	free(text);
	return found;
}
