/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/schema.h"
#include "timeservice/keys.h"

enum { FILE_BYTES_MAX = 65536, NTP_PORT = 123, TABLE_SERVICE = 0, TABLE_SERVER = 1, TABLES = 2 };
enum { DAY_MS = 86400000, SECOND_NS = 1000000000 };

static const char *const FEEDS[] = { "none", "kernel", "chrony", NULL };

enum {
	INTERVAL, BATCH, GAP, TIMEOUT, QUICK_BATCHES, QUICK_INTERVAL, CONFIRM, CHECK_INTERVAL, MIN_SERVERS, DRIFT_LIMIT,
	ASYMMETRY, RATE_LIMIT, STEP, BOUND_MAX, SLEW, TAI_UTC, PRIORITY, FEED, FEED_UNIT, INTERLEAVE, KERNEL_STAMPS, ANY_COUNTER, LOG_EXCHANGES, PAGE, LOG, KEY_FILE,
	SERVICE_FIELDS
};

/* The same ranges as on the command line. */
static const struct schema_field SERVICE[SERVICE_FIELDS] = {
	[INTERVAL] = { "interval_ms", SCHEMA_INTEGER, 100, DAY_MS, NULL, true, 0 },
	[BATCH] = { "batch", SCHEMA_INTEGER, 1, ESTIMATE_BATCH_MAX, NULL, true, 0 },
	[GAP] = { "gap_us", SCHEMA_INTEGER, 0, 1000000, NULL, true, 0 },
	[TIMEOUT] = { "timeout_ms", SCHEMA_INTEGER, 1, 60000, NULL, true, 0 },
	[QUICK_BATCHES] = { "quick_batches", SCHEMA_INTEGER, 0, 1000, NULL, true, 0 },
	[QUICK_INTERVAL] = { "quick_interval_ms", SCHEMA_INTEGER, 10, 3600000, NULL, true, 0 },
	[CONFIRM] = { "confirm_batches", SCHEMA_INTEGER, 1, 64, NULL, true, 0 },
	[CHECK_INTERVAL] = { "check_interval_ms", SCHEMA_INTEGER, 0, DAY_MS, NULL, true, 0 },
	[MIN_SERVERS] = { "min_servers", SCHEMA_INTEGER, 1, SELECT_MAX, NULL, true, 0 },
	[DRIFT_LIMIT] = { "drift_limit_ppb", SCHEMA_INTEGER, 0, 1000000, NULL, true, 0 },
	[ASYMMETRY] = { "asymmetry_percent", SCHEMA_INTEGER, 0, 100, NULL, true, 0 },
	[RATE_LIMIT] = { "rate_limit_ppb", SCHEMA_INTEGER, 1000, 10000000, NULL, true, 0 },
	[STEP] = { "step_ns", SCHEMA_INTEGER, 1000, SECOND_NS, NULL, true, 0 },
	[BOUND_MAX] = { "bound_max_ns", SCHEMA_INTEGER, 1000, INT64_C(10) * SECOND_NS, NULL, true, 0 },
	[SLEW] = { "slew_ppm", SCHEMA_INTEGER, 1, 500, NULL, true, 0 },
	[TAI_UTC] = { "tai_utc_s", SCHEMA_INTEGER, 0, 255, NULL, true, 0 },
	[PRIORITY] = { "priority", SCHEMA_INTEGER, 0, 99, NULL, true, 0 },
	[FEED] = { "feed", SCHEMA_CHOICE, 0, 0, FEEDS, true, 0 },
	[FEED_UNIT] = { "feed_unit", SCHEMA_INTEGER, 0, 255, NULL, true, 0 },
	[INTERLEAVE] = { "interleave", SCHEMA_BOOLEAN, 0, 0, NULL, true, 0 },
	[KERNEL_STAMPS] = { "kernel_stamps", SCHEMA_BOOLEAN, 0, 0, NULL, true, 0 },
	[ANY_COUNTER] = { "any_counter", SCHEMA_BOOLEAN, 0, 0, NULL, true, 0 },
	[LOG_EXCHANGES] = { "log_exchanges", SCHEMA_BOOLEAN, 0, 0, NULL, true, 0 },
	[PAGE] = { "page", SCHEMA_TEXT, 1, SETTINGS_PATH_BYTES - 1, NULL, true, 0 },
	[LOG] = { "log", SCHEMA_TEXT, 1, SETTINGS_PATH_BYTES - 1, NULL, true, 0 },
	[KEY_FILE] = { "key_file", SCHEMA_TEXT, 1, SETTINGS_PATH_BYTES - 1, NULL, true, 0 },
};

enum { ADDRESS, PORT, MIN_DELAY, ROOT_DISTANCE, SERVER_INTERLEAVED, SERVER_KEY, SERVER_FIELDS };

static const struct schema_field SERVER[SERVER_FIELDS] = {
	[ADDRESS] = { "address", SCHEMA_IPV4, 0, 0, NULL, false, 0 },
	[PORT] = { "port", SCHEMA_INTEGER, 1, 65535, NULL, true, NTP_PORT },
	[MIN_DELAY] = { "min_delay_ns", SCHEMA_INTEGER, 0, SECOND_NS, NULL, true, 0 },
	[ROOT_DISTANCE] = { "root_distance_ns", SCHEMA_INTEGER, 0, SECOND_NS, NULL, true, SERVER_ROOT_AS_SAID },
	[SERVER_INTERLEAVED] = { "interleaved", SCHEMA_BOOLEAN, 0, 0, NULL, true, 1 },
	[SERVER_KEY] = { "key", SCHEMA_INTEGER, 1, KEYS_ID_MAX, NULL, true, 0 },
};

