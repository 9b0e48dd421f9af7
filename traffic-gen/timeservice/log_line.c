/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/log_line.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/options.h"

/* The quote that ends a string; NULL: it does not end. */
static char *string_end(char *at)
{
	for (at++; *at && *at != '"'; at++)
		if (*at == '\\' && !*++at)
			return NULL;
	return *at ? at : NULL;
}

/* The character after a value; NULL: it does not end. */
static char *value_end(char *at)
{
	char *end;

	if (*at == '"') {
		end = string_end(at);
		return end ? end + 1 : NULL;
	}
	if (*at != '[')
		return at + strcspn(at, ",]}\" ");
	for (at++; *at && *at != ']'; at++) {
		if (*at == '[')
			return NULL;
		if (*at == '"' && !(at = string_end(at)))
			return NULL;
	}
	return *at ? at + 1 : NULL;
}

bool log_line_parse(char *text, struct log_line *line)
{
	char *at = text;

	line->count = 0;
	if (*at++ != '{')
		return false;
	for (;;) {
		struct log_field *field = &line->fields[line->count];
		char *key_end = *at == '"' ? string_end(at) : NULL, *end, mark;

		if (!key_end || key_end[1] != ':' || line->count++ == LOG_LINE_FIELDS - 1)
			return false;
		*key_end = '\0';
		field->key = at + 1;
		at = key_end + 2;
		end = value_end(at);
		if (!end || end == at)
			return false;
		mark = *end;
		field->value = at;
		if (*at == '"') {
			field->value = at + 1;
			end[-1] = '\0';
		}
		*end = '\0';
		if (mark == '}')
			return end[1] == '\0';
		if (mark != ',')
			return false;
		at = end + 1;
	}
}

const char *log_line_text(const struct log_line *line, const char *key)
{
	for (int i = 0; i < line->count; i++)
		if (strcmp(line->fields[i].key, key) == 0)
			return line->fields[i].value;
	return NULL;
}

bool log_line_int(const struct log_line *line, const char *key, int64_t min, int64_t max, int64_t *value)
{
	const char *text = log_line_text(line, key);

	return text && option_parse_int(text, min, max, value) == 0;
}

bool log_line_uint(const struct log_line *line, const char *key, uint64_t *value)
{
	const char *text = log_line_text(line, key);

	if (!text || !*text || text[strspn(text, "0123456789")])
		return false;
	errno = 0;
	*value = strtoull(text, NULL, 10);
	return errno == 0;
}

bool log_line_double(const struct log_line *line, const char *key, double *value)
{
	const char *text = log_line_text(line, key);
	char *end;

	if (!text || !*text || text[strspn(text, "+-.0123456789e")])
		return false;
	*value = strtod(text, &end);
	return !*end && isfinite(*value);
}

bool log_line_element(const struct log_line *line, const char *key, int index, char *text, int size_bytes)
{
	const char *at = log_line_text(line, key);
	size_t length;

	if (!at || *at++ != '[')
		return false;
	for (;; at++) {
		bool quoted = *at == '"';

		at += quoted;
		length = strcspn(at, quoted ? "\"" : ",]");
		if (index-- == 0)
			break;
		at += length + quoted;
		if (*at != ',')
			return false;
	}
	if (length == 0 || length >= (size_t)size_bytes)
		return false;
	memcpy(text, at, length);
	text[length] = '\0';
	return true;
}
