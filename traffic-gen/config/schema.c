/* SPDX-License-Identifier: Apache-2.0 */
#include "config/schema.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "config/toml.h"

#define HEX64_DIGITS 16
#define LABEL_BYTES 96
#define CHOICES_BYTES 160

/* One reading: the table whose keys are being read, if any. */
struct reading {
	struct schema_document *document;
	struct schema_error *error;
	const struct schema_table *table;
	size_t table_index;
	struct schema_row *row;
};

static int out_of_memory(struct schema_error *error, const char *path)
{
	snprintf(error->text, sizeof(error->text), "%s: out of memory", path);
	return -ENOMEM;
}

static int __attribute__((format(printf, 3, 4))) refuse_line(const struct reading *reading, unsigned int line,
							      const char *format, ...)
{
	char message[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	snprintf(reading->error->text, sizeof(reading->error->text), "%s:%u: %s", reading->document->path, line, message);
	return -EINVAL;
}

/* "[[stream]] id 31" or "[run]". */
static void describe_row(const struct schema_table *table, const struct schema_row *row, char text[LABEL_BYTES])
{
	const char *open = !*table->name ? "before the first table" : table->repeated ? "[[" : "[";
	const char *close = !*table->name ? "" : table->repeated ? "]]" : "]";
	const struct schema_value *label = table->label < 0 ? NULL : &row->values[table->label];

	if (!label || label->line == 0)
		snprintf(text, LABEL_BYTES, "%s%s%s", open, table->name, close);
	else if (label->text)
		snprintf(text, LABEL_BYTES, "%s%s%s %s \"%.32s\"", open, table->name, close,
			 table->fields[table->label].key, label->text);
	else
		snprintf(text, LABEL_BYTES, "%s%s%s %s %" PRId64, open, table->name, close,
			 table->fields[table->label].key, label->integer);
}

int schema_refuse(const struct schema_document *document, size_t table, const struct schema_row *row, int field,
		  struct schema_error *error, const char *format, ...)
{
	const struct schema_table *schema = &document->tables[table];
	unsigned int line = row->line;
	char label[LABEL_BYTES], message[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	describe_row(schema, row, label);
	if (field >= 0 && row->values[field].line)
		line = row->values[field].line;
	snprintf(error->text, sizeof(error->text), "%s:%u: %s%s%s: %s", document->path, line, label, field >= 0 ? ": " : "",
		 field >= 0 ? schema->fields[field].key : "", message);
	return -EINVAL;
}

static const char *type_name(enum schema_type type)
{
	switch (type) {
	case SCHEMA_INTEGER:
		return "an integer";
	case SCHEMA_BOOLEAN:
		return "a boolean";
	default:
		return "a string";
	}
}

static bool kind_fits(enum schema_type type, enum toml_kind kind)
{
	switch (type) {
	case SCHEMA_INTEGER:
		return kind == TOML_INTEGER;
	case SCHEMA_BOOLEAN:
		return kind == TOML_BOOLEAN;
	default:
		return kind == TOML_STRING;
	}
}

static int parse_hex64(const char *text, int64_t *bits)
{
	uint64_t value = 0;

	if (strlen(text) != HEX64_DIGITS || strspn(text, "0123456789abcdefABCDEF") != HEX64_DIGITS)
		return -EINVAL;
	value = strtoull(text, NULL, 16);
	*bits = (int64_t)value;
	return 0;
}

static int check_choice(const struct reading *reading, int index, struct schema_value *value)
{
	const struct schema_field *field = &reading->table->fields[index];
	char allowed[CHOICES_BYTES] = "";
	size_t used = 0;

	for (int64_t i = 0; field->choices[i]; i++) {
		if (strcmp(field->choices[i], value->text) == 0) {
			value->integer = i;
			return 0;
		}
		used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s\"%s\"", i ? ", " : "", field->choices[i]);
		assert(used < sizeof(allowed));
	}
	return schema_refuse(reading->document, reading->table_index, reading->row, index, reading->error,
			     "\"%.64s\" is unknown; allowed %s", value->text, allowed);
}

/* Check a value that is there, and decode it. */
static int check_value(const struct reading *reading, int index)
{
	const struct schema_field *field = &reading->table->fields[index];
	struct schema_value *value = &reading->row->values[index];
	const char *problem = NULL;
	uint32_t ipv4;

	switch (field->type) {
	case SCHEMA_BOOLEAN:
		return 0;
	case SCHEMA_INTEGER:
		if (value->integer >= field->min && value->integer <= field->max)
			return 0;
		return schema_refuse(reading->document, reading->table_index, reading->row, index, reading->error,
				     "%" PRId64 " is out of range; allowed %" PRId64 "..%" PRId64, value->integer,
				     field->min, field->max);
	case SCHEMA_TEXT:
		if ((int64_t)strlen(value->text) >= field->min && (int64_t)strlen(value->text) <= field->max)
			return 0;
		return schema_refuse(reading->document, reading->table_index, reading->row, index, reading->error,
				     "%u bytes; allowed %" PRId64 "..%" PRId64 " bytes", (unsigned int)strlen(value->text),
				     field->min, field->max);
	case SCHEMA_CHOICE:
		return check_choice(reading, index, value);
	case SCHEMA_HEX64:
		if (parse_hex64(value->text, &value->integer))
			problem = "allowed exactly 16 hexadecimal digits";
		break;
	case SCHEMA_IPV4:
		if (address_parse_ipv4(value->text, &ipv4))
			problem = "allowed an IPv4 address, 0.0.0.0..255.255.255.255";
		else
			value->integer = ipv4;
		break;
	case SCHEMA_IP:
		if (address_parse_ip(value->text, &value->address))
			problem = "allowed an address of IPv4 (\"10.77.0.1\") or IPv6 (\"fd77::1\")";
		break;
	}
	if (!problem)
		return 0;
	return schema_refuse(reading->document, reading->table_index, reading->row, index, reading->error, "\"%.64s\"; %s",
			     value->text, problem);
}

/* Check the row that has just ended, when its label is known. */
static int finish_row(struct reading *reading)
{
	if (!reading->row)
		return 0;
	for (int i = 0; i < (int)reading->table->field_count; i++) {
		const struct schema_field *field = &reading->table->fields[i];
		struct schema_value *value = &reading->row->values[i];
		int err;

		if (value->line) {
			err = check_value(reading, i);
			if (err)
				return err;
		} else if (field->optional) {
			value->integer = field->default_value;
		} else {
			return schema_refuse(reading->document, reading->table_index, reading->row, i, reading->error,
					     "missing");
		}
	}
	return 0;
}

static int add_row(struct schema_rows *rows, struct schema_row **row)
{
	if (rows->count == rows->capacity) {
		size_t capacity = rows->capacity ? 2 * rows->capacity : 16;
		struct schema_row *grown = realloc(rows->rows, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		rows->rows = grown;
		rows->capacity = capacity;
	}
	*row = &rows->rows[rows->count++];
	memset(*row, 0, sizeof(**row));
	return 0;
}

/* Returns table_count: there is none. */
static size_t find_table(const struct schema_document *document, const char *name)
{
	size_t index = 0;

	while (index < document->table_count && strcmp(document->tables[index].name, name) != 0)
		index++;
	return index;
}

static int begin_row(struct reading *reading, const struct toml_item *item)
{
	struct schema_document *document = reading->document;
	bool repeated = item->kind == TOML_ARRAY_TABLE;
	size_t index = find_table(document, item->name);

	if (index == document->table_count)
		return refuse_line(reading, item->line, "unknown table \"%s\"", item->name);
	reading->table = &document->tables[index];
	reading->table_index = index;
	if (reading->table->repeated != repeated)
		return refuse_line(reading, item->line, "table \"%s\" is written %s%s%s", item->name,
				   repeated ? "[" : "[[", item->name, repeated ? "]" : "]]");
	if (!repeated && document->rows[index].count)
		return refuse_line(reading, item->line, "duplicate table [%s]; the first is in line %u", item->name,
				   document->rows[index].rows[0].line);
	if (add_row(&document->rows[index], &reading->row))
		return out_of_memory(reading->error, document->path);
	reading->row->line = item->line;
	return 0;
}

static int take_value(struct reading *reading, const struct toml_item *item)
{
	const struct schema_document *document = reading->document;
	struct schema_value *value;
	char label[LABEL_BYTES];
	int index = 0;

	if (!reading->row && find_table(document, "") < document->table_count) {
		const struct toml_item nameless = { .kind = TOML_TABLE, .line = item->line };
		int err = begin_row(reading, &nameless);

		if (err)
			return err;
	}
	if (!reading->row)
		return refuse_line(reading, item->line, "key \"%s\" stands before the first table", item->name);
	while (index < (int)reading->table->field_count && strcmp(reading->table->fields[index].key, item->name) != 0)
		index++;
	if (index == (int)reading->table->field_count) {
		describe_row(reading->table, reading->row, label);
		return refuse_line(reading, item->line, "%s: unknown key \"%s\"", label, item->name);
	}
	value = &reading->row->values[index];
	if (value->line) {
		describe_row(reading->table, reading->row, label);
		return refuse_line(reading, item->line, "%s: duplicate key \"%s\"; the first is in line %u", label,
				   item->name, value->line);
	}
	if (!kind_fits(reading->table->fields[index].type, item->kind)) {
		describe_row(reading->table, reading->row, label);
		return refuse_line(reading, item->line, "%s: %s: %s; allowed %s", label, item->name,
				   toml_kind_name(item->kind), type_name(reading->table->fields[index].type));
	}
	value->line = item->line;
	value->integer = item->kind == TOML_BOOLEAN ? item->boolean : item->integer;
	if (item->kind == TOML_STRING) {
		value->text = strdup(item->text);
		if (!value->text)
			return out_of_memory(reading->error, document->path);
	}
	return 0;
}

static int check_tables(const struct reading *reading)
{
	const struct schema_document *document = reading->document;

	for (size_t i = 0; i < document->table_count; i++) {
		const struct schema_table *table = &document->tables[i];

		if (document->rows[i].count || table->optional)
			continue;
		if (!*table->name)
			snprintf(reading->error->text, sizeof(reading->error->text), "%s: %s is missing; it stands before the first table",
				 document->path, table->fields[0].key);
		else
			snprintf(reading->error->text, sizeof(reading->error->text), "%s: table %s%s%s is missing", document->path,
				 table->repeated ? "[[" : "[", table->name, table->repeated ? "]]" : "]");
		return -EINVAL;
	}
	return 0;
}

static int read_items(struct reading *reading, struct toml_reader *toml)
{
	struct toml_item item = { 0 };
	int got, err;

	while ((got = toml_next(toml, &item)) > 0) {
		if (item.kind == TOML_TABLE || item.kind == TOML_ARRAY_TABLE) {
			err = finish_row(reading);
			if (!err)
				err = begin_row(reading, &item);
		} else {
			err = take_value(reading, &item);
		}
		if (err)
			return err;
	}
	if (got < 0)
		return refuse_line(reading, toml->line, "%s", toml->error);
	err = finish_row(reading);
	return err ? err : check_tables(reading);
}

int schema_read(const char *path, const char *text, size_t length, const struct schema_table *tables, size_t table_count,
		struct schema_document *document, struct schema_error *error)
{
	struct reading reading = { .document = document, .error = error };
	struct toml_reader toml;
	int err;

	assert(table_count <= SCHEMA_TABLES_MAX);
	memset(document, 0, sizeof(*document));
	document->path = path;
	document->tables = tables;
	document->table_count = table_count;
	toml_init(&toml, text, length);
	err = read_items(&reading, &toml);
	if (err)
		schema_release(document);
	return err;
}

void schema_release(struct schema_document *document)
{
	for (size_t i = 0; i < document->table_count; i++) {
		struct schema_rows *rows = &document->rows[i];

		for (size_t j = 0; j < rows->count; j++)
			for (size_t k = 0; k < document->tables[i].field_count; k++)
				free(rows->rows[j].values[k].text);
		free(rows->rows);
		memset(rows, 0, sizeof(*rows));
	}
}
