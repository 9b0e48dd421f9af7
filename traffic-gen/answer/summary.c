/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *key;
	uint32_t ppm;
} percentiles[] = {
	{ "p50_ns", 500000 },
	{ "p90_ns", 900000 },
	{ "p99_ns", 990000 },
	{ "p999_ns", 999000 },
};

enum { PERCENTILES = sizeof(percentiles) / sizeof(percentiles[0]) };

static void write_empty(struct json *json)
{
	json_null(json, "min_ns");
	json_null(json, "max_ns");
	json_null(json, "mean_ns");
	json_null(json, "stddev_ns");
	for (int i = 0; i < PERCENTILES; i++)
		json_null(json, percentiles[i].key);
}

static void write_figures(struct json *json, const struct histogram *histogram)
{
	json_int(json, "min_ns", histogram_min_ns(histogram));
	json_int(json, "max_ns", histogram_max_ns(histogram));
	json_int(json, "mean_ns", llround(histogram_mean_ns(histogram)));
	json_int(json, "stddev_ns", llround(histogram_stddev_ns(histogram)));
	for (int i = 0; i < PERCENTILES; i++) {
		int64_t value_ns;

		if (histogram_percentile(histogram, percentiles[i].ppm, &value_ns) == 0)
			json_int(json, percentiles[i].key, value_ns);
		else
			json_null(json, percentiles[i].key);
	}
}

static void write_buckets(struct json *json, const struct histogram *histogram)
{
	struct histogram_cursor cursor = { 0 };
	struct histogram_bucket bucket;

	json_array_open(json, "buckets");
	while (histogram && histogram_next(histogram, &cursor, &bucket)) {
		json_array_open(json, NULL);
		json_int(json, NULL, bucket.low_ns);
		json_int(json, NULL, bucket.width_ns);
		json_uint(json, NULL, bucket.count);
		json_array_close(json);
	}
	json_array_close(json);
}

void summary_histogram(struct json *json, const char *key, const struct histogram *histogram)
{
	uint64_t count = histogram ? histogram_count(histogram) : 0;

	json_object_open(json, key);
	json_uint(json, "n", count);
	if (count == 0)
		write_empty(json);
	else
		write_figures(json, histogram);
	json_uint(json, "overflow", histogram ? histogram_overflow(histogram) : 0);
	write_buckets(json, histogram);
	json_object_close(json);
}

void summary_steps(struct json *json, const struct stepwatch *watch)
{
	uint64_t kept = watch->count < STEPWATCH_STEPS_MAX ? watch->count : STEPWATCH_STEPS_MAX;

	for (uint64_t i = 0; i < kept; i++) {
		json_object_open(json, NULL);
		json_string(json, "clock", "local");
		json_int(json, "time_tai_ns", watch->steps[i].time_tai_ns);
		json_int(json, "step_ns", watch->steps[i].step_ns);
		json_object_close(json);
	}
}

void summary_series(struct json *json, const struct twoway *twoway)
{
	const struct twoway_sample *samples;
	size_t count = twoway_series(twoway, &samples);

	json_array_open(json, "series");
	for (size_t i = 0; i < count; i++) {
		json_array_open(json, NULL);
		json_int(json, NULL, samples[i].local_ns);
		json_int(json, NULL, samples[i].offset_ns);
		json_int(json, NULL, samples[i].bound_ns);
		json_array_close(json);
	}
	json_array_close(json);
}

void summary_stream(struct json *json, const struct stream *stream)
{
	json_uint(json, "id", stream->id);
	json_uint(json, "producer", stream->producer);
	json_uint(json, "message_type", stream->message_type);
	json_string(json, "transport", transport_limits(stream->transport)->name);
	json_uint(json, "size_bytes", stream->size_bytes);
	json_int(json, "period_ns", stream->period_ns);
	json_int(json, "budget_ns", stream->budget_ns);
}

void summary_carrier(struct json *json, const struct plan *plan)
{
	const char *loaded = getenv("LD_PRELOAD");
	const char *carrier = loaded && loaded[0] ? loaded : "kernel";

	for (size_t i = 0; i < plan->pattern->stream_count; i++) {
		if (plan->pattern->streams[i].carrier == TRANSPORT_RTDIP)
			carrier = transport_limits(TRANSPORT_RTDIP)->name;
	}
	json_string(json, "carrier", carrier);
}

void summary_scheduling(struct json *json, const struct port_scheduling *scheduling)
{
	json_object_open(json, "scheduling");
	json_string(json, "policy", scheduling->fifo ? "fifo" : "other");
	json_int(json, "priority", scheduling->priority);
	json_string(json, "note", scheduling->note);
	json_object_close(json);
}

void summary_add_note(struct port_scheduling *scheduling, const char *what, int err)
{
	size_t used = strlen(scheduling->note);

	snprintf(scheduling->note + used, sizeof(scheduling->note) - used, "%s%s: %s", used ? "; " : "", what, strerror(err));
}