static const struct schema_table TABLE[TABLES] = {
	[TABLE_SERVICE] = { "service", false, -1, SERVICE_FIELDS, SERVICE, true },
	[TABLE_SERVER] = { "server", true, ADDRESS, SERVER_FIELDS, SERVER, true },
};

static void take_service(struct settings *settings, const struct schema_row *row)
{
	int64_t *const integers[] = {
		[INTERVAL] = &settings->interval_ms,
		[BATCH] = &settings->batch,
		[GAP] = &settings->gap_us,
		[TIMEOUT] = &settings->timeout_ms,
		[QUICK_BATCHES] = &settings->quick_batches,
		[QUICK_INTERVAL] = &settings->quick_interval_ms,
		[CONFIRM] = &settings->confirm_batches,
		[CHECK_INTERVAL] = &settings->check_interval_ms,
		[MIN_SERVERS] = &settings->min_servers,
		[DRIFT_LIMIT] = &settings->estimate.drift_limit_ppb,
		[ASYMMETRY] = &settings->estimate.asymmetry_percent,
		[RATE_LIMIT] = &settings->estimate.rate_limit_ppb,
		[STEP] = &settings->publish.step_ns,
		[BOUND_MAX] = &settings->publish.bound_max_ns,
		[SLEW] = &settings->publish.slew_ppm,
		[TAI_UTC] = &settings->tai_utc_s,
		[PRIORITY] = &settings->priority,
		[FEED] = &settings->feed,
		[FEED_UNIT] = &settings->feed_unit,
	};

	for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
		if (row->values[i].line)
			*integers[i] = row->values[i].integer;
	if (row->values[INTERLEAVE].line)
		settings->no_interleave = !row->values[INTERLEAVE].integer;
	if (row->values[KERNEL_STAMPS].line)
		settings->user_stamps = !row->values[KERNEL_STAMPS].integer;
	if (row->values[ANY_COUNTER].line)
		settings->any_counter = row->values[ANY_COUNTER].integer != 0;
	if (row->values[LOG_EXCHANGES].line)
		settings->log_exchanges = row->values[LOG_EXCHANGES].integer != 0;
	if (row->values[PAGE].line)
		snprintf(settings->page, sizeof(settings->page), "%s", row->values[PAGE].text);
	if (row->values[LOG].line)
		snprintf(settings->log, sizeof(settings->log), "%s", row->values[LOG].text);
	if (row->values[KEY_FILE].line)
		snprintf(settings->key_file, sizeof(settings->key_file), "%s", row->values[KEY_FILE].text);
}

static int take_servers(struct settings *settings, const struct schema_document *document, struct schema_error *error)
{
	const struct schema_rows *rows = &document->rows[TABLE_SERVER];

	for (size_t i = 0; i < rows->count; i++) {
		const struct schema_value *values = rows->rows[i].values;
		struct server_settings server = {
			.address = { .ipv4 = (uint32_t)values[ADDRESS].integer, .port = (uint16_t)values[PORT].integer },
			.min_way_ns = values[MIN_DELAY].integer,
			.root_distance_ns = values[ROOT_DISTANCE].integer,
			.interleave = values[SERVER_INTERLEAVED].integer != 0,
			.key = (uint32_t)values[SERVER_KEY].integer,
		};

		for (int j = 0; j < settings->server_count; j++)
			if (settings->servers[j].address.ipv4 == server.address.ipv4 &&
			    settings->servers[j].address.port == server.address.port)
				return schema_refuse(document, TABLE_SERVER, &rows->rows[i], ADDRESS, error, "is there twice");
		if (settings->server_count == SELECT_MAX)
			return schema_refuse(document, TABLE_SERVER, &rows->rows[i], -1, error, "one server too many; allowed 1..%d",
					     SELECT_MAX);
		settings->servers[settings->server_count++] = server;
	}
	return 0;
}

int settings_read_text(struct settings *settings, const char *path, const char *text, size_t length,
		       char error[SETTINGS_ERROR_BYTES])
{
	struct schema_document document;
	struct schema_error problem;
	int err = schema_read(path, text, length, TABLE, TABLES, &document, &problem);

	if (!err) {
		if (document.rows[TABLE_SERVICE].count)
			take_service(settings, &document.rows[TABLE_SERVICE].rows[0]);
		err = take_servers(settings, &document, &problem);
		schema_release(&document);
	}
	if (err)
		snprintf(error, SETTINGS_ERROR_BYTES, "%s", problem.text);
	return err;
}

int settings_read_file(struct settings *settings, const char *path, char error[SETTINGS_ERROR_BYTES])
{
	FILE *file = fopen(path, "rb");
	char *text = malloc(FILE_BYTES_MAX);
	size_t length = 0;
	int err = 0;

	if (!file)
		err = -errno;
	else if (!text)
		err = -ENOMEM;
	else
		length = fread(text, 1, FILE_BYTES_MAX, file);
	if (!err && ferror(file))
		err = -EIO;
	if (!err && length == FILE_BYTES_MAX)
		err = -EFBIG;
	if (file)
		fclose(file);
	if (err)
		snprintf(error, SETTINGS_ERROR_BYTES, "%s: %s", path, strerror(-err));
	else
		err = settings_read_text(settings, path, text, length, error);
	free(text);
	return err;
}
