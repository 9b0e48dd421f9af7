/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Table-driven reading of a TOML file: one row a key with its type, range and default.
 *
 * The reader refuses unknown tables and keys, duplicate keys and tables, wrong types, values out of range and missing
 * keys. An error is one line, "path:line: [[stream]] id 31: size_bytes: 5 is out of range; allowed 10..16777216".
 */
#ifndef BW_SCHEMA_H
#define BW_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

#define SCHEMA_TABLES_MAX 8
#define SCHEMA_FIELDS_MAX 28

/** What is wrong with a file, in one line without a line end: "file:line: table, field: what; allowed range". */
struct schema_error {
	char text[512];
};

enum schema_type {
	SCHEMA_INTEGER, /* min..max */
	SCHEMA_BOOLEAN,
	SCHEMA_TEXT,    /* of min..max bytes */
	SCHEMA_CHOICE,  /* one of choices; integer is its index */
	SCHEMA_HEX64,   /* exactly 16 hexadecimal digits; the bits are in integer */
	SCHEMA_IPV4,    /* dotted quad; host byte order in integer */
	SCHEMA_IP,      /* the same, or an address of IPv6; in address */
};

struct schema_field {
	const char *key;
	enum schema_type type;
	int64_t min;
	int64_t max;
	const char *const *choices; /* ends with NULL */
	bool optional;              /* then default_value is used: an integer, boolean, choice or address */
	int64_t default_value;
};

struct schema_table {
	const char *name; /* "": of the keys before the first table */
	bool repeated;  /* [[name]], once at least; otherwise [name], exactly once */
	int label;      /* field that names a row in errors, or -1 */
	size_t field_count;
	const struct schema_field *fields;
	bool optional;  /* the table may be absent */
};

struct schema_value {
	unsigned int line; /* 0: absent */
	int64_t integer;
	struct address address;
	char *text;        /* SCHEMA_TEXT, SCHEMA_CHOICE, SCHEMA_HEX64, SCHEMA_IPV4, SCHEMA_IP: as written; NULL when absent */
};

struct schema_row {
	unsigned int line; /* of the header */
	struct schema_value values[SCHEMA_FIELDS_MAX]; /* by index of the field */
};

struct schema_rows {
	size_t count;
	size_t capacity;
	struct schema_row *rows;
};

struct schema_document {
	const char *path;
	size_t table_count;
	const struct schema_table *tables;
	struct schema_rows rows[SCHEMA_TABLES_MAX]; /* by index of the table */
};

/**
 * Read a text by its schema. Return 0 with *document filled (schema_release()), -EINVAL or -ENOMEM with error filled
 * and nothing to release. `path` and `tables` must outlive the document.
 */
int schema_read(const char *path, const char *text, size_t length, const struct schema_table *tables, size_t table_count,
		struct schema_document *document, struct schema_error *error);

void schema_release(struct schema_document *document);

/**
 * Refuse a value that was read: fill in error with file, line, table, row, field and the message. Return -EINVAL.
 * With field -1 the row itself is refused.
 */
int schema_refuse(const struct schema_document *document, size_t table, const struct schema_row *row, int field,
		  struct schema_error *error, const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
