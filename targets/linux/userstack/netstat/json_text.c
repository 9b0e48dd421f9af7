/* SPDX-License-Identifier: Apache-2.0 */
#include "netstat/json_text.h"

#include <stdlib.h>
#include <string.h>

/* What follows a string; NULL: it does not end. */
static const char *skip_string(const char *text)
{
	for (text++; *text != '"'; text++) {
		if (*text == '\\')
			text++;
		if (!*text)
			return NULL;
	}
	return text + 1;
}

/* What follows a value; NULL: it is broken off. */
static const char *skip(const char *value)
{
	unsigned int depth = 0;

	do {
		if (*value == '"')
			value = skip_string(value);
		else if (*value == '{' || *value == '[')
			depth++, value++;
		else if (depth && (*value == '}' || *value == ']'))
			depth--, value++;
		else if (depth && (*value == ',' || *value == ':'))
			value++;
		else if (*value && !strchr(",:]}", *value))
			value += strcspn(value, ",:]}[{\"");
		else
			return NULL;
	} while (value && depth);
	return value;
}

const char *json_text_member(const char *object, const char *key)
{
	const size_t key_bytes = strlen(key);
	const char *name = object && *object == '{' ? object + 1 : NULL;

	while (name && *name == '"') {
		const char *end = skip_string(name), *after;

		if (!end || *end != ':')
			return NULL;
		if ((size_t)(end - name) == key_bytes + 2 && !memcmp(name + 1, key, key_bytes))
			return end + 1;
		after = skip(end + 1);
		name = after && *after == ',' ? after + 1 : NULL;
	}
	return NULL;
}

const char *json_text_first(const char *array)
{
	return array && *array == '[' && array[1] != ']' ? array + 1 : NULL;
}

const char *json_text_next(const char *element)
{
	const char *after = element ? skip(element) : NULL;

	return after && *after == ',' ? after + 1 : NULL;
}

uint64_t json_text_number(const char *value)
{
	return value && *value >= '0' && *value <= '9' ? strtoull(value, NULL, 10) : 0;
}

const char *json_text_string(const char *value, char *to, size_t bytes)
{
	enum { HEX_DIGITS = 4 };
	size_t used = 0;

	for (value = value && *value == '"' ? value + 1 : ""; *value && *value != '"' && used + 1 < bytes; value++) {
		char each = *value;

		if (each == '\\' && value[1]) {
			each = *++value;
			if (each == 'u') {
				for (int i = 0; i < HEX_DIGITS && value[1] && value[1] != '"'; i++)
					value++;
				each = '?';
			}
		}
		to[used++] = each >= ' ' && each <= '~' ? each : '?';
	}
	to[used] = '\0';
	return to;
}
