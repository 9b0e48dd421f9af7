/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

void json_init(struct json *json, FILE *out)
{
	memset(json, 0, sizeof(*json));
	json->out = out;
}

/* Length of the UTF-8 sequence at p (RFC 3629), or 0 when there is none. */
static unsigned int utf8_length(const unsigned char *p)
{
	unsigned int length = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;

	for (unsigned int i = 1; i < length; i++) {
		if (p[i] >> 6 != 2)
			return 0;
	}
	if (length == 2 && p[0] < 0xc2)
		return 0; /* overlong */
	if (length == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)))
		return 0; /* overlong, or a surrogate */
	if (length == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || p[0] > 0xf4 || (p[0] == 0xf4 && p[1] > 0x8f)))
		return 0; /* overlong, or past U+10FFFF */
	return length;
}

static void write_text(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	fputc('"', out);
	while (*p) {
		unsigned int length = utf8_length(p);

		if (length == 0) {
			fputs("\\ufffd", out);
			p++;
			continue;
		}
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(out, "\\u%04x", *p);
		else
			fwrite(p, 1, length, out);
		p += length;
	}
	fputc('"', out);
}

/* Write what stands before a value: the comma and the key. */
static void begin_value(struct json *json, const char *key)
{
	if (json->comma[json->depth])
		fputc(',', json->out);
	json->comma[json->depth] = true;
	if (key) {
		write_text(json->out, key);
		fputc(':', json->out);
	}
}

static void open_nested(struct json *json, const char *key, char bracket)
{
	begin_value(json, key);
	assert(json->depth < JSON_DEPTH_MAX);
	fputc(bracket, json->out);
	json->comma[++json->depth] = false;
}

static void close_nested(struct json *json, char bracket)
{
	assert(json->depth > 0);
	json->depth--;
	fputc(bracket, json->out);
}

void json_object_open(struct json *json, const char *key)
{
	open_nested(json, key, '{');
}

void json_object_close(struct json *json)
{
	close_nested(json, '}');
}

void json_array_open(struct json *json, const char *key)
{
	open_nested(json, key, '[');
}

void json_array_close(struct json *json)
{
	close_nested(json, ']');
}

void json_int(struct json *json, const char *key, int64_t value)
{
	begin_value(json, key);
	fprintf(json->out, "%" PRId64, value);
}

void json_uint(struct json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void json_double(struct json *json, const char *key, double value)
{
	begin_value(json, key);
	if (isfinite(value))
		fprintf(json->out, "%.17g", value);
	else
		fputs("null", json->out);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin_value(json, key);
	fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key)
{
	begin_value(json, key);
	fputs("null", json->out);
}

void json_string(struct json *json, const char *key, const char *value)
{
	begin_value(json, key);
	write_text(json->out, value);
}

void json_hex64(struct json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	fprintf(json->out, "\"%016" PRIx64 "\"", value);
}

int json_line_end(struct json *json)
{
	assert(json->depth == 0);
	json->comma[0] = false;
	fputc('\n', json->out);
	if (fflush(json->out) != 0 || ferror(json->out))
		return -EIO;
	return 0;
}
