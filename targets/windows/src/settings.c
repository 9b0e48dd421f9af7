/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port_file.h"
#include "text.h"

enum { LINE_BYTES = 2048, WORDS = 3 };

/* Split a line into words; one in double quotes may hold blanks. @return their number, WORDS + 1 for too many */
static int split(char *line, char *words[WORDS])
{
	int count = 0;

	for (char *at = line;;) {
		char end;

		at += strspn(at, " \t\r\n");
		if (!*at)
			return count;
		if (count == WORDS)
			return WORDS + 1;
		end = *at == '"' ? '"' : ' ';
		if (end == '"')
			at++;
		words[count++] = at;
		while (*at && *at != end && (end == '"' || !strchr("\t\r\n", *at)))
			at++;
		if (*at)
			*at++ = '\0';
	}
}

static void add_why(char why[WHY_BYTES], char *comment)
{
	size_t used = strlen(why);

	comment++;
	comment += strspn(comment, " ");
	comment[strcspn(comment, "\r\n")] = '\0';
	snprintf(why + used, WHY_BYTES - used, "%s%s", used && *comment ? " " : "", comment);
}

bool settings_each(const char *path, setting_visit *visit, void *context, char error[ERROR_BYTES])
{
	char line[LINE_BYTES], *words[WORDS];
	struct setting setting = { .kind = NULL };
	FILE *file = file_open(path, "rb");

	if (!file) {
		snprintf(error, ERROR_BYTES, "%s cannot be read", path);
		return false;
	}
	for (int number = 1; fgets(line, sizeof(line), file); number++) {
		if (line[0] == '#') {
			add_why(setting.why, line);
			continue;
		}
		int count = split(line, words);

		if (count == WORDS) {
			setting.kind = kind_find(words[0]);
			snprintf(setting.name, sizeof(setting.name), "%s", words[1]);
			snprintf(setting.wanted, sizeof(setting.wanted), "%s", words[2]);
		}
		if (count != 0 && (count != WORDS || !setting.kind)) {
			snprintf(error, ERROR_BYTES, "%s:%d: %s", path, number,
				 count == WORDS ? "unknown kind" : "must be KIND NAME WANTED");
			fclose(file);
			return false;
		}
		if (count == WORDS)
			visit(context, &setting);
		setting.why[0] = '\0';
	}
	fclose(file);
	return true;
}

bool setting_met(const struct setting *setting, const char *value, char goal[VALUE_BYTES])
{
	const char *wanted = setting->wanted;
	bool least = strncmp(wanted, ">=", 2) == 0, most = strncmp(wanted, "<=", 2) == 0;
	char *end;
	long long found, bound;

	snprintf(goal, VALUE_BYTES, "%s", least || most ? wanted + 2 : wanted);
	if (!least && !most)
		return text_same(value, goal);
	found = strtoll(value, &end, 10);
	bound = strtoll(goal, NULL, 10);
	return end != value && !*end && (least ? found >= bound : found <= bound);
}
