/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "plan/phase.h"
#include "plan/plan_tables.h"

#define PORT_MAX 65535

const char *correction_name(enum correction correction)
{
	return correction == CORRECTION_TWO_WAY ? "two-way" : "none";
}

/* What a clock was called before clocks had the names of bw-clock. */
static const char *consumer_clock_of(const char *text)
{
	if (!text || strcmp(text, "system") == 0)
		return PLAN_SYSTEM_CLOCK;
	return strcmp(text, "time-service") == 0 ? "timeservice" : text;
}

bool plan_stamps_by_system_clock(const struct plan *plan)
{
	return strcmp(plan->consumer_clock, PLAN_SYSTEM_CLOCK) == 0;
}

static int out_of_memory(struct schema_error *error, const char *path)
{
	snprintf(error->text, sizeof(error->text), "%s: out of memory", path);
	return -ENOMEM;
}

static void convert_run(const struct schema_document *document, struct plan *plan)
{
	const struct schema_value *run = document->rows[TABLE_RUN].rows[0].values;
	const struct schema_value *consumer = document->rows[TABLE_CONSUMER].rows[0].values;

	plan->nonce = (uint64_t)run[RUN_NONCE].integer;
	plan->phase = (enum phase)run[RUN_PHASE].integer;
	plan->scale = (uint32_t)run[RUN_SCALE].integer;
	plan->base_port = (uint16_t)run[RUN_BASE_PORT].integer;
	plan->warmup_ns = run[RUN_WARMUP].integer * NS_PER_MS;
	plan->duration_ns = run[RUN_DURATION].integer * NS_PER_MS;
	plan->grace_ns = run[RUN_GRACE].integer * NS_PER_MS;
	plan->spin_ns = run[RUN_SPIN].integer * NS_PER_US;
	plan->correction = (enum correction)run[RUN_CORRECTION].integer;
	plan->tai_utc_s = (int32_t)run[RUN_TAI_UTC].integer;
	plan->capture_stamps = run[RUN_CAPTURE_STAMPS].integer;
	plan->consumer = consumer[CONSUMER_ADDRESS].address;
	snprintf(plan->consumer_clock, sizeof(plan->consumer_clock), "%s", consumer_clock_of(consumer[CONSUMER_CLOCK].text));
}

static int convert_clocks(const struct schema_document *document, struct plan *plan, struct schema_error *error)
{
	const struct schema_rows *rows = &document->rows[TABLE_CLOCK];

	if (rows->count > PLAN_PRODUCER_MAX)
		return schema_refuse(document, TABLE_CLOCK, &rows->rows[PLAN_PRODUCER_MAX], -1, error,
				     "too many clocks; allowed 1..%d", PLAN_PRODUCER_MAX);
	plan->clocks = calloc(rows->count, sizeof(*plan->clocks));
	if (!plan->clocks)
		return out_of_memory(error, document->path);
	for (size_t i = 0; i < rows->count; i++) {
		const struct schema_value *values = rows->rows[i].values;
		struct plan_clock *clock = &plan->clocks[i];

		for (size_t j = 0; j < i; j++)
			if (strcmp(plan->clocks[j].name, values[CLOCK_NAME].text) == 0)
				return schema_refuse(document, TABLE_CLOCK, &rows->rows[i], CLOCK_NAME, error,
						     "duplicate; the first is in line %u",
						     rows->rows[j].values[CLOCK_NAME].line);
		strcpy(clock->name, values[CLOCK_NAME].text); /* the schema has checked that it fits */
		clock->address = address_at(&values[CLOCK_ADDRESS].address, (uint16_t)values[CLOCK_PORT].integer);
	}
	plan->clock_count = rows->count;
	return 0;
}

static int compare_producers(const void *left, const void *right)
{
	const struct plan_producer *a = left, *b = right;

	return (a->number > b->number) - (a->number < b->number);
}

static int convert_producer(const struct schema_document *document, const struct plan *plan, const struct schema_row *row,
			    struct plan_producer *producer, struct schema_error *error)
{
	*producer = (struct plan_producer){
		.number = (uint16_t)row->values[PRODUCER_NUMBER].integer,
		.address = row->values[PRODUCER_ADDRESS].address,
		.start_tai_ns = row->values[PRODUCER_START].integer,
		.rate_ppb = row->values[PRODUCER_RATE].integer,
	};
	if (producer->address.is_ipv6 != plan->consumer.is_ipv6)
		return schema_refuse(document, TABLE_PRODUCER, row, PRODUCER_ADDRESS, error, "\"%.64s\"; allowed an address of IPv%d, as the consumer's",
				     row->values[PRODUCER_ADDRESS].text, plan->consumer.is_ipv6 ? 6 : 4);
	for (size_t i = 0; i < plan->clock_count; i++) {
		if (strcmp(plan->clocks[i].name, row->values[PRODUCER_CLOCK].text) == 0) {
			producer->clock = i;
			return 0;
		}
	}
	return schema_refuse(document, TABLE_PRODUCER, row, PRODUCER_CLOCK, error, "no [[clock]] has the name \"%s\"",
			     row->values[PRODUCER_CLOCK].text);
}

