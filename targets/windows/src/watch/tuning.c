/* SPDX-License-Identifier: Apache-2.0 */
#include "tuning.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BASE = 10 };

static const struct row {
	const char *name, *owners;
	int64_t lowest, highest; /* highest 0: a text */
} rows[TUNE_COUNT] = {
	[TUNE_NO_DELAY] = { "no_delay", "sockets", 1, 1 },
	[TUNE_ACK_FREQUENCY] = { "ack_frequency", "sockets", 1, 255 },
	[TUNE_SEND_BUFFER] = { "send_buffer_bytes", "sockets", 1024, 1 << 30 },
	[TUNE_RECEIVE_BUFFER] = { "receive_buffer_bytes", "sockets", 1024, 1 << 30 },
	[TUNE_MULTIMEDIA_CLASS] = { "multimedia_class", "threads", 0, 0 },
	[TUNE_TIMER] = { "timer_us", "processes", 500, 15625 },
	[TUNE_POLL] = { "poll_us", "processes", 1, 1000000 },
};

const char *tuning_name(enum tuning_name name)
{
	return rows[name].name;
}

const char *tuning_owners(enum tuning_name name)
{
	return rows[name].owners;
}

static bool unknown(const char *word, char error[TUNING_ERROR_BYTES])
{
	size_t used = (size_t)snprintf(error, TUNING_ERROR_BYTES, "%.20s: no such setting; allowed:", word);

	for (int i = 0; i < TUNE_COUNT && used < TUNING_ERROR_BYTES; i++)
		used += (size_t)snprintf(error + used, TUNING_ERROR_BYTES - used, "%s %s", i ? "," : "", rows[i].name);
	return false;
}

static bool read_text(struct tuning *tuning, const char *value, char error[TUNING_ERROR_BYTES])
{
	size_t length = strlen(value);

	for (size_t i = 0; i < length; i++) {
		if (value[i] < ' ' || value[i] > '~')
			length = 0;
	}
	if (!length || length >= TUNING_TEXT_BYTES) {
		snprintf(error, TUNING_ERROR_BYTES, "must be a name of 1 .. %d ASCII characters, such as Pro Audio", TUNING_TEXT_BYTES - 1);
		return false;
	}
	memcpy(tuning->text, value, length + 1);
	return true;
}

static bool read_number(struct tuning *tuning, const struct row *row, const char *value, char error[TUNING_ERROR_BYTES])
{
	char *end;

	errno = 0;
	tuning->value = strtoll(value, &end, NUMBER_BASE);
	if (*value >= '0' && *value <= '9' && !*end && !errno && tuning->value >= row->lowest && tuning->value <= row->highest)
		return true;
	snprintf(error, TUNING_ERROR_BYTES, "%s: must be a whole number of %" PRId64 " .. %" PRId64 ", found %.30s", row->name, row->lowest,
		 row->highest, value);
	return false;
}

bool tuning_read(struct tuning tunings[TUNE_COUNT], const char *word, char error[TUNING_ERROR_BYTES])
{
	const char *equals = strchr(word, '=');

	for (int i = 0; i < TUNE_COUNT && equals; i++) {
		size_t length = strlen(rows[i].name);

		if ((size_t)(equals - word) != length || strncmp(word, rows[i].name, length) != 0)
			continue;
		if (tunings[i].wanted) {
			snprintf(error, TUNING_ERROR_BYTES, "%s: is there twice", rows[i].name);
			return false;
		}
		tunings[i].wanted = 1;
		return rows[i].highest ? read_number(&tunings[i], &rows[i], equals + 1, error) : read_text(&tunings[i], equals + 1, error);
	}
	if (!equals) {
		snprintf(error, TUNING_ERROR_BYTES, "%.40s: must be NAME=VALUE", word);
		return false;
	}
	return unknown(word, error);
}
