/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a line of bw-timed's log: one flat JSON object, in which arrays have no arrays. Pure. */
#ifndef BW_TIMESERVICE_LOG_LINE_H
#define BW_TIMESERVICE_LOG_LINE_H

#include <stdbool.h>
#include <stdint.h>

enum { LOG_LINE_FIELDS = 40 };

struct log_line {
	int count;
	struct log_field {
		const char *key, *value; /* in the text; strings without quotes, arrays with their brackets */
	} fields[LOG_LINE_FIELDS];
};

/** Cut a text into fields, in place. @return false: it is no such object */
bool log_line_parse(char *text, struct log_line *line);

/** The value of a key; NULL: it is not there. */
const char *log_line_text(const struct log_line *line, const char *key);

/* Values; false: not there, no such number, or out of range. */
bool log_line_int(const struct log_line *line, const char *key, int64_t min, int64_t max, int64_t *value);
bool log_line_uint(const struct log_line *line, const char *key, uint64_t *value);
bool log_line_double(const struct log_line *line, const char *key, double *value);

/**
 * Copy an element of an array, a string without its quotes.
 *
 * @return false: there is none, or it is too long
 */
bool log_line_element(const struct log_line *line, const char *key, int index, char *text, int size_bytes);

#endif
