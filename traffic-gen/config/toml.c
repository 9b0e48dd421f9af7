/* SPDX-License-Identifier: Apache-2.0 */
#include "config/toml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define END_OF_TEXT (-1)

static int __attribute__((format(printf, 2, 3))) refuse(struct toml_reader *reader, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reader->error, sizeof(reader->error), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

void toml_init(struct toml_reader *reader, const char *text, size_t length)
{
	static const char BYTE_ORDER_MARK[] = { '\xef', '\xbb', '\xbf' };

	reader->at = text;
	reader->end = text + length;
	if (length >= sizeof(BYTE_ORDER_MARK) && memcmp(text, BYTE_ORDER_MARK, sizeof(BYTE_ORDER_MARK)) == 0)
		reader->at += sizeof(BYTE_ORDER_MARK);
	reader->line = 1;
	reader->error[0] = '\0';
}

const char *toml_kind_name(enum toml_kind kind)
{
	static const char *const NAMES[] = {
		[TOML_TABLE] = "a table",	[TOML_ARRAY_TABLE] = "an array of tables", [TOML_STRING] = "a string",
		[TOML_INTEGER] = "an integer", [TOML_BOOLEAN] = "a boolean",
	};

	return NAMES[kind];
}

static int peek_at(const struct toml_reader *reader, size_t ahead)
{
	return (size_t)(reader->end - reader->at) > ahead ? (unsigned char)reader->at[ahead] : END_OF_TEXT;
}

static int peek(const struct toml_reader *reader)
{
	return peek_at(reader, 0);
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool is_bare(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '-';
}

static void skip_blanks(struct toml_reader *reader)
{
	while (peek(reader) == ' ' || peek(reader) == '\t')
		reader->at++;
}

static bool at_line_end(const struct toml_reader *reader)
{
	int c = peek(reader);

	return c == END_OF_TEXT || c == '\n' || (c == '\r' && peek_at(reader, 1) == '\n');
}

/* Length of the valid UTF-8 sequence (RFC 3629) at the reader, or 0. */
static size_t utf8_length(const struct toml_reader *reader)
{
	int lead = peek(reader), second = peek_at(reader, 1);
	int low = 0x80, high = 0xbf; /* of the second byte */
	size_t length;

	if (lead < 0x80)
		return lead == END_OF_TEXT ? 0 : 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		length = 2;
	else if (lead >= 0xe0 && lead <= 0xef)
		length = 3;
	else if (lead >= 0xf0 && lead <= 0xf4)
		length = 4;
	else
		return 0;
	if (lead == 0xe0)
		low = 0xa0; /* no over-long forms */
	else if (lead == 0xed)
		high = 0x9f; /* no surrogates */
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f; /* nothing over U+10FFFF */
	if (second < low || second > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if (peek_at(reader, i) < 0x80 || peek_at(reader, i) > 0xbf)
			return 0;
	return length;
}

/* Length of the character at the reader if a comment or string may hold it; 0 after an error. */
static size_t character_length(struct toml_reader *reader)
{
	int c = peek(reader);
	size_t length;

	if ((c < 0x20 && c != '\t') || c == 0x7f) {
		refuse(reader, "control character 0x%02x", (unsigned int)c & 0xffU);
		return 0;
	}
	length = utf8_length(reader);
	if (length == 0)
		refuse(reader, "byte 0x%02x is not UTF-8", (unsigned int)c & 0xffU);
	return length;
}

static int skip_comment(struct toml_reader *reader)
{
	if (peek(reader) != '#')
		return 0;
	while (!at_line_end(reader)) {
		size_t length = character_length(reader);

		if (length == 0)
			return -EINVAL;
		reader->at += length;
	}
	return 0;
}

/* Pass blanks, a comment and the line end (or the end of the text). */
static int finish_line(struct toml_reader *reader)
{
	skip_blanks(reader);
	if (skip_comment(reader))
		return -EINVAL;
	if (!at_line_end(reader))
		return refuse(reader, "nothing but a comment may follow here");
	if (peek(reader) == '\r')
		reader->at++;
	if (peek(reader) == '\n') {
		reader->at++;
		reader->line++;
	}
	return 0;
}

static int read_name(struct toml_reader *reader, const char *what, char name[TOML_NAME_BYTES])
{
	size_t length = 0;

	while (is_bare(peek_at(reader, length)))
		length++;
	if (length == 0)
		return refuse(reader, "%s expected, of letters, digits, _ and - only", what);
	if (length >= TOML_NAME_BYTES)
		return refuse(reader, "%s is too long; allowed 1..%d characters", what, TOML_NAME_BYTES - 1);
	memcpy(name, reader->at, length);
	name[length] = '\0';
	reader->at += length;
	return 0;
}

static int read_header(struct toml_reader *reader, struct toml_item *item)
{
	bool array = peek_at(reader, 1) == '[';

	item->kind = array ? TOML_ARRAY_TABLE : TOML_TABLE;
	reader->at += array ? 2 : 1;
	skip_blanks(reader);
	if (read_name(reader, "name of a table", item->name))
		return -EINVAL;
	skip_blanks(reader);
	if (peek(reader) != ']' || (array && peek_at(reader, 1) != ']'))
		return refuse(reader, "%s expected after the name of the table", array ? "]]" : "]");
	reader->at += array ? 2 : 1;
	return 0;
}

/* Read the hexadecimal digits of \u and \U. Return the code point, or -EINVAL. */
static int64_t read_code_point(struct toml_reader *reader, unsigned int digits)
{
	int64_t code = 0;

	for (unsigned int i = 0; i < digits; i++) {
		int c = peek(reader);

		if (is_digit(c))
			code = code * 16 + (c - '0');
		else if (c >= 'a' && c <= 'f')
			code = code * 16 + (c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			code = code * 16 + (c - 'A' + 10);
		else
			return refuse(reader, "escape needs %u hexadecimal digits", digits);
		reader->at++;
	}
	if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return refuse(reader, "escape is no character that a string may hold");
	return code;
}

static size_t encode_utf8(int64_t code, char bytes[4])
{
	if (code < 0x80) {
		bytes[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		bytes[0] = (char)(0xc0 | (code >> 6));
		bytes[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		bytes[0] = (char)(0xe0 | (code >> 12));
		bytes[1] = (char)(0x80 | ((code >> 6) & 0x3f));
		bytes[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	bytes[0] = (char)(0xf0 | (code >> 18));
	bytes[1] = (char)(0x80 | ((code >> 12) & 0x3f));
	bytes[2] = (char)(0x80 | ((code >> 6) & 0x3f));
	bytes[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* Read an escape after its backslash. Return the number of bytes, 0 after an error. */
static size_t read_escape(struct toml_reader *reader, char bytes[4])
{
	static const char LETTERS[] = "btnfr\"\\", MEANINGS[] = "\b\t\n\f\r\"\\";
	int c = peek(reader);
	const char *letter = c > 0 ? strchr(LETTERS, c) : NULL;
	int64_t code;

	if (letter) {
		reader->at++;
		bytes[0] = MEANINGS[letter - LETTERS];
		return 1;
	}
	if (c != 'u' && c != 'U') {
		refuse(reader, "unknown escape in a string");
		return 0;
	}
	reader->at++;
	code = read_code_point(reader, c == 'u' ? 4 : 8);
	return code < 0 ? 0 : encode_utf8(code, bytes);
}

static int read_string(struct toml_reader *reader, struct toml_item *item)
{
	size_t used = 0;

	item->kind = TOML_STRING;
	reader->at++;
	while (peek(reader) != '"') {
		char bytes[4];
		size_t length;

		if (at_line_end(reader))
			return refuse(reader, "string without an end in its line");
		if (peek(reader) == '\\') {
			reader->at++;
			length = read_escape(reader, bytes);
		} else {
			length = character_length(reader);
			memcpy(bytes, reader->at, length);
			reader->at += length;
		}
		if (length == 0)
			return -EINVAL;
		if (used + length >= TOML_STRING_BYTES)
			return refuse(reader, "string is too long; allowed 0..%d bytes", TOML_STRING_BYTES - 1);
		memcpy(item->text + used, bytes, length);
		used += length;
	}
	reader->at++;
	item->text[used] = '\0';
	return 0;
}

static int read_integer(struct toml_reader *reader, struct toml_item *item)
{
	bool negative = peek(reader) == '-';
	uint64_t value = 0, limit = (uint64_t)INT64_MAX + negative;
	bool overflow = false;

	item->kind = TOML_INTEGER;
	if (negative || peek(reader) == '+')
		reader->at++;
	if (!is_digit(peek(reader)))
		return refuse(reader, "digits expected after the sign");
	if (peek(reader) == '0' && (is_digit(peek_at(reader, 1)) || peek_at(reader, 1) == '_'))
		return refuse(reader, "integer with leading zeros");
	while (is_digit(peek(reader))) {
		unsigned int digit = (unsigned int)(peek(reader) - '0');

		overflow = overflow || value > (limit - digit) / 10;
		value = value * 10 + digit;
		reader->at++;
		if (peek(reader) == '_' && is_digit(peek_at(reader, 1)))
			reader->at++;
	}
	if (overflow)
		return refuse(reader, "integer does not fit 64 bits");
	if (is_bare(peek(reader)) || peek(reader) == '.' || peek(reader) == ':')
		return refuse(reader, "a plain decimal integer expected");
	item->integer = (int64_t)(negative ? UINT64_C(0) - value : value);
	return 0;
}

static int read_boolean(struct toml_reader *reader, struct toml_item *item)
{
	size_t length = 0;

	item->kind = TOML_BOOLEAN;
	while (is_bare(peek_at(reader, length)))
		length++;
	item->boolean = length == 4 && memcmp(reader->at, "true", 4) == 0;
	if (!item->boolean && !(length == 5 && memcmp(reader->at, "false", 5) == 0))
		return refuse(reader, "a string in double quotes, an integer, true or false expected");
	reader->at += length;
	return 0;
}

static int read_value(struct toml_reader *reader, struct toml_item *item)
{
	int c = peek(reader);

	if (c == '"')
		return read_string(reader, item);
	if (is_digit(c) || c == '+' || c == '-')
		return read_integer(reader, item);
	return read_boolean(reader, item);
}

static int read_key_value(struct toml_reader *reader, struct toml_item *item)
{
	if (read_name(reader, "key", item->name))
		return -EINVAL;
	skip_blanks(reader);
	if (peek(reader) != '=')
		return refuse(reader, "= expected after key %s", item->name);
	reader->at++;
	skip_blanks(reader);
	return read_value(reader, item);
}

int toml_next(struct toml_reader *reader, struct toml_item *item)
{
	int err;

	/* Lines without an item. */
	for (;;) {
		skip_blanks(reader);
		if (peek(reader) == END_OF_TEXT)
			return 0;
		if (!at_line_end(reader) && peek(reader) != '#')
			break;
		if (finish_line(reader))
			return -EINVAL;
	}
	item->line = reader->line;
	err = peek(reader) == '[' ? read_header(reader, item) : read_key_value(reader, item);
	if (err || finish_line(reader))
		return -EINVAL;
	return 1;
}
