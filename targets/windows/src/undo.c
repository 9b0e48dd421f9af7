/* SPDX-License-Identifier: Apache-2.0 */
#include "undo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port_file.h"

#define UNDO_SCHEMA "benchwright.undo/1"
#define END "end"

enum { LINE_BYTES = 32 + PLACE_BYTES + VALUE_BYTES + 16 };

/* Take a line apart. @return false where its end is missing */
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

int undo_load(const char *path, struct undo_record *records, int capacity)
{
	char line[LINE_BYTES];
	FILE *file = fopen(path, "rb");
	int count = 0;

	if (!file)
		return 0;
	while (count < capacity && fgets(line, sizeof(line), file)) {
		if (parse_line(line, &records[count]))
			count++;
	}
	fclose(file);
	return count;
}

bool undo_record(const char *path, const char *kind, const char *place, const char *value)
{
	struct undo_record *records = calloc(UNDO_MAX, sizeof(*records));
	int count = records ? undo_load(path, records, UNDO_MAX) : UNDO_MAX;
	bool done = count < UNDO_MAX, known = false;
	FILE *file;

	for (int i = 0; done && i < count; i++)
		known = known || (strcmp(records[i].kind, kind) == 0 && strcmp(records[i].place, place) == 0);
	free(records);
	if (!done || known)
		return done;
	file = fopen(path, "ab");
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
		return !remove(path) || !file_exists(path);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	file = fopen(fresh, "wb");
	if (!file)
		return false;
	fprintf(file, UNDO_SCHEMA "\n");
	for (int i = 0; i < count; i++)
		fprintf(file, "%s\t%s\t%s\t" END "\n", records[i].kind, records[i].place, records[i].value);
	return file_close_on_disk(file) && file_replace(fresh, path);
}
