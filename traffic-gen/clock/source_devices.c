/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks that are devices: a PTP hardware clock, the virtual timecard, and what a plug-in brings. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "clock/bw_clock_plugin.h"
#include "clock/source.h"

enum { PLUGIN_PATH_BYTES = 1024 };

static void add_fact(void *sink, const char *key, const char *value)
{
	json_string(sink, key, value);
}

/* ---- phc:/dev/ptpN ----------------------------------------------------------------------------------------------- */

static const char *phc_failure(int err)
{
	switch (err) {
	case -ENOENT:
		return "no such device";
	case -ENOTTY:
		return "not a PTP hardware clock";
	case -EACCES:
	case -EPERM:
		return "no permission to open the device";
	case -ENOTSUP:
		return "this system has no PTP hardware clocks";
	default:
		return strerror(-err);
	}
}

static int phc_open(struct source *source, const char *argument, char *error, size_t error_bytes)
{
	int64_t phc_ns;
	int err = port_phc_open(argument, &source->phc);

	if (!err)
		err = port_phc_now_ns(source->phc, &phc_ns);
	if (!err)
		return 0;
	snprintf(error, error_bytes, "%s", phc_failure(err));
	port_phc_close(source->phc);
	return err == -EINVAL ? -EIO : err;
}

static void phc_close(struct source *source)
{
	port_phc_close(source->phc);
}

static int phc_read(struct source *source, int64_t *tai_ns)
{
	return port_phc_now_ns(source->phc, tai_ns);
}

static void phc_facts(const struct source *source, struct json *json)
{
	struct port_phc_caps caps;

	port_phc_facts("/sys/class", strchr(source->text, ':') + 1, add_fact, json);
	if (port_phc_caps(source->phc, &caps))
		return;
	json_object_open(json, "caps");
	json_int(json, "max_adjustment_ppb", caps.max_adjustment_ppb);
	json_bool(json, "precise", caps.precise);
	json_bool(json, "pps", caps.pps);
	json_int(json, "external_stamps", caps.external_stamps);
	json_int(json, "periodic_outputs", caps.periodic_outputs);
	json_int(json, "pins", caps.pins);
	json_object_close(json);
}

static int phc_cross(struct source *source, enum port_phc_read read, int64_t *tai_ns)
{
	struct port_phc_cross cross;
	int err = port_phc_cross(source->phc, read, &cross);

	*tai_ns = cross.phc_ns;
	return err;
}

static int phc_precise(struct source *source, int64_t *tai_ns)
{
	return phc_cross(source, PORT_PHC_PRECISE, tai_ns);
}

static int phc_extended(struct source *source, int64_t *tai_ns)
{
	return phc_cross(source, PORT_PHC_EXTENDED, tai_ns);
}

static int phc_basic(struct source *source, int64_t *tai_ns)
{
	return phc_cross(source, PORT_PHC_BASIC, tai_ns);
}

#define PHC_KIND(read_by) \
	{ .name = "phc", .takes_argument = true, .needs_argument = true, .open = phc_open, .close = phc_close, \
	  .read = (read_by), .facts = phc_facts }

const struct source_kind source_phc = PHC_KIND(phc_read);

static const struct source_kind phc_kinds[] = {
	[PORT_PHC_PRECISE] = PHC_KIND(phc_precise), [PORT_PHC_EXTENDED] = PHC_KIND(phc_extended),
	[PORT_PHC_BASIC] = PHC_KIND(phc_basic),
};

int source_phc_read(struct source *source, enum port_phc_read read)
{
	int64_t tai_ns;
	int err;

	if (!source->phc)
		return -EINVAL;
	err = phc_cross(source, read, &tai_ns);
	if (!err)
		source->kind = &phc_kinds[read];
	return err;
}

/* ---- card[:PATH] ------------------------------------------------------------------------------------------------- */

static int open_card(struct source *source, const char *argument, char *error, size_t error_bytes)
{
	int err = card_open(&source->card, argument, error, error_bytes);

	return err == -EINVAL ? -EIO : err;
}

static void close_card(struct source *source)
{
	card_close(&source->card);
}

static int read_card(struct source *source, int64_t *tai_ns)
{
	return card_read(&source->card, tai_ns);
}

static const char *card_failure(int err)
{
	switch (err) {
	case -ETIMEDOUT:
		return "the timecard cannot be calibrated: nobody answers";
	case -EBUSY:
		return "the timecard cannot be calibrated: another process does it all the time";
	case -ETIME:
		return "the timecard is stale: its last line is older than a second";
	case -ENODATA:
		return "the timecard has no time: nothing was published for this machine's counter";
	case -EBADMSG:
	case -EAGAIN:
		return "the timecard's page has figures that cannot be";
	default:
		return strerror(-err);
	}
}

static int begin_card(struct source *source, char *error, size_t error_bytes)
{
	int err = card_begin(&source->card);

	if (err)
		snprintf(error, error_bytes, "%s", card_failure(err));
	return err;
}

static const char *why_card(const struct source *source, int err)
{
	(void)source;
	return card_failure(err);
}

