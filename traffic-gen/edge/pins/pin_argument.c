/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/pins/pin_argument.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/options.h"

enum { VALUE_BYTES = 32 };

static const struct pin_key *find_key(const struct pin_key *keys, const char *text, size_t length)
{
	for (const struct pin_key *key = keys; key->name; key++) {
		if (strlen(key->name) == length && memcmp(key->name, text, length) == 0)
			return key;
	}
	return NULL;
}

static int parse_value(const struct pin_key *key, const char *value, char *error, size_t error_bytes)
{
	size_t used;

	if (!key->words) {
		if (option_parse_int(value, key->min, key->max, key->value) == 0)
			return 0;
		snprintf(error, error_bytes, "%s: must be in %" PRId64 "..%" PRId64 ", found \"%s\"", key->name, key->min, key->max,
			 value);
		return -EINVAL;
	}
	for (int i = 0; key->words[i]; i++) {
		if (strcmp(key->words[i], value) == 0) {
			*key->value = i;
			return 0;
		}
	}
	used = (size_t)snprintf(error, error_bytes, "%s: unknown \"%s\"; allowed:", key->name, value);
	for (int i = 0; key->words[i] && used < error_bytes; i++)
		used += (size_t)snprintf(error + used, error_bytes - used, " %s", key->words[i]);
	return -EINVAL;
}

/* One KEY=VALUE of a length. */
static int parse_item(const char *item, size_t length, const struct pin_key *keys, char *error, size_t error_bytes)
{
	const char *equals = memchr(item, '=', length);
	const struct pin_key *key = equals ? find_key(keys, item, (size_t)(equals - item)) : NULL;
	char value[VALUE_BYTES];
	size_t value_length;

	if (!key) {
		snprintf(error, error_bytes, "unknown \"%.*s\"", (int)length, item);
		return -EINVAL;
	}
	value_length = length - (size_t)(equals + 1 - item);
	if (value_length >= sizeof(value)) {
		snprintf(error, error_bytes, "%s: too long", key->name);
		return -EINVAL;
	}
	memcpy(value, equals + 1, value_length);
	value[value_length] = '\0';
	return parse_value(key, value, error, error_bytes);
}

int pin_argument_parse(const char *argument, char *path, const struct pin_key *keys, char *error, size_t error_bytes)
{
	size_t length = strcspn(argument, ",");

	if (length == 0 || length >= PIN_PATH_BYTES) {
		snprintf(error, error_bytes, "no path, or one of more than %d characters", PIN_PATH_BYTES - 1);
		return -EINVAL;
	}
	memcpy(path, argument, length);
	path[length] = '\0';
	while (argument[length] == ',') {
		int err;

		argument += length + 1;
		length = strcspn(argument, ",");
		err = parse_item(argument, length, keys, error, error_bytes);
		if (err)
			return err;
	}
	return 0;
}
