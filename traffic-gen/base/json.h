/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer of newline-delimited JSON: one object a line, written as it is built, flushed at its end so that a reader
 * of a pipe or a file sees whole lines, also after a crash. Keys are passed for members of objects and are NULL for
 * elements of arrays.
 */
#ifndef BW_JSON_H
#define BW_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH_MAX = 16 };

struct json {
	FILE *out;
	unsigned int depth;             /* open objects and arrays */
	bool comma[JSON_DEPTH_MAX + 1]; /* does the next element of this depth need a comma? */
};

/** Bind a writer to a stream. The stream stays the caller's. */
void json_init(struct json *json, FILE *out);

/** Open an object; the outermost one begins a line and takes key = NULL. */
void json_object_open(struct json *json, const char *key);
void json_object_close(struct json *json);
void json_array_open(struct json *json, const char *key);
void json_array_close(struct json *json);

void json_int(struct json *json, const char *key, int64_t value);
void json_uint(struct json *json, const char *key, uint64_t value);
/** Write a finite number so that reading it gives the same double; NaN and infinities become null. */
void json_double(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
/** Write a string. Control characters, quotes and backslashes are escaped; bytes that are not UTF-8 become U+FFFD. */
void json_string(struct json *json, const char *key, const char *value);
/** Write 16 lower-case hexadecimal digits as a string (nonces). */
void json_hex64(struct json *json, const char *key, uint64_t value);

/**
 * End the line and flush it.
 *
 * @return 0, or -EIO when the stream has failed (disk full, reader gone); the failure sticks to the stream
 */
int json_line_end(struct json *json);

#endif
