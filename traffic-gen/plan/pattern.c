/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "plan/plan.h"
#include "plan/plan_tables.h"

#define MESSAGE_TYPES 10
#define FILE_MAX_BYTES (4 << 20)

static const struct transport_limits limits[TRANSPORTS] = {
	[TRANSPORT_TCP] = { "tcp", PLAN_MESSAGE_MAX_BYTES },
	[TRANSPORT_UDP] = { "udp", PLAN_UDP_MAX_BYTES },
	[TRANSPORT_RTDIP] = { "rtdip", PLAN_MESSAGE_MAX_BYTES },
};

const struct transport_limits *transport_limits(enum transport transport)
{
	return &limits[transport];
}

static int compare_streams(const void *left, const void *right)
{
	const struct stream *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

/* What one row cannot say alone: the size that its transport carries, and that no id comes twice. */
static int check_stream(const struct schema_document *document, size_t index, const struct schema_row **first_by_id,
			struct schema_error *error)
{
	const struct schema_row *row = &document->rows[TABLE_STREAM].rows[index];
	const struct transport_limits *carried = transport_limits((enum transport)row->values[STREAM_TRANSPORT].integer);
	int64_t id = row->values[STREAM_ID].integer;

	if (row->values[STREAM_SIZE].integer > carried->message_max_bytes)
		return schema_refuse(document, TABLE_STREAM, row, STREAM_SIZE, error,
				     "%lld is out of range for %s; allowed %d..%u",
				     (long long)row->values[STREAM_SIZE].integer, carried->name, PLAN_MESSAGE_MIN_BYTES,
				     carried->message_max_bytes);
	if (first_by_id[id])
		return schema_refuse(document, TABLE_STREAM, row, STREAM_ID, error,
				     "duplicate; the first is in line %u", first_by_id[id]->values[STREAM_ID].line);
	first_by_id[id] = row;
	return 0;
}

static void convert_stream(const struct schema_row *row, struct stream *stream)
{
	uint16_t id = (uint16_t)row->values[STREAM_ID].integer;

	*stream = (struct stream){
		.id = id,
		.producer = id / MESSAGE_TYPES,
		.message_type = id % MESSAGE_TYPES,
		.transport = (enum transport)row->values[STREAM_TRANSPORT].integer,
		.carrier = (enum transport)row->values[STREAM_TRANSPORT].integer,
		.size_bytes = (uint32_t)row->values[STREAM_SIZE].integer,
		.period_ns = row->values[STREAM_PERIOD].integer * NS_PER_US,
		.budget_ns = row->values[STREAM_BUDGET].integer * NS_PER_US,
		.low_latency = row->values[STREAM_LOW_LATENCY].integer,
	};
}

static int convert_streams(const struct schema_document *document, struct pattern *pattern, struct schema_error *error)
{
	const struct schema_rows *rows = &document->rows[TABLE_STREAM];
	const struct schema_row **first_by_id = calloc(PLAN_ID_MAX + 1, sizeof(*first_by_id));
	int err = 0;

	pattern->streams = calloc(rows->count, sizeof(*pattern->streams));
	if (!first_by_id || !pattern->streams) {
		snprintf(error->text, sizeof(error->text), "%s: out of memory", document->path);
		err = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < rows->count && !err; i++) {
		err = check_stream(document, i, first_by_id, error);
		convert_stream(&rows->rows[i], &pattern->streams[i]);
	}
	if (err)
		goto out;
	pattern->stream_count = rows->count;
	qsort(pattern->streams, pattern->stream_count, sizeof(*pattern->streams), compare_streams);
	for (size_t i = 0; i < pattern->stream_count; i++) {
		if (pattern->streams[i].producer != pattern->producer_highest)
			pattern->producer_count++;
		pattern->producer_highest = pattern->streams[i].producer;
	}
out:
	free(first_by_id);
	return err;
}

int pattern_convert(const struct schema_document *document, struct pattern **pattern_out, struct schema_error *error)
{
	const struct schema_row *row = &document->rows[TABLE_PATTERN].rows[0];
	struct pattern *pattern = calloc(1, sizeof(*pattern));
	int err;

	if (!pattern) {
		snprintf(error->text, sizeof(error->text), "%s: out of memory", document->path);
		return -ENOMEM;
	}
	/* The schema has checked that both fit. */
	strcpy(pattern->name, row->values[PATTERN_NAME].text);
	strcpy(pattern->source, row->values[PATTERN_SOURCE].text);
	err = convert_streams(document, pattern, error);
	if (err) {
		pattern_destroy(pattern);
		return err;
	}
	*pattern_out = pattern;
	return 0;
}

int pattern_parse(const char *path, const char *text, size_t length, struct pattern **pattern, struct schema_error *error)
{
	struct schema_document document;
	int err = schema_read(path, text, length, plan_tables, PATTERN_TABLES, &document, error);

	if (err)
		return err;
	err = pattern_convert(&document, pattern, error);
	schema_release(&document);
	return err;
}

int pattern_load(const char *path, struct pattern **pattern, struct schema_error *error)
{
	size_t length;
	char *text;
	int err = plan_read_file(path, &text, &length, error);

	if (err)
		return err;
	err = pattern_parse(path, text, length, pattern, error);
	free(text);
	return err;
}

void pattern_destroy(struct pattern *pattern)
{
	if (!pattern)
		return;
	free(pattern->streams);
	free(pattern);
}

int plan_read_file(const char *path, char **text_out, size_t *length, struct schema_error *error)
{
	FILE *file = fopen(path, "rb");
	char *text = NULL;
	int err = 0;

	if (!file) {
		err = errno ? -errno : -EIO;
		goto out;
	}
	text = malloc(FILE_MAX_BYTES + 1);
	if (!text) {
		err = -ENOMEM;
		goto out;
	}
	errno = 0;
	*length = fread(text, 1, FILE_MAX_BYTES + 1, file);
	if (ferror(file))
		err = errno ? -errno : -EIO;
	else if (*length > FILE_MAX_BYTES)
		err = -EFBIG;
out:
	if (file)
		fclose(file);
	if (err) {
		snprintf(error->text, sizeof(error->text), "%s: cannot be read: %s%s", path, strerror(-err),
			 err == -EFBIG ? "; allowed 4 MiB" : "");
		free(text);
		return err;
	}
	*text_out = text;
	return 0;
}
