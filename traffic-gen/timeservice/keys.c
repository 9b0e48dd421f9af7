/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/keys.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "config/options.h"

enum { WORDS_MAX = 3, ID_TEXT_BYTES = 24, SHOWN_BYTES = 32 };

/* A piece of the text, which has no end of its own. */
struct word {
	const char *at;
	size_t length;
};

struct reader {
	const char *path;
	unsigned int line;
	char *error; /* of KEYS_ERROR_BYTES */
};

/* Types of chrony 4 (chrony.conf(5)); those without a size are not for this service. */
static const struct {
	const char *name;
	size_t size_bytes;
} types[] = {
	{ "AES128", 16 }, { "AES256", 32 }, { "MD5", 0 },	 { "SHA1", 0 },	    { "SHA256", 0 },   { "SHA384", 0 },	   { "SHA512", 0 },
	{ "TIGER", 0 },	  { "WHIRLPOOL", 0 }, { "SHA3-224", 0 }, { "SHA3-256", 0 }, { "SHA3-384", 0 }, { "SHA3-512", 0 },
};

__attribute__((format(printf, 3, 4))) static int refuse(const struct reader *reader, const char *field, const char *format, ...)
{
	int used = snprintf(reader->error, KEYS_ERROR_BYTES, "%.256s:%u: %s: ", reader->path, reader->line, field);
	va_list arguments;

	va_start(arguments, format);
	if (used > 0 && used < KEYS_ERROR_BYTES)
		vsnprintf(reader->error + used, (size_t)(KEYS_ERROR_BYTES - used), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool is_word(const struct word *word, const char *text)
{
	return strlen(text) == word->length && memcmp(word->at, text, word->length) == 0;
}

static bool begins(const struct word *word, const char *text)
{
	return word->length >= strlen(text) && memcmp(word->at, text, strlen(text)) == 0;
}

/* A word that may be shown: printable, not too long. */
static const char *shown(const struct word *word, char text[SHOWN_BYTES])
{
	size_t length = word->length < SHOWN_BYTES - 1 ? word->length : SHOWN_BYTES - 1;

	for (size_t i = 0; i < length; i++)
		text[i] = word->at[i] > ' ' && word->at[i] < 0x7f ? word->at[i] : '.';
	text[length] = '\0';
	return text;
}

/* Take a line apart. Returns the number of its words, of which the first WORDS_MAX are stored. */
static int split(const char *at, size_t length, struct word words[WORDS_MAX])
{
	const char *end = at + length;
	int count = 0;

	while (at < end) {
		const char *start;

		while (at < end && is_blank(*at))
			at++;
		for (start = at; at < end && !is_blank(*at);)
			at++;
		if (at > start && count++ < WORDS_MAX)
			words[count - 1] = (struct word){ start, (size_t)(at - start) };
	}
	return count;
}

static int read_id(const struct reader *reader, const struct word *word, uint32_t *id)
{
	char text[ID_TEXT_BYTES] = "", quoted[SHOWN_BYTES];
	int64_t value;

	if (word->length < sizeof(text) && !memchr(word->at, 0, word->length))
		memcpy(text, word->at, word->length);
	if (option_parse_int(text, 1, KEYS_ID_MAX, &value))
		return refuse(reader, "id", "\"%s\"; allowed 1..4294967295", shown(word, quoted));
	*id = (uint32_t)value;
	return 0;
}

/* Returns the index in types[], or -EINVAL. */
static int read_type(const struct reader *reader, const struct word *word)
{
	char quoted[SHOWN_BYTES];

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (is_word(word, types[i].name))
			return (int)i;
	return refuse(reader, "type", "\"%s\" is unknown; allowed AES128, AES256 (chrony's others are passed over)", shown(word, quoted));
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* What is wrong with a key is told without it. */
static int read_key(const struct reader *reader, const struct word *word, int type, struct key *key)
{
	bool hexadecimal = begins(word, "HEX:");
	size_t skipped = hexadecimal ? strlen("HEX:") : begins(word, "ASCII:") ? strlen("ASCII:") : 0;
	size_t length = word->length - skipped, size_bytes = hexadecimal ? length / 2 : length;
	const char *at = word->at + skipped;

	for (size_t i = 0; hexadecimal && i < length; i++)
		if (digit_of(at[i]) < 0)
			return refuse(reader, "key", "character %u after HEX: is no hexadecimal digit; allowed 0..9, A..F, a..f",
				      (unsigned int)i + 1);
	if ((hexadecimal && length % 2) || size_bytes != types[type].size_bytes)
		return refuse(reader, "key", "%u %s; allowed %u of %s", (unsigned int)length,
			      hexadecimal ? "hexadecimal digits" : "characters",
			      (unsigned int)types[type].size_bytes * (hexadecimal ? 2 : 1), types[type].name);
	key->size_bytes = size_bytes;
	for (size_t i = 0; i < size_bytes; i++)
		key->bytes[i] = hexadecimal ? (uint8_t)(digit_of(at[2 * i]) << 4 | digit_of(at[2 * i + 1])) : (uint8_t)at[i];
	return 0;
}

/* Read a line of words. Returns 1: it is the key; 0: it is another; or -EINVAL. */
static int read_line(const struct reader *reader, const struct word *words, int count, uint32_t wanted, struct key *key)
{
	static const struct word md5 = { "MD5", 3 }; /* what chrony takes where no type stands */
	const struct word *type_word = count == 2 ? &md5 : &words[1], *key_word = &words[count == 2 ? 1 : 2];
	struct key read = { 0 };
	uint32_t id = 0;
	int err, type;

	if (count < 2 || count > WORDS_MAX)
		return refuse(reader, "line", "%d words; allowed 3: ID TYPE KEY", count);
	err = read_id(reader, &words[0], &id);
	type = err ? err : read_type(reader, type_word);
	if (type < 0)
		return type;
	if (!types[type].size_bytes)
		return id == wanted ? refuse(reader, "type", "key %u is of %s; allowed AES128, AES256", id, types[type].name) : 0;
	err = read_key(reader, key_word, type, id == wanted ? key : &read);
	return err ? err : id == wanted;
}

int keys_find(const char *path, const char *text, size_t length, uint32_t id, struct key *key, char error[KEYS_ERROR_BYTES])
{
	struct reader reader = { path, 0, error };
	const char *at = text, *end = text + length;
	bool found = false;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		struct word words[WORDS_MAX];
		int count, result;

		stop = stop ? stop : end;
		reader.line++;
		count = split(at, (size_t)(stop - at), words);
		at = stop + 1;
		if (count == 0 || strchr("!;#%", *words[0].at))
			continue;
		result = read_line(&reader, words, count, id, key);
		if (result < 0)
			return result;
		if (result && found)
			return refuse(&reader, "id", "%u is there twice", id);
		found = found || result;
	}
	if (found)
		return 0;
	snprintf(error, KEYS_ERROR_BYTES, "%.256s: no key %u, which a server names", path, id);
	return -ENOENT;
}
