/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of the verb latency. */
#include "clock/latency/latency.h"

#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/json.h"
#include "port/port_clock.h"

static void print_subject(struct json *json, const struct latency *latency, const struct latency_subject *subject,
			  bool counted)
{
	json_object_open(json, NULL);
	json_string(json, "name", subject->text);
	if (subject->source.phc)
		json_string(json, "phc_read", latency->phc_read);
	else
		json_null(json, "phc_read");
	json_uint(json, "n", histogram_count(subject->latency));
	summary_histogram(json, "latency", subject->latency);
	summary_histogram(json, "net", subject->net);
	if (counted && subject->kept) {
		summary_histogram(json, "kept", subject->kept);
		json_uint(json, "interrupted", subject->interrupted);
	} else {
		json_null(json, "kept");
		json_null(json, "interrupted");
	}
	blocks_json(json, "blocks", &subject->blocks);
	json_object_close(json);
}

int latency_report(struct json *json, const struct latency *latency, const struct port_scheduling *scheduling)
{
	bool counted = latency->no_instructions[0] == '\0';
	char clocksource[64];

	port_clocksource(clocksource, sizeof(clocksource));
	answer_result(json, LATENCY_TOOL);
	answer_valid_unless(json, latency->complete, latency->read_error ? strerror(-latency->read_error) : NULL);
	json_array_open(json, "clocks");
	for (size_t i = 0; i < latency->count; i++)
		print_subject(json, latency, &latency->subjects[i], counted);
	json_array_close(json);
	if (counted)
		json_null(json, "interrupted_reason");
	else
		json_string(json, "interrupted_reason", latency->no_instructions);
	json_string(json, "clocksource", clocksource);
	json_uint(json, "tsc_hz", latency->hz);
	json_double(json, "pair_cost_ns", (double)latency->pair_ticks * 1e9 / (double)latency->hz);
	summary_scheduling(json, scheduling);
	return answer_end(json);
}
