/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan_tables.h"

#include "plan/phase.h"

#define WEEK_MS INT64_C(604800000)
#define HOUR_MS 3600000
#define PERIOD_MAX_US INT64_C(3600000000)
/* A run of a week, begun before this, ends with its clocks' rates applied before int64 does. */
#define START_MAX_TAI_NS INT64_C(9000000000000000000)

#define INTEGER(name, low, high) { .key = (name), .type = SCHEMA_INTEGER, .min = (low), .max = (high) }
#define TEXT(name, bytes) { .key = (name), .type = SCHEMA_TEXT, .min = 1, .max = (bytes) }
#define CHOICE(name, words) { .key = (name), .type = SCHEMA_CHOICE, .choices = (words) }
#define PLAIN(name, its_type) { .key = (name), .type = (its_type) }

static const char *const pattern_schemas[] = { "benchwright.pattern/1", NULL };
static const char *const plan_schemas[] = { "benchwright.plan/1", NULL };
static const char *const transports[] = { "tcp", "udp", NULL };        /* by enum transport */
static const char *const corrections[] = { "none", "two-way", NULL }; /* by enum correction */

static const struct schema_field pattern_fields[PATTERN_FIELDS] = {
	[PATTERN_SCHEMA] = CHOICE("schema", pattern_schemas),
	[PATTERN_NAME] = TEXT("name", PLAN_NAME_BYTES - 1),
	[PATTERN_SOURCE] = TEXT("source", PLAN_SOURCE_BYTES - 1),
};

static const struct schema_field stream_fields[STREAM_FIELDS] = {
	[STREAM_ID] = INTEGER("id", PLAN_ID_MIN, PLAN_ID_MAX),
	[STREAM_TRANSPORT] = CHOICE("transport", transports),
	[STREAM_SIZE] = INTEGER("size_bytes", PLAN_MESSAGE_MIN_BYTES, PLAN_MESSAGE_MAX_BYTES),
	[STREAM_PERIOD] = INTEGER("period_us", 1, PERIOD_MAX_US),
	[STREAM_BUDGET] = INTEGER("budget_us", 1, PERIOD_MAX_US),
	[STREAM_LOW_LATENCY] = { .key = "low_latency", .type = SCHEMA_BOOLEAN, .optional = true, .default_value = false },
};

static const struct schema_field run_fields[RUN_FIELDS] = {
	[RUN_SCHEMA] = CHOICE("schema", plan_schemas),
	[RUN_NONCE] = PLAIN("nonce", SCHEMA_HEX64),
	[RUN_PHASE] = CHOICE("phase", phase_names),
	[RUN_SCALE] = INTEGER("scale", 1, PLAN_PRODUCER_MAX),
	[RUN_BASE_PORT] = INTEGER("base_port", 1024, 65535 - PLAN_ID_MIN),
	[RUN_WARMUP] = INTEGER("warmup_ms", 0, HOUR_MS),
	[RUN_DURATION] = INTEGER("duration_ms", 1, WEEK_MS),
	[RUN_GRACE] = INTEGER("grace_ms", 0, HOUR_MS),
	[RUN_SPIN] = INTEGER("spin_us", 0, 100000),
	[RUN_CORRECTION] = CHOICE("correction", corrections),
	[RUN_TAI_UTC] = INTEGER("tai_utc_s", 0, 1000),
	[RUN_CAPTURE_STAMPS] = PLAIN("capture_stamps", SCHEMA_BOOLEAN),
};

static const struct schema_field consumer_fields[CONSUMER_FIELDS] = {
	[CONSUMER_ADDRESS] = PLAIN("address", SCHEMA_IP),
	[CONSUMER_CLOCK] = { .key = "clock", .type = SCHEMA_TEXT, .min = 1, .max = PLAN_CLOCK_BYTES - 1, .optional = true },
};

static const struct schema_field clock_fields[CLOCK_FIELDS] = {
	[CLOCK_NAME] = TEXT("name", PLAN_NAME_BYTES - 1),
	[CLOCK_ADDRESS] = PLAIN("address", SCHEMA_IP),
	[CLOCK_PORT] = INTEGER("port", 1, 65535),
};

static const struct schema_field producer_fields[PRODUCER_FIELDS] = {
	[PRODUCER_NUMBER] = INTEGER("number", 1, PLAN_PRODUCER_MAX),
	[PRODUCER_ADDRESS] = PLAIN("address", SCHEMA_IP),
	[PRODUCER_CLOCK] = TEXT("clock", PLAN_NAME_BYTES - 1),
	[PRODUCER_START] = INTEGER("start_tai_ns", 1, START_MAX_TAI_NS),
	[PRODUCER_RATE] = INTEGER("rate_ppb", -1000000, 1000000),
};

const struct schema_table plan_tables[PLAN_TABLES] = {
	[TABLE_PATTERN] = { .name = "pattern", .repeated = false, .label = -1, .field_count = PATTERN_FIELDS, .fields = pattern_fields },
	[TABLE_STREAM] = { .name = "stream", .repeated = true, .label = STREAM_ID, .field_count = STREAM_FIELDS, .fields = stream_fields },
	[TABLE_RUN] = { .name = "run", .repeated = false, .label = -1, .field_count = RUN_FIELDS, .fields = run_fields },
	[TABLE_CONSUMER] = { .name = "consumer", .repeated = false, .label = -1, .field_count = CONSUMER_FIELDS, .fields = consumer_fields },
	[TABLE_CLOCK] = { .name = "clock", .repeated = true, .label = CLOCK_NAME, .field_count = CLOCK_FIELDS, .fields = clock_fields },
	[TABLE_PRODUCER] = { .name = "producer", .repeated = true, .label = PRODUCER_NUMBER, .field_count = PRODUCER_FIELDS, .fields = producer_fields },
};
