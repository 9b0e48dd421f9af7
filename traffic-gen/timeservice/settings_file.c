/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/schema.h"
#include "timeservice/keys.h"

enum { FILE_BYTES_MAX = 65536, NTP_PORT = 123, SECOND_NS = 1000000000, KEY_BYTES = 32 };
enum { TABLE_SERVICE, TABLE_SERVER, TABLES };

enum {
	FEED = SETTINGS_NUMBERS, INTERLEAVE, KERNEL_STAMPS, ANY_COUNTER, LOG_EXCHANGES, PAGE, LOG, KEY_FILE,
	SERVICE_FIELDS
};

/* The numbers come before them. */
static const struct schema_field WORDS[] = {
	{ "feed", SCHEMA_CHOICE, 0, 0, SETTINGS_FEEDS, true, 0 },
	{ "interleave", SCHEMA_BOOLEAN, 0, 0, NULL, true, 0 },
	{ "kernel_stamps", SCHEMA_BOOLEAN, 0, 0, NULL, true, 0 },
	{ "any_counter", SCHEMA_BOOLEAN, 0, 0, NULL, true, 0 },
	{ "log_exchanges", SCHEMA_BOOLEAN, 0, 0, NULL, true, 0 },
	{ "page", SCHEMA_TEXT, 1, SETTINGS_PATH_BYTES - 1, NULL, true, 0 },
	{ "log", SCHEMA_TEXT, 1, SETTINGS_PATH_BYTES - 1, NULL, true, 0 },
	{ "key_file", SCHEMA_TEXT, 1, SETTINGS_PATH_BYTES - 1, NULL, true, 0 },
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

/* The fields of [service]. keys: room for the numbers' own. */
static void service_fields(struct schema_field fields[SERVICE_FIELDS], char keys[SETTINGS_NUMBERS][KEY_BYTES])
{
	for (int i = 0; i < SETTINGS_NUMBERS; i++) {
		const struct settings_number *number = &SETTINGS_NUMBER[i];

		snprintf(keys[i], KEY_BYTES, "%s", number->name);
		for (char *at = keys[i]; *at; at++)
			if (*at == '-')
				*at = '_';
		fields[i] = (struct schema_field){ keys[i], SCHEMA_INTEGER, number->min, number->max, NULL, true, 0 };
	}
	memcpy(fields + SETTINGS_NUMBERS, WORDS, sizeof(WORDS));
}

static void take_service(struct settings *settings, const struct schema_row *row)
{
	for (int i = 0; i < SETTINGS_NUMBERS; i++)
		if (row->values[i].line)
			*settings_number(settings, i) = row->values[i].integer;
	if (row->values[FEED].line)
		settings->feed = row->values[FEED].integer;
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
	struct schema_field service[SERVICE_FIELDS];
	char keys[SETTINGS_NUMBERS][KEY_BYTES];
	const struct schema_table tables[TABLES] = {
		[TABLE_SERVICE] = { "service", false, -1, SERVICE_FIELDS, service, true },
		[TABLE_SERVER] = { "server", true, ADDRESS, SERVER_FIELDS, SERVER, true },
	};
	struct schema_document document;
	struct schema_error problem;
	int err;

	service_fields(service, keys);
	err = schema_read(path, text, length, tables, TABLES, &document, &problem);

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
