/* SPDX-License-Identifier: Apache-2.0 */
/** The TOML reader: what it reads, and where and why it refuses the rest. */
#include "config/toml.h"

#include <errno.h>

#include "check.h"

#define REFUSED 1000 /* an item that is an error */

/* Read one item of a text of one item. Return its kind or REFUSED, with the item or the error at hand. */
static int read_one(const char *text, size_t length, struct toml_item *item, struct toml_reader *reader)
{
	struct toml_item next;
	int got;

	toml_init(reader, text, length);
	got = toml_next(reader, item);
	if (got == 1)
		got = toml_next(reader, &next) == 0 ? 1 : -EINVAL;
	return got == 1 ? (int)item->kind : REFUSED;
}

static void check_integer(const char *text, int64_t expected)
{
	struct toml_reader reader;
	struct toml_item item;
	char line[64];

	snprintf(line, sizeof(line), "k = %s", text);
	CHECK_INT(read_one(line, strlen(line), &item, &reader), TOML_INTEGER);
	CHECK_THAT(item.integer == expected, "%s was read as %" PRId64, text, item.integer);
}

static void check_string(const char *text, const char *expected)
{
	struct toml_reader reader;
	struct toml_item item;
	char line[128];

	snprintf(line, sizeof(line), "key-1_A\t=\"%s\" # end", text);
	CHECK_THAT(read_one(line, strlen(line), &item, &reader) == TOML_STRING, "%s: %s", text, reader.error);
	CHECK_TEXT(item.name, "key-1_A");
	CHECK_TEXT(item.text, expected);
}

static void check_refused_bytes(const char *text, size_t length)
{
	struct toml_reader reader;
	struct toml_item item;

	CHECK_THAT(read_one(text, length, &item, &reader) == REFUSED, "\"%s\" was read", text);
	CHECK(reader.error[0] != '\0');
}

/* Editors of Windows begin a file with it; anywhere else it is no blank. */
static void check_byte_order_mark(void)
{
	struct toml_reader reader;
	struct toml_item item;

	CHECK_INT(read_one("\xef\xbb\xbfk = 7", 8, &item, &reader), TOML_INTEGER);
	CHECK_INT(read_one("k = 7\xef\xbb\xbf", 8, &item, &reader), REFUSED);
	CHECK_INT(read_one("\xef\xbb\xbf", 3, &item, &reader), REFUSED);
}

static void check_values(void)
{
	check_byte_order_mark();
	check_integer("0", 0);
	check_integer("+0", 0);
	check_integer("-0", 0);
	check_integer("640_000", 640000);
	check_integer("-1_2_3", -123);
	check_integer("9223372036854775807", INT64_MAX);
	check_integer("-9223372036854775808", INT64_MIN);
	check_string("", "");
	check_string("a\\tb\\\\ \\\"q\\\" \\u00e9\\U0001F600", "a\tb\\ \"q\" \xc3\xa9\xf0\x9f\x98\x80");
	check_string("\xc3\xa9 # no comment", "\xc3\xa9 # no comment");
}

static void check_refused(void)
{
	static const char *const BAD[] = {
		"k = 9223372036854775808", "k = -9223372036854775809", "k = 99999999999999999999999", "k = 01", "k = 1__0",
		"k = 1_", "k = _1", "k = 1.5", "k = 1e5", "k = 0x10", "k = +", "k = 1979-05-27", "k = inf", "k = True", "k = tru",
		"k = truee", "k =", "k", "= 1", "k = 1 2", "k = 1\nl", "a.b = 1", "\"k\" = 1", "k = 'literal'", "k = \"\"\"long\"\"\"",
		"k = \"open", "k = \"a\nb\"", "k = \"\\x41\"", "k = \"\\u12\"", "k = \"\\ud800\"", "k = \"\\u0000\"",
		"k = \"\\U00110000\"", "k = \"\x01\"", "k = \"\x7f\"", "# \x01", "k = \"\xc0\x80\"", "k = \"\xed\xa0\x80\"",
		"k = \"\xf4\x90\x80\x80\"", "k = \"\xc3\"", "# \xff", "[t", "[[t]", "[t]]", "[]", "[a.b]", "[ [t] ]", "[t] k = 1",
		"k = [1]", "k = {}", "k = 1\rl = 2",
	};

	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
		check_refused_bytes(BAD[i], strlen(BAD[i]));
	check_refused_bytes("k = 1\0", 6);
	check_refused_bytes("k = \"a\0b\"", 9);
}

/* Lengths at their limits: 63 characters of a name and 1023 bytes of a string are read, one more is not. */
static void check_lengths(void)
{
	char text[TOML_STRING_BYTES + 32], name[TOML_NAME_BYTES + 8];
	struct toml_reader reader;
	struct toml_item item;

	for (int excess = 0; excess <= 1; excess++) {
		int expected;

		memset(name, 'n', sizeof(name));
		snprintf(name + TOML_NAME_BYTES - 1 + excess, 8, " = 1");
		expected = excess ? REFUSED : TOML_INTEGER;
		CHECK_INT(read_one(name, strlen(name), &item, &reader), expected);
		memset(text, 'x', sizeof(text));
		text[0] = 'k';
		text[1] = '=';
		text[2] = '"';
		text[3 + TOML_STRING_BYTES - 1 + excess] = '"';
		expected = excess ? REFUSED : TOML_STRING;
		CHECK_INT(read_one(text, 3 + TOML_STRING_BYTES + (size_t)excess, &item, &reader), expected);
	}
}

static void check_lines(void)
{
	static const char TEXT[] = "# head\r\n\r\n [ run ] # x\n\ta = 1\nb = false\n\n[[ s ]]\nc = true\nd = 0x1\n";
	static const struct {
		enum toml_kind kind;
		unsigned int line;
		const char *name;
	} ITEMS[] = {
		{ TOML_TABLE, 3, "run" }, { TOML_INTEGER, 4, "a" }, { TOML_BOOLEAN, 5, "b" }, { TOML_ARRAY_TABLE, 7, "s" },
		{ TOML_BOOLEAN, 8, "c" },
	};
	struct toml_reader reader;
	struct toml_item item;

	toml_init(&reader, TEXT, strlen(TEXT));
	for (size_t i = 0; i < sizeof(ITEMS) / sizeof(ITEMS[0]); i++) {
		CHECK_INT(toml_next(&reader, &item), 1);
		CHECK_INT(item.kind, ITEMS[i].kind);
		CHECK_INT(item.line, ITEMS[i].line);
		CHECK_TEXT(item.name, ITEMS[i].name);
		if (item.kind == TOML_BOOLEAN)
			CHECK_INT(item.boolean, item.line == 8);
	}
	CHECK_INT(toml_next(&reader, &item), -EINVAL);
	CHECK_INT(reader.line, 9);
	CHECK_TEXT(reader.error, "a plain decimal integer expected");
	toml_init(&reader, "", 0);
	CHECK_INT(toml_next(&reader, &item), 0);
}

int main(void)
{
	check_values();
	check_refused();
	check_lengths();
	check_lines();
	return check_result();
}