/* Each producer of the scaled pattern once, and no other. */
static int convert_producers(const struct schema_document *document, struct plan *plan, struct schema_error *error)
{
	const struct schema_rows *rows = &document->rows[TABLE_PRODUCER];
	const struct schema_row *first_by_number[PLAN_PRODUCER_MAX + 1] = { NULL };
	bool used[PLAN_PRODUCER_MAX + 1] = { false };

	for (size_t i = 0; i < plan->pattern->stream_count; i++)
		used[plan->pattern->streams[i].producer] = true;
	plan->producers = calloc(rows->count, sizeof(*plan->producers));
	if (!plan->producers)
		return out_of_memory(error, document->path);
	for (size_t i = 0; i < rows->count; i++) {
		const struct schema_row *row = &rows->rows[i];
		int64_t number = row->values[PRODUCER_NUMBER].integer;
		int err = convert_producer(document, plan, row, &plan->producers[i], error);

		if (err)
			return err;
		if (first_by_number[number])
			return schema_refuse(document, TABLE_PRODUCER, row, PRODUCER_NUMBER, error,
					     "duplicate; the first is in line %u", first_by_number[number]->line);
		if (!used[number])
			return schema_refuse(document, TABLE_PRODUCER, row, PRODUCER_NUMBER, error,
					     "the pattern has no stream of it at scale %" PRIu32, plan->scale);
		first_by_number[number] = row;
	}
	plan->producer_count = rows->count;
	for (int number = 1; number <= PLAN_PRODUCER_MAX; number++) {
		if (used[number] && !first_by_number[number]) {
			snprintf(error->text, sizeof(error->text),
				 "%s: table [[producer]] number %d is missing: the pattern has streams of it at scale %" PRIu32,
				 document->path, number, plan->scale);
			return -EINVAL;
		}
	}
	qsort(plan->producers, plan->producer_count, sizeof(*plan->producers), compare_producers);
	return 0;
}

/* Exchanges of the producers' clocks are of the system's clock. */
static int check_clock(const struct schema_document *document, const struct plan *plan, struct schema_error *error)
{
	if (plan_stamps_by_system_clock(plan) || plan->correction == CORRECTION_NONE)
		return 0;
	return schema_refuse(document, TABLE_CONSUMER, &document->rows[TABLE_CONSUMER].rows[0], CONSUMER_CLOCK, error,
			     "\"%s\" needs correction = \"none\" in table [run]", plan->consumer_clock);
}

/* Ports and sequence numbers have room for the scaled pattern. */
static int check_room(const struct schema_document *document, const struct plan *plan, struct schema_error *error)
{
	const struct schema_row *run = &document->rows[TABLE_RUN].rows[0];
	const struct pattern *pattern = plan->pattern;
	uint16_t id_highest = pattern->streams[pattern->stream_count - 1].id;

	if (plan->base_port + id_highest > PORT_MAX)
		return schema_refuse(document, TABLE_RUN, run, RUN_BASE_PORT, error,
				     "%u plus the highest stream id %u is no port; allowed 1024..%d", plan->base_port,
				     id_highest, PORT_MAX - id_highest);
	for (size_t i = 0; i < pattern->stream_count; i++) {
		uint64_t slots = phase_slots_before(&pattern->streams[i], plan->warmup_ns + plan->duration_ns);

		if (slots > UINT32_MAX)
			return schema_refuse(document, TABLE_RUN, run, RUN_DURATION, error,
					     "stream %u would have %" PRIu64 " slots; allowed 0..%" PRIu32,
					     pattern->streams[i].id, slots, UINT32_MAX);
	}
	return 0;
}

static int expand_pattern(const struct schema_document *document, struct plan *plan, struct schema_error *error)
{
	struct pattern *file = NULL;
	int err = pattern_convert(document, &file, error);

	if (err)
		return err;
	err = phase_expand(file, plan->phase, plan->scale, &plan->pattern);
	if (err == -ERANGE)
		schema_refuse(document, TABLE_RUN, &document->rows[TABLE_RUN].rows[0], RUN_SCALE, error,
			      "%" PRIu32 " is out of range for producers up to %u; allowed 1..%d", plan->scale,
			      file->producer_highest, PLAN_PRODUCER_MAX / file->producer_highest);
	else if (err)
		out_of_memory(error, document->path);
	pattern_destroy(file);
	return err == -ERANGE ? -EINVAL : err;
}

static int convert_plan(const struct schema_document *document, struct plan *plan, struct schema_error *error)
{
	int err;

	convert_run(document, plan);
	err = check_clock(document, plan, error);
	if (!err)
		err = expand_pattern(document, plan, error);
	if (!err)
		err = convert_clocks(document, plan, error);
	if (!err)
		err = convert_producers(document, plan, error);
	return err ? err : check_room(document, plan, error);
}

int plan_parse(const char *path, const char *text, size_t length, struct plan **plan_out, struct schema_error *error)
{
	struct schema_document document;
	struct plan *plan = calloc(1, sizeof(*plan));
	int err;

	if (!plan)
		return out_of_memory(error, path);
	err = schema_read(path, text, length, plan_tables, PLAN_TABLES, &document, error);
	if (!err) {
		err = convert_plan(&document, plan, error);
		schema_release(&document);
	}
	if (err) {
		plan_destroy(plan);
		return err;
	}
	*plan_out = plan;
	return 0;
}

int plan_load(const char *path, struct plan **plan, struct schema_error *error)
{
	size_t length;
	char *text;
	int err = plan_read_file(path, &text, &length, error);

	if (err)
		return err;
	err = plan_parse(path, text, length, plan, error);
	free(text);
	return err;
}

void plan_destroy(struct plan *plan)
{
	if (!plan)
		return;
	pattern_destroy(plan->pattern);
	free(plan->clocks);
	free(plan->producers);
	free(plan);
}

void plan_carry_by_rtdip(struct plan *plan, const char *socket_path)
{
	plan->rtdip_socket = socket_path;
	for (size_t i = 0; i < plan->pattern->stream_count; i++)
		plan->pattern->streams[i].carrier = TRANSPORT_RTDIP;
}

const struct plan_producer *plan_find_producer(const struct plan *plan, uint16_t number)
{
	const struct plan_producer key = { .number = number };

	return bsearch(&key, plan->producers, plan->producer_count, sizeof(key), compare_producers);
}
