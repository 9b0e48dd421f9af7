/* SPDX-License-Identifier: Apache-2.0 */
#include "undo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port_file.h"

#define UNDO_SCHEMA "benchwright.undo/1"
#define END "end"

enum { LINE_BYTES = 32 + PLACE_BYTES + VALUE_BYTES + 16 };

/* Take a line apart. @return false where its end is missing: it was cut off */
static bool parse_line(char *line, struct undo_record *record)
{
	char *fields[4];
	int count = 0;

	line[strcspn(line, "\r\n")] = '\0';
	for (char *rest = line; rest && count < 4; count++) {
		char *tab = strchr(rest, '\t');

		fields[count] = rest;
		if (tab)
			*tab = '\0';
		rest = tab ? tab + 1 : NULL;
	}
	if (count != 4 || strcmp(fields[3], END) != 0)
		return false;
	snprintf(record->kind, sizeof(record->kind), "%s", fields[0]);
	snprintf(record->place, sizeof(record->place), "%s", fields[1]);
	snprintf(record->value, sizeof(record->value), "%s", fields[2]);
	return true;
}

/* Read the first line; it may have been cut off, too. */
static bool starts_rightly(FILE *file)
{
	char line[LINE_BYTES] = "";

	if (!fgets(line, sizeof(line), file))
		return feof(file) && !ferror(file);
	line[strcspn(line, "\r\n")] = '\0';
	return strncmp(UNDO_SCHEMA, line, strlen(line)) == 0;
}

int undo_load(const char *path, struct undo_record *records, int capacity)
{
	char line[LINE_BYTES];
	FILE *file = file_open(path, "rb");
	int count = 0;
	bool good;

	if (!file)
		return errno == ENOENT ? 0 : -errno;
	good = starts_rightly(file);
	while (good && fgets(line, sizeof(line), file)) {
		struct undo_record record;

		if (!parse_line(line, &record))
			continue;
		good = count < capacity;
		if (good)
			records[count++] = record;
	}
	good = good && !ferror(file);
	fclose(file);
	return good ? count : -EILSEQ;
}

/* A value with a tab or a line end would be another one when it is read again. */
static bool can_be_kept(const char *text)
{
	return !strpbrk(text, "\t\r\n");
}

bool undo_record(const char *path, const char *kind, const char *place, const char *value)
{
	struct undo_record *records = calloc(UNDO_MAX, sizeof(*records));
	int count = records ? undo_load(path, records, UNDO_MAX) : -ENOMEM;
	bool done = count >= 0 && count < UNDO_MAX && can_be_kept(place) && can_be_kept(value), known = false;
	FILE *file;

	for (int i = 0; done && i < count; i++)
		known = known || (strcmp(records[i].kind, kind) == 0 && strcmp(records[i].place, place) == 0);
	free(records);
	if (!done || known)
		return done;
	file = file_open(path, "ab");
	if (!file)
		return false;
	/* A line that was cut off is closed first. */
	fseek(file, 0, SEEK_END);
	fprintf(file, "%s%s\t%s\t%s\t" END "\n", ftell(file) ? "\n" : UNDO_SCHEMA "\n", kind, place, value);
	return file_close_on_disk(file);
}

bool undo_keep(const char *path, const struct undo_record *records, int count)
{
	char fresh[PATH_BYTES];
	FILE *file;

	if (count == 0)
		return file_remove(path);
	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return false;
	file = file_open(fresh, "wb");
	if (!file)
		return false;
	fprintf(file, UNDO_SCHEMA "\n");
	for (int i = 0; i < count; i++)
		fprintf(file, "%s\t%s\t%s\t" END "\n", records[i].kind, records[i].place, records[i].value);
	return file_close_on_disk(file) && file_replace(fresh, path);
}
