/* SPDX-License-Identifier: Apache-2.0 */
/** The keys of pattern and plan files, one row a key: see plan_tables.c. A pattern file has the first two tables only. */
#ifndef BW_PLAN_TABLES_H
#define BW_PLAN_TABLES_H

#include "config/schema.h"
#include "plan/plan.h"

enum plan_table {
	TABLE_PATTERN,
	TABLE_STREAM,
	PATTERN_TABLES,
	TABLE_RUN = PATTERN_TABLES,
	TABLE_CONSUMER,
	TABLE_CLOCK,
	TABLE_PRODUCER,
	PLAN_TABLES,
};

enum { PATTERN_SCHEMA, PATTERN_NAME, PATTERN_SOURCE, PATTERN_FIELDS };
enum { STREAM_ID, STREAM_TRANSPORT, STREAM_SIZE, STREAM_PERIOD, STREAM_BUDGET, STREAM_LOW_LATENCY, STREAM_FIELDS };
enum {
	RUN_SCHEMA, RUN_NONCE, RUN_PHASE, RUN_SCALE, RUN_BASE_PORT, RUN_WARMUP, RUN_DURATION, RUN_GRACE, RUN_SPIN,
	RUN_CORRECTION, RUN_TAI_UTC, RUN_CAPTURE_STAMPS, RUN_FIELDS,
};
enum { CONSUMER_ADDRESS, CONSUMER_CLOCK, CONSUMER_FIELDS };
enum { CLOCK_NAME, CLOCK_ADDRESS, CLOCK_PORT, CLOCK_FIELDS };
enum { PRODUCER_NUMBER, PRODUCER_ADDRESS, PRODUCER_CLOCK, PRODUCER_START, PRODUCER_RATE, PRODUCER_FIELDS };

extern const struct schema_table plan_tables[PLAN_TABLES];

/** Convert the tables of a pattern. Return 0, -EINVAL or -ENOMEM with error filled. */
int pattern_convert(const struct schema_document *document, struct pattern **pattern, struct schema_error *error);

/** Read a whole text file. Return 0 with *text owned by the caller (free()), or -errno with error filled. */
int plan_read_file(const char *path, char **text, size_t *length, struct schema_error *error);

#endif
