/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/timectl_show.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/time_units.h"
#include "port/port_clock.h"
#include "port/port_timeservice.h"
#include "port/port_wait.h"
#include "timeservice/ntp_exchange.h"

enum { DAYS_TEXT_BYTES = 64 };

int timectl_read(struct timectl *ctl, const char *path)
{
	struct timepage_identity here = { .counter_kind = port_counter_kind() };
	struct port_timepage file;
	const struct timepage_image *image;
	const char *name = path ? path : port_timepage_default_path(), *why = "";
	uint32_t sequence;
	int err = port_boot_id(here.boot);

	memset(ctl, 0, sizeof(*ctl));
	if (!err)
		err = port_timepage_open(name, TIMEPAGE_BYTES, &file);
	if (err) {
		snprintf(ctl->why, sizeof(ctl->why), "%.160s: %s", name, err == -ENOENT ? "no service has made it" : strerror(-err));
		return err;
	}
	image = file.readable;
	err = timepage_image_check(image, &here, &why);
	if (!err)
		err = timepage_line_read(&image->line, &ctl->line, &sequence);
	if (!err && timepage_status_read(&image->status, &ctl->status))
		memset(&ctl->status, 0, sizeof(ctl->status)); /* not written yet */
	port_timepage_close(&file);
	if (err) {
		snprintf(ctl->why, sizeof(ctl->why), "%.160s: %.80s", name, *why ? why : "no service has written to it");
		return err;
	}
	ctl->process_seen = waiter_is_seen((int64_t)ctl->status.pid);
	ctl->now_ticks = port_counter_read();
	ctl->synchronised = (ctl->line.state == TIMEPAGE_SYNCHRONISED || ctl->line.state == TIMEPAGE_HOLDOVER ||
			     ctl->line.state == TIMEPAGE_ENDED) &&
			    ctl->line.mult && (int64_t)(ctl->line.usable_until_ticks - ctl->now_ticks) > 0;
	if (!ctl->synchronised && ctl->line.reason == TIMEPAGE_REASON_NONE && timepage_ends_at_leap(&ctl->line))
		ctl->line.reason = TIMEPAGE_REASON_LEAP;
	if (ctl->synchronised) {
		ctl->utc_ns = timepage_utc_ns(&ctl->line, ctl->now_ticks);
		timepage_interval_ns(&ctl->line, ctl->now_ticks, &ctl->low_ns, &ctl->high_ns);
		ctl->u_ns = timepage_u_ns(&ctl->line, ctl->now_ticks);
	}
	return 0;
}

/* "Tue Nov 24 19:27:56.123456789 2026" of UTC, by the proleptic Gregorian calendar (H. Hinnant, days_from_civil turned). */
static const char *utc_text(int64_t utc_ns, char text[DAYS_TEXT_BYTES])
{
	static const char *const weekdays[] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	int64_t seconds = utc_ns / NS_PER_S, days = seconds / 86400, of_day = seconds % 86400;
	int64_t shifted = days + 719468, era = shifted / 146097, of_era = shifted % 146097;
	int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t month = (5 * of_year + 2) / 153, day = of_year - (153 * month + 2) / 5 + 1;

	month = month < 10 ? month + 2 : month - 10;
	snprintf(text, DAYS_TEXT_BYTES, "%s %s %02d %02d:%02d:%02d.%09d %d", weekdays[days % 7], months[month], (int)day,
		 (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60), (int)(utc_ns % NS_PER_S),
		 (int)(year_of_era + 400 * era + (month < 2)));
	return text;
}

/* Of a counter: how long ago, in s; -1: never. */
static double ago_s(const struct timectl *ctl, uint64_t ticks)
{
	if (!ticks || !ctl->status.counter_hz)
		return -1;
	return (double)(int64_t)(ctl->now_ticks - ticks) / (double)ctl->status.counter_hz;
}

static const struct timepage_server *selected(const struct timectl *ctl)
{
	for (uint64_t i = 0; i < ctl->status.server_count; i++)
		if (ctl->status.servers[i].state == TIMEPAGE_SERVER_SELECTED)
			return &ctl->status.servers[i];
	return NULL;
}

static const char *leap_text(int32_t leap)
{
	static const char *const names[] = { "Normal", "Insert second", "Delete second", "Not synchronised" };

	return names[leap & 3];
}

static int64_t bound_ns(const struct timectl *ctl)
{
	return ctl->low_ns > ctl->high_ns ? ctl->low_ns : ctl->high_ns;
}

/* ---- tracking ---------------------------------------------------------------------------------------------------- */

