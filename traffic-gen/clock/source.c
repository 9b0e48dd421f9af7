/* SPDX-License-Identifier: Apache-2.0 */
#include "clock/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/time_units.h"
#include "config/options.h"
#include "clock/card/ticks.h"

static int read_kernel(struct source *source, int64_t *tai_ns)
{
	*tai_ns = port_kernel_clock_now_ns(source->kernel_clock) + source->add_ns;
	return 0;
}

static int open_kernel(struct source *source, enum port_kernel_clock clock, int64_t add_ns, char *error, size_t error_bytes)
{
	int err = port_kernel_clock_check(clock);

	if (err)
		snprintf(error, error_bytes, "this system has no such clock");
	source->kernel_clock = clock;
	source->add_ns = add_ns;
	return err;
}

static int open_realtime(struct source *source, const char *argument, char *error, size_t error_bytes)
{
	(void)argument;
	return open_kernel(source, PORT_KERNEL_REALTIME, source->tai.tai_utc_s * NS_PER_S, error, error_bytes);
}

static int open_coarse(struct source *source, const char *argument, char *error, size_t error_bytes)
{
	(void)argument;
	return open_kernel(source, PORT_KERNEL_REALTIME_COARSE, source->tai.tai_utc_s * NS_PER_S, error, error_bytes);
}

static int open_tai(struct source *source, const char *argument, char *error, size_t error_bytes)
{
	(void)argument;
	return open_kernel(source, PORT_KERNEL_TAI, source->tai.add_ns, error, error_bytes);
}

static int open_raw(struct source *source, const char *argument, char *error, size_t error_bytes)
{
	(void)argument;
	return open_kernel(source, PORT_KERNEL_MONOTONIC_RAW, 0, error, error_bytes);
}

static int begin_raw(struct source *source, char *error, size_t error_bytes)
{
	(void)error;
	(void)error_bytes;
	source->add_ns = port_tai_now_ns(&source->tai) - port_kernel_clock_now_ns(PORT_KERNEL_MONOTONIC_RAW);
	return 0;
}

static int open_tsc(struct source *source, const char *argument, char *error, size_t error_bytes)
{
	(void)argument;
	source->tsc.hz = ticks_hz();
	if (source->tsc.hz == 0) {
		snprintf(error, error_bytes, "this processor has no counter that a program can read");
		return -ENOTSUP;
	}
	source->tsc.ns_per_tick = 1e9 / (double)source->tsc.hz;
	return 0;
}

static int read_tsc(struct source *source, int64_t *tai_ns)
{
	int64_t ticks = (int64_t)(port_counter_read() - source->tsc.first_ticks);

	*tai_ns = source->add_ns + (int64_t)((double)ticks * source->tsc.ns_per_tick);
	return 0;
}

static int begin_tsc(struct source *source, char *error, size_t error_bytes)
{
	(void)error;
	(void)error_bytes;
	source->tsc.first_ticks = port_counter_read();
	source->add_ns = port_tai_now_ns(&source->tai);
	return 0;
}

static void facts_utc(const struct source *source, struct json *json)
{
	json_int(json, "tai_utc_s", source->tai.tai_utc_s);
	json_bool(json, "tai_utc_of_kernel", source->tai.kernel_tai_utc_s != 0);
}

static void facts_anchored(const struct source *source, struct json *json)
{
	facts_utc(source, json);
	json_string(json, "set_at_begin_to", "tai");
}

static void facts_tsc(const struct source *source, struct json *json)
{
	facts_anchored(source, json);
	json_uint(json, "hz", source->tsc.hz);
	json_bool(json, "hz_measured", port_counter_stated_hz() == 0);
}

static const struct source_kind kind_realtime = {
	.name = "realtime", .open = open_realtime, .read = read_kernel, .facts = facts_utc,
};
static const struct source_kind kind_coarse = {
	.name = "realtime-coarse", .open = open_coarse, .read = read_kernel, .facts = facts_utc,
};
static const struct source_kind kind_tai = {
	.name = "tai", .open = open_tai, .read = read_kernel, .facts = facts_utc,
};
static const struct source_kind kind_raw = {
	.name = "monotonic-raw", .open = open_raw, .begin = begin_raw, .read = read_kernel, .facts = facts_anchored,
};
static const struct source_kind kind_tsc = {
	.name = "tsc", .open = open_tsc, .begin = begin_tsc, .read = read_tsc, .facts = facts_tsc,
};

static const struct source_kind *const kinds[] = {
	&kind_realtime, &kind_coarse, &kind_tai, &kind_raw, &kind_tsc, &source_phc, &source_card, &source_plugin,
	&source_timeservice,
};

static const struct source_kind *find(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i]->name) == length && memcmp(kinds[i]->name, text, length) == 0)
			return kinds[i];
	}
	return NULL;
}

int source_open(struct source *source, const char *text, int tai_utc_s, char *error, size_t error_bytes)
{
	size_t length = strcspn(text, ":");
	const char *argument = text[length] == ':' ? text + length + 1 : NULL;
	const struct source_kind *kind = find(text, length);
	char why[SOURCE_ERROR_BYTES] = "";
	int err;

	memset(source, 0, sizeof(*source));
	if (!kind || (argument && (!kind->takes_argument || !*argument)) || (!argument && kind->needs_argument)) {
		snprintf(error, error_bytes, "unknown clock \"%s\"; allowed: realtime, realtime-coarse, tai, monotonic-raw, "
			 "tsc, phc:/dev/ptpN, card[:PATH], plugin:PATH[,ARGUMENTS], timeservice[:PAGE]", text);
		return -EINVAL;
	}
	source->text = text;
	source->kind = kind;
	port_tai_init(&source->tai, tai_utc_s);
	err = kind->open(source, argument, why, sizeof(why));
	if (err) {
		snprintf(error, error_bytes, "clock \"%s\": %s", text, why);
		source->kind = NULL;
	}
	return err;
}

void source_close(struct source *source)
{
	if (source->kind && source->kind->close)
		source->kind->close(source);
	source->kind = NULL;
}

int source_begin(struct source *source, char *error, size_t error_bytes)
{
	return source->kind->begin ? source->kind->begin(source, error, error_bytes) : 0;
}

int source_end(struct source *source, char *error, size_t error_bytes)
{
	return source->kind->end ? source->kind->end(source, error, error_bytes) : 0;
}

int source_exit_code(int err)
{
	return err == -EINVAL ? EXIT_BAD_INPUT : EXIT_CAPABILITY;
}

void source_report(const struct source *source, struct json *json, const char *key)
{
	json_object_open(json, key);
	json_string(json, "name", source->text);
	json_string(json, "kind", source->kind->name);
	if (source->kind->facts)
		source->kind->facts(source, json);
	json_object_close(json);
}

int64_t source_bound_ns(const struct source *source)
{
	return source->kind->bound_ns ? source->kind->bound_ns(source) : -1;
}

int64_t source_reading_bound_ns(const struct source *source)
{
	struct source_error error;

	if (!source->kind->reading_error)
		return source_bound_ns(source);
	error = source->kind->reading_error(source);
	return error.low_ns > error.high_ns ? error.low_ns : error.high_ns;
}

int64_t source_step_ns(const struct source *source)
{
	return source->kind->step_ns ? source->kind->step_ns(source) : 0;
}

const char *source_why(const struct source *source, int err)
{
	return source->kind->why ? source->kind->why(source, err) : strerror(-err);
}
