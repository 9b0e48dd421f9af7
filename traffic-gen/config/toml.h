/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Strict reader of a subset of TOML 1.0, one item at a time, without allocation.
 *
 * Read: comments, [table], [[array of tables]], bare keys, basic strings with their escapes, decimal 64-bit integers with
 * underscores, booleans, LF and CRLF line ends. Refused: all else of TOML (dotted and quoted keys, other strings, floats,
 * other bases, dates, arrays, inline tables), invalid UTF-8, control characters, and what TOML itself refuses.
 * Duplicate keys and tables are the caller's to refuse: the reader keeps no memory of them.
 */
#ifndef BW_TOML_H
#define BW_TOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOML_NAME_BYTES 64     /* keys and names of tables, with their terminating 0 */
#define TOML_STRING_BYTES 1024 /* decoded strings, with their terminating 0 */
#define TOML_ERROR_BYTES 160

enum toml_kind { TOML_TABLE, TOML_ARRAY_TABLE, TOML_STRING, TOML_INTEGER, TOML_BOOLEAN };

/** A header of a table, or a key with its value. */
struct toml_item {
	enum toml_kind kind;
	unsigned int line;            /* from 1 */
	char name[TOML_NAME_BYTES];   /* of the table or the key */
	int64_t integer;              /* TOML_INTEGER */
	bool boolean;                 /* TOML_BOOLEAN */
	char text[TOML_STRING_BYTES]; /* TOML_STRING: UTF-8 without U+0000 */
};

/** Where reading stands. The text must outlive the reader. */
struct toml_reader {
	const char *at;
	const char *end;
	unsigned int line;
	char error[TOML_ERROR_BYTES]; /* after -EINVAL: what is wrong in `line` */
};

void toml_init(struct toml_reader *reader, const char *text, size_t length);

/** Read the next item. Return 1, 0 at the end of the text, or -EINVAL with reader->error and reader->line. */
int toml_next(struct toml_reader *reader, struct toml_item *item);

/** Name of a kind for messages: "a string", "an integer". */
const char *toml_kind_name(enum toml_kind kind);

#endif