static int end_card(struct source *source, char *error, size_t error_bytes)
{
	struct card *card = &source->card;
	uint64_t steps = card->line.steps - card->first_steps;
	struct calibration last;
	int64_t tai_ns;
	int err = card_calibrate_well(card, &last);

	if (!err && calibration_differs(&card->calibration, &last)) {
		snprintf(error, error_bytes, "the timecard drifted: its counter's offset changed by %" PRId64 " units, "
			 "bounds %" PRIu64 " and %" PRIu64, (int64_t)(last.offset - card->calibration.offset),
			 card->calibration.bound, last.bound);
		return -ERANGE;
	}
	if (!err)
		err = card_read(card, &tai_ns);
	if (err) {
		snprintf(error, error_bytes, "%s", card_failure(err));
		return err;
	}
	if (steps) {
		snprintf(error, error_bytes, "the timecard's source left its line %" PRIu64 " times: its bound did not hold", steps);
		return -ERANGE;
	}
	return 0;
}

static int64_t bound_card(const struct source *source)
{
	return source->card.calibration.exchanges ? card_bound_ns(&source->card) : -1;
}

static void facts_card(const struct source *source, struct json *json)
{
	const struct card *card = &source->card;

	json_string(json, "counter", port_counter_kind() == PORT_COUNTER_TSC ? "tsc" : "cntvct");
	json_uint(json, "counter_hz", card->scale.hz);
	if (!card->calibration.exchanges || !card->line_read) {
		json_null(json, "source");
		json_null(json, "bound_ns");
		return;
	}
	json_string(json, "source", card->line.source);
	json_int(json, "tai_utc_s", card->line.tai_utc_s);
	json_int(json, "bound_ns", card_bound_ns(card));
	json_int(json, "calibration_bound_ns", card_calibration_bound_ns(card));
	json_uint(json, "calibration_exchanges", card->calibration.exchanges);
	json_uint(json, "source_steps", card->line.steps - card->first_steps);
}

const struct source_kind source_card = {
	.name = "card", .takes_argument = true, .open = open_card, .close = close_card, .begin = begin_card, .end = end_card,
	.read = read_card, .bound_ns = bound_card, .facts = facts_card, .why = why_card,
};

/* ---- plugin:PATH[,ARGUMENTS] ------------------------------------------------------------------------------------- */

typedef const struct bw_clock_plugin *plugin_entry(uint32_t version);

/*
 * Take a table over. One that was built against an earlier header is shorter, as far as `close` at least, and lacks the members
 * that were added since; one built against a later header is longer.
 */
static int take_table(const struct bw_clock_plugin *given, struct bw_clock_plugin *table, char *error, size_t error_bytes)
{
	const size_t first_bytes = offsetof(struct bw_clock_plugin, close) + sizeof(table->close);

	if (!given || given->version != BW_CLOCK_PLUGIN_VERSION) {
		snprintf(error, error_bytes, "the plug-in does not serve version %u of the interface", BW_CLOCK_PLUGIN_VERSION);
		return -EPROTO;
	}
	memset(table, 0, sizeof(*table));
	if (given->size_bytes >= first_bytes)
		memcpy(table, given, given->size_bytes < sizeof(*table) ? given->size_bytes : sizeof(*table));
	if (!table->name || !table->open || !table->read || !table->close) {
		snprintf(error, error_bytes, "the plug-in's table is incomplete");
		return -EPROTO;
	}
	return 0;
}

static int plugin_open(struct source *source, const char *argument, char *error, size_t error_bytes)
{
	size_t length = strcspn(argument, ",");
	char path[PLUGIN_PATH_BYTES];
	plugin_entry *entry;
	void *address;
	int err;

	if (length == 0 || length + 3 > sizeof(path)) {
		snprintf(error, error_bytes, "no path of a plug-in, or too long a one");
		return -EINVAL;
	}
	/* Without a slash the loader would search its own folders. */
	snprintf(path, sizeof(path), "%s%.*s", memchr(argument, '/', length) ? "" : "./", (int)length, argument);
	err = port_plugin_open(path, BW_CLOCK_PLUGIN_SYMBOL, &source->plugin.object, &address, error, error_bytes);
	if (err)
		return err;
	memcpy(&entry, &address, sizeof(entry));
	err = take_table(entry(BW_CLOCK_PLUGIN_VERSION), &source->plugin.table, error, error_bytes);
	if (!err) {
		snprintf(error, error_bytes, "the plug-in cannot open its clock");
		err = source->plugin.table.open(argument[length] ? argument + length + 1 : "", &source->plugin.state, error,
						error_bytes);
		error[error_bytes - 1] = '\0';
		err = err > 0 ? -EIO : err;
	}
	if (err)
		port_plugin_close(source->plugin.object);
	return err;
}

static void plugin_close(struct source *source)
{
	source->plugin.table.close(source->plugin.state);
	port_plugin_close(source->plugin.object);
}

static int plugin_read(struct source *source, int64_t *tai_ns)
{
	return source->plugin.table.read(source->plugin.state, tai_ns);
}

static int64_t plugin_bound(const struct source *source)
{
	return source->plugin.table.bound_ns ? source->plugin.table.bound_ns(source->plugin.state) : -1;
}

static void plugin_facts(const struct source *source, struct json *json)
{
	int64_t bound_ns = plugin_bound(source);

	json_string(json, "plugin", source->plugin.table.name);
	if (bound_ns >= 0)
		json_int(json, "bound_ns", bound_ns);
	else
		json_null(json, "bound_ns");
	json_object_open(json, "facts");
	if (source->plugin.table.facts)
		source->plugin.table.facts(source->plugin.state, add_fact, json);
	json_object_close(json);
}

const struct source_kind source_plugin = {
	.name = "plugin", .takes_argument = true, .needs_argument = true, .open = plugin_open, .close = plugin_close,
	.read = plugin_read, .bound_ns = plugin_bound, .facts = plugin_facts,
};
