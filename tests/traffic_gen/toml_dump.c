/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Reads TOML from stdin and prints each item as one JSON object, for comparison with another reader.
 * Exit 0: all was read; 1: refused, "line: why" on stderr; 3: stdin or memory failed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "config/toml.h"

#define TEXT_MAX_BYTES (1 << 20)

static void print_item(struct json *json, const struct toml_item *item)
{
	json_object_open(json, NULL);
	json_string(json, "kind", toml_kind_name(item->kind));
	json_string(json, "name", item->name);
	if (item->kind == TOML_STRING)
		json_string(json, "value", item->text);
	else if (item->kind == TOML_INTEGER)
		json_int(json, "value", item->integer);
	else if (item->kind == TOML_BOOLEAN)
		json_bool(json, "value", item->boolean);
	json_object_close(json);
	json_line_end(json);
}

int main(void)
{
	char *text = malloc(TEXT_MAX_BYTES);
	struct toml_reader reader;
	struct toml_item item;
	struct json json;
	int got;

	if (!text)
		return 3;
	toml_init(&reader, text, fread(text, 1, TEXT_MAX_BYTES, stdin));
	json_init(&json, stdout);
	while ((got = toml_next(&reader, &item)) > 0)
		print_item(&json, &item);
	if (got < 0)
		fprintf(stderr, "%u: %s\n", reader.line, reader.error);
	free(text);
	return ferror(stdin) ? 3 : got < 0;
}