static void tracking_json(const struct timectl *ctl)
{
	const struct timepage_server *server = selected(ctl);
	struct json json;

	json_init(&json, stdout);
	json_object_open(&json, NULL);
	json_string(&json, "state", timepage_state_name(ctl->line.state));
	json_string(&json, "reason", timepage_reason_name(ctl->line.reason));
	json_string(&json, "text", ctl->status.text);
	json_bool(&json, "synchronised", ctl->synchronised);
	json_string(&json, "server", server ? server->address : "");
	json_int(&json, "stratum", ctl->line.stratum);
	json_int(&json, "leap", ctl->line.leap);
	if (ctl->synchronised) {
		json_int(&json, "utc_ns", ctl->utc_ns);
		json_int(&json, "earliest_utc_ns", ctl->utc_ns - ctl->low_ns);
		json_int(&json, "latest_utc_ns", ctl->utc_ns + ctl->high_ns);
		json_int(&json, "bound_ns", bound_ns(ctl));
		json_int(&json, "u_ns", ctl->u_ns);
		json_double(&json, "heard_ago_s", ago_s(ctl, ctl->line.heard_ticks));
		json_double(&json, "valid_for_s", -ago_s(ctl, ctl->line.usable_until_ticks));
	}
	json_int(&json, "tai_utc_s", ctl->line.tai_utc_s);
	json_double(&json, "age_s", ago_s(ctl, ctl->line.base_ticks));
	json_int(&json, "rate_ppb", ctl->status.rate_ppb);
	json_uint(&json, "growth_ppb", ctl->line.growth_ppb);
	json_uint(&json, "disruptions", ctl->line.disruptions);
	json_uint(&json, "epoch", ctl->line.epoch);
	json_int(&json, "step_ns", ctl->line.step_ns);
	json_uint(&json, "publications", ctl->line.publications);
	json_uint(&json, "batches", ctl->status.batches);
	json_double(&json, "interval_s", (double)ctl->status.interval_ns * 1e-9);
	json_uint(&json, "counter_hz", ctl->status.counter_hz);
	json_bool(&json, "holding", ctl->status.holding != 0);
	json_uint(&json, "pid", ctl->status.pid);
	json_bool(&json, "process_seen", ctl->process_seen);
	json_string(&json, "version", ctl->status.version);
	json_object_close(&json);
	json_line_end(&json);
}

