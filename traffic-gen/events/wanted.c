/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "events/verbs.h"

const char *kind_name(uint32_t kind)
{
	static const char *const names[] = { "?", "event", "data", "interval", "counter", "histogram" };

	return names[kind < sizeof(names) / sizeof(*names) ? kind : 0];
}

static int add_one(const char *tool, char wanted[EVENTS_WANTED_BYTES], const char *pattern, char sign)
{
	char line[sizeof(((struct bw_point_description *)0)->group) + sizeof(((struct bw_point_description *)0)->name) + 4];
	size_t length = strlen(wanted);
	const char *text = pattern;

	if (*text == '+' || *text == '-')
		sign = *text++;
	if (!*text || strpbrk(text, " \n\t,")) {
		fprintf(stderr, "%s: \"%s\" names no points; give GROUP, or GROUP.NAME, with * and ?\n", tool, pattern);
		return -1;
	}
	if (snprintf(line, sizeof(line), "%c%s%s\n", sign, text, strchr(text, '.') || !strcmp(text, "*") ? "" : ".*") >= (int)sizeof(line)) {
		fprintf(stderr, "%s: \"%s\" is longer than any name of a point\n", tool, pattern);
		return -1;
	}
	if (length + strlen(line) >= EVENTS_WANTED_BYTES) {
		fprintf(stderr, "%s: no more than %d characters of names; turn whole groups on and off\n", tool, EVENTS_WANTED_BYTES);
		return -1;
	}
	/* Of a list that is changed again and again: what stands in it decides only by its last line. */
	strcpy(wanted + length, line);
	return 0;
}

/* Take earlier lines of the same pattern out. */
static void forget(char *wanted, const char *line)
{
	size_t length = strlen(line);

	for (char *at = wanted; *at;) {
		char *end = at + strcspn(at, "\n");
		bool same = (size_t)(end - at) + 1 == length && !memcmp(at + 1, line + 1, length - 1);

		if (same && end[1])
			memmove(at, end + 1, strlen(end + 1) + 1);
		else
			at = *end ? end + 1 : end;
	}
}

int wanted_add(const char *tool, char wanted[EVENTS_WANTED_BYTES], const char *const *patterns, int count, char sign)
{
	for (int i = 0; i < count; i++) {
		size_t before = strlen(wanted);
		char line[EVENTS_LINE_BYTES * 2];

		if (add_one(tool, wanted, patterns[i], sign))
			return -1;
		snprintf(line, sizeof(line), "%s", wanted + before);
		forget(wanted, line);
	}
	return 0;
}