void timectl_tracking(const struct timectl *ctl, bool json)
{
	const struct timepage_server *server = selected(ctl);
	const struct timepage_status *status = &ctl->status;
	char text[DAYS_TEXT_BYTES];

	if (json) {
		tracking_json(ctl);
		return;
	}
	printf("Reference ID    : %s\n", server ? server->address : "none");
	printf("Stratum         : %d\n", ctl->line.stratum);
	printf("State           : %s%s%s%s%s\n", timepage_state_name(ctl->line.state), ctl->line.reason ? ", " : "",
	       ctl->line.reason ? timepage_reason_name(ctl->line.reason) : "", status->text[0] ? ": " : "", status->text);
	if (!ctl->process_seen && ctl->line.state != TIMEPAGE_ENDED)
		printf("Service         : dead: no bw-timed with process number %" PRIu64 " is seen here; last heard %.1f seconds ago\n",
		       status->pid, ago_s(ctl, ctl->line.base_ticks));
	if (ctl->line.mult)
		printf("Ref time (UTC)  : %s\n", utc_text(ctl->line.base_utc_ns, text));
	if (ctl->synchronised) {
		printf("Time (UTC)      : %s\n", utc_text(ctl->utc_ns, text));
		printf("Interval        : -%.9f .. +%.9f seconds\n", (double)ctl->low_ns * 1e-9, (double)ctl->high_ns * 1e-9);
		printf("Uncertainty     : %.9f seconds (k = 2)\n", (double)ctl->u_ns * 1e-9);
		printf("Last heard      : %.1f seconds ago; valid for %.0f seconds more\n", ago_s(ctl, ctl->line.heard_ticks),
		       -ago_s(ctl, ctl->line.usable_until_ticks));
	}
	if (status->history_count)
		printf("Last offset     : %+.9f seconds\n", (double)status->history[status->history_count - 1].offset_ns * 1e-9);
	printf("Frequency       : %.3f ppm %s\n", fabs((double)status->rate_ppb) * 1e-3, status->rate_ppb < 0 ? "slow" : "fast");
	printf("Interval growth : %.3f ppm\n", (double)ctl->line.growth_ppb * 1e-3);
	printf("Disruptions     : %" PRIu64 "\n", ctl->line.disruptions);
	if (server)
		printf("Root distance   : %.9f seconds\n", (double)server->root_dispersion_ns * 1e-9);
	printf("Update interval : %.1f seconds\n", (double)status->interval_ns * 1e-9);
	printf("Leap status     : %s\n", ctl->synchronised ? leap_text(ctl->line.leap) : "Not synchronised");
	printf("Epoch           : %" PRIu64 " (last step %+.9f seconds)\n", ctl->line.epoch, (double)ctl->line.step_ns * 1e-9);
	if (ctl->line.tai_utc_s)
		printf("TAI - UTC       : %d seconds\n", ctl->line.tai_utc_s);
	else
		printf("TAI - UTC       : unknown\n");
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* As --help explains them; chronyc's, and ! of a server that denies. */
static char mark(uint32_t state)
{
	static const char marks[] = { '?', '*', '+', 'x', '-', '?', '!' };

	return state < sizeof(marks) ? marks[state] : '?';
}

static void server_json(struct json *json, const struct timectl *ctl, const struct timepage_server *server, bool counts)
{
	json_object_open(json, NULL);
	json_string(json, "address", server->address);
	json_string(json, "state", timepage_server_state_name(server->state));
	json_uint(json, "reach", server->reach);
	json_int(json, "stratum", server->stratum);
	json_int(json, "leap", server->leap);
	json_double(json, "heard_s", ago_s(ctl, server->heard_ticks));
	json_int(json, "offset_ns", server->offset_ns);
	json_int(json, "delay_ns", server->delay_ns);
	json_int(json, "bound_ns", server->bound_ns);
	json_string(json, "stamps", server->kernel_stamps ? "kernel" : "user");
	json_bool(json, "interleaved", server->interleaved != 0);
	json_uint(json, "key", server->key);
	json_bool(json, "authenticated", server->authenticated != 0);
	json_uint(json, "sent", server->sent);
	json_uint(json, "received", server->received);
	if (counts) {
		json_object_open(json, "rejected");
		for (unsigned int i = NTP_GOOD + 1; i < EXCHANGE_REJECTS; i++)
			json_uint(json, exchange_reject_name(i), server->rejected[i]);
		json_object_close(json);
	}
	json_object_close(json);
}

static void servers_json(const struct timectl *ctl, bool counts)
{
	struct json json;

	json_init(&json, stdout);
	json_object_open(&json, NULL);
	json_array_open(&json, "sources");
	for (uint64_t i = 0; i < ctl->status.server_count; i++)
		server_json(&json, ctl, &ctl->status.servers[i], counts);
	json_array_close(&json);
	json_object_close(&json);
	json_line_end(&json);
}

void timectl_sources(const struct timectl *ctl, bool json)
{
	if (json) {
		servers_json(ctl, false);
		return;
	}
	printf("MS Name/IP address         Stratum Reach LastRx   Offset              Delay     Stamps\n");
	printf("=====================================================================================\n");
	for (uint64_t i = 0; i < ctl->status.server_count; i++) {
		const struct timepage_server *server = &ctl->status.servers[i];
		char heard[16] = "-", key[48] = "";
		double heard_s = ago_s(ctl, server->heard_ticks);

		if (heard_s >= 0)
			snprintf(heard, sizeof(heard), "%.0f", heard_s);
		if (server->key)
			snprintf(key, sizeof(key), ", key %" PRIu32 "%s", server->key, server->authenticated ? "" : ": no right answer yet");
		printf("^%c %-24s %7d   %3o %6s %+9.3fus +/- %8.3fus %9.3fus %s%s%s\n", mark(server->state), server->address,
		       server->stratum, (unsigned int)server->reach, heard, (double)server->offset_ns * 1e-3,
		       (double)server->bound_ns * 1e-3, (double)server->delay_ns * 1e-3, server->kernel_stamps ? "kernel" : "user",
		       server->interleaved ? ", interleaved" : "", key);
	}
}

void timectl_sourcestats(const struct timectl *ctl, bool json)
{
	if (json) {
		servers_json(ctl, true);
		return;
	}
	for (uint64_t i = 0; i < ctl->status.server_count; i++) {
		const struct timepage_server *server = &ctl->status.servers[i];

		printf("%s: sent %" PRIu64 ", received %" PRIu64 ", used %" PRIu64 "\n", server->address, server->sent, server->received,
		       server->rejected[NTP_GOOD]);
		for (unsigned int j = NTP_GOOD + 1; j < EXCHANGE_REJECTS; j++)
			if (server->rejected[j])
				printf("  refused: %-16s %" PRIu64 "\n", exchange_reject_name(j), server->rejected[j]);
	}
}

/* ---- history ----------------------------------------------------------------------------------------------------- */

void timectl_history(const struct timectl *ctl, bool json, int last)
{
	uint64_t count = ctl->status.history_count, first = count > (uint64_t)last ? count - (uint64_t)last : 0;
	char text[DAYS_TEXT_BYTES];
	struct json out;

	if (json) {
		json_init(&out, stdout);
		json_object_open(&out, NULL);
		json_array_open(&out, "history");
	} else {
		printf("Time (UTC)                           Offset        Bound         U             Frequency\n");
		printf("==========================================================================================\n");
	}
	for (uint64_t i = first; i < count; i++) {
		const struct timepage_moment *moment = &ctl->status.history[i];

		if (!json) {
			printf("%s %+10.3fus %10.3fus %10.3fus %+12.3fppm\n", utc_text(moment->utc_ns, text), (double)moment->offset_ns * 1e-3,
			       (double)moment->bound_ns * 1e-3, (double)moment->u_ns * 1e-3, (double)moment->rate_ppb * 1e-3);
			continue;
		}
		json_object_open(&out, NULL);
		json_int(&out, "utc_ns", moment->utc_ns);
		json_int(&out, "offset_ns", moment->offset_ns);
		json_int(&out, "bound_ns", moment->bound_ns);
		json_int(&out, "u_ns", moment->u_ns);
		json_int(&out, "rate_ppb", moment->rate_ppb);
		json_object_close(&out);
	}
	if (json) {
		json_array_close(&out);
		json_object_close(&out);
		json_line_end(&out);
	}
}
